# shellcheck shell=bash disable=SC2034,SC2154 # common.sh and the scripts share variables
# How the words of a command line are read: which is a shape, which steps the others name. Sourced after common.sh. The
# programs have the same rule (common/harness/base/problem.h).

# is_shape WORD: three digits or more, MxNxK, or a size such as 64MiB are a shape; one or two digits or a name are a step.
is_shape() { [[ $1 =~ ^[0-9]{3} || $1 =~ ^[0-9]+[KMG]iB$ || ($1 =~ ^[0-9xX+.-]+$ && $1 == *[xX]*) ]]; }

# add_steps WORD [listed]: appends to steps what it names; a list takes commas, 01,03-05.
add_steps() {
  local from to step number found=false words word
  if [[ $1 == *,* ]]; then
    IFS=, read -r -a words <<<"$1"
    for word in "${words[@]}"; do
      [ -n "$word" ] || die "'$1' names nothing between two commas; write for example 01,02 or 01,03-05."
      add_steps "$word" listed
    done
    return
  fi
  if [ "$1" = all ]; then
    mapfile -t -O "${#steps[@]}" steps < <(all_steps)
    return
  fi
  if [[ $1 =~ ^([0-9]{1,2})-([0-9]{1,2})$ ]]; then
    from=$((10#${BASH_REMATCH[1]})) to=$((10#${BASH_REMATCH[2]}))
    ((from <= to)) || die "the range $1 goes backwards: write ${BASH_REMATCH[2]}-${BASH_REMATCH[1]}."
    for step in $(all_steps); do
      if ((10#${step%%_*} >= from && 10#${step%%_*} <= to)); then steps+=("$step") found=true; fi
    done
    $found || die "there is no step from ${BASH_REMATCH[1]} to ${BASH_REMATCH[2]}; the steps are: $(all_steps | tr '\n' ' ')"
    return
  fi
  if [[ $1 =~ ^[0-9]{1,2}$ ]] && ((${#steps[@]} > 0)) && [ -z "${2-}" ]; then # as the second word it may have been meant as a size
    number=$((10#$1))
    for step in $(all_steps); do
      if ((10#${step%%_*} == number)); then found=true; fi
    done
    $found || die "there is no step $1: one or two digits name a step, so write that cube as ${number}x${number}x$number."
  fi
  resolve_step "$1"
  steps+=("$resolved_step")
}

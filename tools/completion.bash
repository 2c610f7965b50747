# shellcheck shell=bash
# Tab completion for the tools: `source tools/completion.bash` in bash, by hand or in ~/.bashrc. Completes steps, variants
# (of programs that were built), flags, exercises and the programs of tools/play. Everything is read from the repository when
# you press Tab; nothing is built and there is no list to keep.

_gemm_steps_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# _gemm_steps_find GLOB PREFIX SUFFIX: the files' names without these.
_gemm_steps_find() {
  local path
  compgen -G "$_gemm_steps_root/$1" | while read -r path; do
    path=${path%"$3"} path=${path##*/}
    printf '%s\n' "${path#"$2"}"
  done
}

# The folders; their names without the number where a letter was typed.
_gemm_steps_steps() {
  compgen -G "$_gemm_steps_root/steps/[0-9][0-9]_*/kernel.cuh" |
    if [[ ${1:-} == [a-z]* ]]; then sed -E 's,.*/[0-9]{2}_(.*)/.*,\1,'; else sed -E 's,.*/(.*)/.*,\1,'; fi
}

# _gemm_steps_folder STEP: 1, 01, naive and 01_naive mean 01_naive.
_gemm_steps_folder() {
  local wanted=${1#steps/} step
  while read -r step; do
    case $step in "$wanted" | "${wanted}"_* | "0${wanted}"_* | [0-9][0-9]_"$wanted") printf '%s\n' "$step" && return ;; esac
  done < <(_gemm_steps_steps)
  return 1
}

# _gemm_steps_variants STEP: what its program lists, if it was built.
_gemm_steps_variants() {
  local step program
  step=$(_gemm_steps_folder "$1") || return 0
  for program in "$_gemm_steps_root"/build/{emulator,gpu}/bin/"$step"; do
    if [ -x "$program" ]; then
      "$program" --list 2>/dev/null </dev/null | sed -n -E 's/^  ([^ ]+).*/\1/p'
      return
    fi
  done
}

# _gemm_steps_flags FILE...: flags that these sources define, or that a script's first comment names.
_gemm_steps_flags() {
  local file
  for file in "$@"; do
    file=$_gemm_steps_root/$file
    case $file in
      *.cpp) sed -n -E 's/.*"(--[a-z][a-z0-9-]*)", *[a-z].*/\1/p' "$file" ;;
      *)
        # A script in Python has its flags anywhere, one of bash in its first comment.
        if [[ $(head -n 1 "$file") == *python3 ]]; then
          grep -o -E '["[]--[a-z][a-z0-9-]*' "$file" | tr -d '["'
        else
          sed -n '/^#/!q; p' "$file" | grep -o -E -- '--[a-z][a-z0-9-]*'
        fi
        ;;
    esac
  done
  echo --help
}

_gemm_steps_step_flags() {
  local file
  while read -r file; do _gemm_steps_flags "common/harness/cli/$file"; done < <(_gemm_steps_find "common/harness/cli/*.cpp" "" "") |
    grep -v -x -e --trace-untraced # tools/run passes it
}

# _gemm_steps_value FLAG WORD...: the values of a flag behind these words, or false where any file will do.
_gemm_steps_value() {
  local flag=$1 word
  shift
  case $flag in
    --backend) printf '%s\n' gpu emulator ;;
    --gpu) printf '%s\n' sm_80 sm_86 sm_89 sm_90 sm_100 ;;
    --mode) printf '%s\n' burst sustained both ;;
    --completion) printf '%s\n' random earliest latest ;;
    --elect) printf '%s\n' any lowest ;;
    --suite) printf '%s\n' public deepgemm grid ;;
    --pattern) printf '%s\n' exact normal uniform identity arange special cancelling ;;
    --bias) printf '%s\n' none column row ;;
    --activation) printf '%s\n' none relu leaky_relu gelu gelu_erf silu ;;
    --variant)
      for word in "$@"; do
        if [[ $word != -* ]] && _gemm_steps_folder "$word" >/dev/null; then _gemm_steps_variants "$word"; fi
      done
      echo all
      ;;
    --json | --html | --html-data | --trace | --trace-untraced | --file | --output | --out) return 1 ;;
    *) ;;
  esac
}

# _gemm_steps_words TOOL WORD...: what may stand behind these words, flags apart.
_gemm_steps_words() {
  local tool=$1 typed=$2 step
  shift 2
  case $tool in
    run) _gemm_steps_steps "$typed" ;;
    compare) _gemm_steps_steps "$typed" && echo all ;;
    rivals) (($# == 0)) || _gemm_steps_steps "$typed" ;; # the first is a folder
    profile) (($# > 0)) || _gemm_steps_steps "$typed" ;;
    diff-steps) (($# > 1)) || _gemm_steps_steps "$typed" ;;
    sass)
      case ${1:-} in
        "") _gemm_steps_steps "$typed" && printf '%s\n' diff check update ;;
        diff) (($# > 2)) || _gemm_steps_steps "$typed" ;;
        check | update) _gemm_steps_steps "$typed" ;;
      esac
      ;;
    test) printf '%s\n' emulator asan coverage gpu ;;
    records) (($# > 0)) || sed -n -E 's/^  ([a-z]+)   .*/\1/p' "$_gemm_steps_root/tools/records" ;;
    play)
      case ${1:-} in
        "") _gemm_steps_find "tools/playground/play_*.cpp" play_ .cpp ;;
        events) _gemm_steps_steps "$typed" ;;
        *)
          (($# > 1)) || sed -n 's/.*add_subcommand("\([a-z]*\)".*/\1/p' "$_gemm_steps_root/tools/playground/play_$1.cpp" 2>/dev/null
          ;;
      esac
      ;;
    exercise)
      case $# in
        0) compgen -G "$_gemm_steps_root/steps/*/exercises" | sed -E 's,.*/(.*)/exercises,\1,' ;;
        1) step=$(_gemm_steps_folder "$1") && _gemm_steps_find "steps/$step/exercises/*.md" "" .md ;;
        2) printf '%s\n' start check run hint solution ;;
      esac
      ;;
  esac
}

_gemm_steps_flags_of() {
  local tool=$1
  shift
  case $tool in
    run) _gemm_steps_flags tools/run && _gemm_steps_step_flags | grep -v -x -e --suite -e --population ;;
    compare) _gemm_steps_flags tools/compare && _gemm_steps_step_flags ;;
    sass) _gemm_steps_flags tools/sass tools/sass_reader/main.cpp | grep -v -x -e --root -e --object -e --linked ;;
    emulate) _gemm_steps_flags tools/emulate tools/own_kernel/emulate.cpp ;;
    sweep | measuring | rivals) _gemm_steps_flags "tools/$tool" "tools/${tool}_program/main.cpp" ;;
    play)
      printf '%s\n' --backend --help
      if [ -n "${1:-}" ]; then _gemm_steps_flags "tools/playground/play_$1.cpp"; fi
      ;;
    exercise) if [ "${3:-}" = run ]; then _gemm_steps_step_flags; else printf '%s\n' --list --restart --help; fi ;;
    *) _gemm_steps_flags "tools/$tool" ;;
  esac
}

_gemm_steps() {
  local line=${COMP_LINE:0:COMP_POINT} tool typed prefix='' flag='' candidates word words=() plain=()
  COMPREPLY=()
  # bash takes words apart at ':' and '='; a step with its variant, 02:32, is one word.
  read -r -a words <<<"$line"
  case $line in
    *[[:space:]]) typed= ;;
    *) typed=${words[-1]} && unset 'words[-1]' ;;
  esac
  tool=${words[0]#"$_gemm_steps_root"/} tool=${tool#*tools/}
  for word in "${words[@]:1}"; do
    if [ -n "$flag" ]; then
      flag= # this was its value
    elif [[ $word == -* ]]; then
      if _gemm_steps_takes_value "$word"; then flag=$word; fi
    else
      plain+=("$word")
    fi
  done
  if [[ $typed == --*=* ]]; then
    flag=${typed%%=*} prefix=${typed%%=*}=
  elif [[ -z $flag && $typed == *:* && $tool =~ ^(compare|sass)$ ]]; then
    prefix=${typed%%:*}:
  fi
  if [ -n "$flag" ]; then
    candidates=$(_gemm_steps_value "$flag" "${plain[@]}") || {
      compopt -o default 2>/dev/null
      return
    }
    # --variant 32,16: the last of the list.
    if [[ $flag == --variant && $typed == *,* ]]; then prefix=${typed%,*},; fi
  elif [ -n "$prefix" ]; then
    candidates=$(_gemm_steps_variants "${prefix%:}")
  elif [[ $tool == rivals && ${#plain[@]} == 0 && $typed != -* ]]; then
    compopt -o default 2>/dev/null
    return
  elif [[ $typed == -* ]]; then
    candidates=$(_gemm_steps_flags_of "$tool" "${plain[@]}")
  else
    candidates=$(_gemm_steps_words "$tool" "$typed" "${plain[@]}")
  fi
  mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "${typed#"$prefix"}" | sort -u)
  # What bash took for other words stays as it is.
  for word in : =; do
    if [[ $COMP_WORDBREAKS == *$word* && $prefix == *$word* ]]; then prefix=${prefix#*"$word"}; fi
  done
  COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
}

# _gemm_steps_takes_value FLAG: true if the next word belongs to it.
_gemm_steps_takes_value() {
  case $1 in
    --backend | --gpu | --variant | --suite | --population | --json | --html | --html-data | --trace | --tile | --shape | --order | --arch | --swizzle | --rows | --m | --n | --at | --row-bytes) ;;
    --mode | --completion | --pattern | --alpha | --beta | --bias | --activation | --bias-length | --aux-pitch | --aux-offset | --groups | --top-k | --c-pitch | --c-offset | --seed | --relaunch | --rounds | --seconds | --schedule-seed | --slow-warps | --sms | --allow | --strict | --elect | --trace-ctas | --trace-ctas-per-sm) ;;
    --trace-untraced | --schedule | --without | --kind | --replay | --events | --total | --seeds | --in-cache | --weak | --file | --output | --out | --port | --extent | --stride | --box | --element | --l2 | --base) ;;
    --address | --leading | --base-offset | --waves | --tiles | --k-tiles | --workers) ;;
    --ctas | --piece | --delay | --ranks) ;;
    *) return 1 ;;
  esac
}

# Only these spellings: `test` and `format` alone are other people's commands.
while read -r _gemm_steps_tool; do
  complete -F _gemm_steps "tools/$_gemm_steps_tool" "./tools/$_gemm_steps_tool" "$_gemm_steps_root/tools/$_gemm_steps_tool"
done < <(cd "$_gemm_steps_root/tools" && for _gemm_steps_tool in * figures/*.py; do
  if [ -f "$_gemm_steps_tool" ] && [ -x "$_gemm_steps_tool" ]; then printf '%s\n' "$_gemm_steps_tool"; fi
done)
unset _gemm_steps_tool

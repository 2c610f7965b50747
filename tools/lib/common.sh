# shellcheck shell=bash disable=SC2034 # the variables are for the scripts that source this
# Shared by the scripts in tools/: messages, the toolchain, steps, builds. Sourced, never run.

set -eEuo pipefail
set +o posix # `sh tools/run`, where sh is bash

for needed in realpath dirname basename awk sed grep mktemp; do
  command -v "$needed" >/dev/null 2>&1 || {
    printf '%s: error: %s\n' "tools/${0##*/}" "PATH is '$PATH', where there is no $needed; add the folder that has it (/usr/bin, say)." >&2
    exit 2
  }
done
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
program="tools/$(basename "$(realpath "$0")")"

say() { printf '%s\n' "$*" 2>/dev/null || die "standard output cannot be written."; }

# find_columns: sets columns, those of the terminal that standard output is, to 0 where it is none.
find_columns() {
  local size
  columns=0
  if [ -t 1 ] && { size=$(stty size <&3 2>/dev/null); } 3<&1; then columns=${size#* }; fi
}

# say_folded TEXT: on a terminal broken between words; what follows stands as far in as the line does. A pipe gets it as it is.
say_folded() {
  local text=$1
  find_columns
  if ((columns > 0)); then
    text=$(awk -v columns="$columns" '{
      match($0, /^ */)
      indent = substr($0, 1, RLENGTH)
      while (length($0) > columns) {
        for (at = columns + 1; at > length(indent) + 1 && substr($0, at, 1) != " "; at--) {}
        if (at <= length(indent) + 1) at = index(substr($0, length(indent) + 1), " ") + length(indent)
        if (at <= length(indent)) break
        print substr($0, 1, at - 1)
        $0 = indent substr($0, at + 1)
      }
      print
    }' <<<"$text")
  fi
  say "$text"
}

note() { printf '%s\n' "$*" >&2 || true; }
# One sentence: what is wrong and what would be right. Status 2: bad input or an unusable machine. Where nobody can read the
# sentence, the status alone tells.
die() {
  printf '%s: error: %s\n' "$program" "$*" >&2 || true
  exit 2
}

# Prints the script's own first comment and ends the script, whether or not the text could be written: what follows --help
# must not happen.
usage() {
  local text
  text=$(awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0" | fill 80) || die "its explanation in $0 cannot be read."
  say "$text"
  exit 0
}

# fill COLUMNS: prose of standard input in lines of so many columns. A paragraph is filled again. A line that is indented, or
# follows Usage:, is a line of its own: what is too long for it goes on below its last column, which two blanks set off.
fill() {
  awk -v columns="$1" '
    function put(text, hang,    at, first) {
      first = 1
      while (length(text) > columns) {
        for (at = columns + 1; at > hang + 1 && substr(text, at, 1) != " "; at--) {}
        if (at <= hang + 1) at = hang + index(substr(text, hang + 1), " ")
        if (at <= hang) break
        print substr(text, 1, at - 1)
        text = sprintf("%" hang "s", "") substr(text, at + 1)
      }
      print text
    }
    function flush(    hang) {
      if (entry != "") {
        hang = 4
        if (match(entry, /^ *[^ ].*   *[^ ]/)) hang = RLENGTH - 1
        if (hang > columns * 0.6) hang = match(entry, /[^ ]/) + 3
        put(entry, hang)
      }
      if (paragraph != "") put(paragraph, 0)
      entry = paragraph = ""
    }
    /^ *$/ { flush(); print ""; next }
    # A line that goes on the one before it stands in its last column.
    entry != "" && match($0, /^ */) && RLENGTH > 4 && !/^ *tools\// { sub(/^ */, " "); entry = entry $0; next }
    /^ / || /^Usage:/ { flush(); entry = $0; next }
    { if (entry != "") flush(); paragraph = paragraph (paragraph == "" ? "" : " ") $0 }
    END { flush() }'
}

have() { command -v "$1" >/dev/null 2>&1; }

# version_at_least FOUND WANTED
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# make_scratch PARENT: sets scratch to a new folder beside what will be put in place at once when complete; it is
# removed when the script ends, however it ends.
scratch_folders=()
make_scratch() {
  need_writable "$1"
  scratch=$(mktemp -d "$1/.part.XXXXXX")
  chmod 755 "$scratch"
  scratch_folders+=("$scratch")
}

# How a script ends. Status 1 means a wrong result, so a script never ends with it by accident.
on_exit() {
  if (($1 == 254)); then # bash could not fork
    printf '%s: error: %s\n' "$program" "the system starts no more processes (ulimit -u); end some or raise the limit." >&2
    exit 2
  fi
  ((${#scratch_folders[@]} == 0)) || rm -rf "${scratch_folders[@]}"
}
# A command or an assignment that fails where nobody looks: one sentence. Programs of ours, called by their path, and
# functions pass their status on.
on_error() {
  ((BASH_SUBSHELL == 0)) || return 0
  if [[ $2 =~ ^[a-z_]+= ]] || [[ $(type -t "${2%%[[:space:]]*}") =~ ^(file|builtin)$ && ! $2 =~ ^(return|exit|\[) ]]; then
    die "this failed with status $1: ${2%%$'\n'*}"
  fi
}
trap 'on_exit $?' EXIT
trap 'on_error $? "$BASH_COMMAND"' ERR
# Ctrl-C ends a script by the signal itself. Only while a program runs that may catch the signal and end as usual does a trap end
# the script: elsewhere the trap can meet bash 5.2 inside a command substitution, where it reports an error of syntax or never ends.
end_at_interrupts() { trap 'exit 130' INT TERM; }
end_by_interrupts() { trap - INT TERM; }


# need_writable FOLDER: makes the folder if need be; one sentence when nothing can be written there.
need_writable() {
  local said status=0 owner
  said=$(
    export LC_ALL=C
    {
      mkdir -p "$1" && probe=$(mktemp "$1/.probe.XXXXXX") || exit
      head -c 65536 /dev/zero >"$probe" || status=$?
      rm -f "$probe"
      exit "${status:-0}"
    } 2>&1
  ) || status=$?
  ((status != 0)) || return 0
  said=${said##*$'\n'}
  case $said in
    *"No space left"* | *"quota exceeded"*)
      die "cannot write in $1: ${said##*: }; tools/clean --dry shows how much the builds take." ;;
    *"Permission denied"*)
      owner=$1
      while [ ! -e "$owner" ]; do owner=$(dirname "$owner"); done
      die "cannot write in $1: Permission denied ($owner belongs to $(stat -c %U "$owner"))." ;;
    *"Read-only"*) die "cannot write in $1: Read-only file system; work in a copy of the repository." ;;
    *": "*) die "cannot write in $1: ${said##*: }." ;;
    *) die "cannot write in $1 (ulimit -f is $(ulimit -f))." ;;
  esac
}

# Compilers put their intermediate files there; nvcc and others give up without a word that helps.
check_temporary_folder() {
  [ -z "${TMPDIR:-}" ] || { [ -d "$TMPDIR" ] && [ -w "$TMPDIR" ]; } ||
    die "TMPDIR is '$TMPDIR', which is not a folder that can be written; make it or unset TMPDIR."
}

# how_it_died STATUS: what the signal behind an exit status above 128 means to somebody who wrote a kernel.
how_it_died() {
  local signal
  signal=$(kill -l "$1" 2>/dev/null) || signal=$(($1 - 128))
  case $signal in
    SEGV | BUS) printf '%s' "SIG$signal: it touched memory that is not its own, or its stack ran out" ;;
    ABRT) printf '%s' "SIGABRT: abort(), an assertion, or an exception that nobody caught" ;;
    FPE) printf '%s' "SIGFPE: a division by zero" ;;
    ILL) printf '%s' "SIGILL: an instruction that this processor does not have" ;;
    KILL) printf '%s' "SIGKILL: the memory did not suffice, or a limit such as ulimit -t was reached" ;;
    XCPU) printf '%s' "SIGXCPU: ulimit -t, the seconds of processor time" ;;
    XFSZ) printf '%s' "SIGXFSZ: ulimit -f, the size of a file" ;;
    *) printf '%s' "signal $signal" ;;
  esac
}

# run_program WHAT COMMAND...: runs a program of ours, WHAT to a reader, and returns its status. One that a signal ended is told
# in a sentence, with status 2; bash would print its own words, the line of the script and the whole command.
run_program() {
  local what=$1 status=0
  shift
  end_at_interrupts
  { "$@" 2>&7 7>&- || status=$?; } 7>&2 2>/dev/null
  end_by_interrupts
  case $status in
    129 | 130 | 141 | 143) ;; # the terminal closed, Ctrl-C, nobody reads on, SIGTERM
    *) ((status <= 128)) || die "$what was ended by $(how_it_died "$status")." ;;
  esac
  return "$status"
}

# ---- Steps -------------------------------------------------------------------------------------------------------

all_steps() {
  local kernel
  for kernel in "$root"/steps/[0-9][0-9]_*/kernel.cuh; do
    if [ -e "$kernel" ]; then basename "$(dirname "$kernel")"; fi
  done
}

# find_nearest WORD CANDIDATE...: sets nearest to the candidate that is most like WORD, WORD itself if it is one. Without
# python3 it is the first candidate.
find_nearest() {
  local word=$1 candidate
  shift
  nearest=${1-}
  for candidate in "$@"; do
    if [ "$candidate" = "$word" ]; then
      nearest=$word
      return
    fi
  done
  if have python3; then nearest=$(python3 -B "$root/tools/lib/nearest.py" "$word" "$@"); fi
}

# resolve_step NAME: sets resolved_step; "01", "1", "naive" and "01_naive" all mean the folder 01_naive.
resolve_step() {
  local wanted=${1%/} steps step nearest
  wanted=${wanted#steps/}
  mapfile -t steps < <(all_steps)
  ((${#steps[@]} > 0)) || die "there is no step in $root/steps."
  [ -n "$wanted" ] || die "a step's name is empty; the steps are: ${steps[*]}"
  for step in "${steps[@]}"; do
    if [ "$wanted" = "$step" ] || [ "$wanted" = "${step%%_*}" ] || [ "0$wanted" = "${step%%_*}" ] ||
      [ "$wanted" = "${step#*_}" ]; then
      resolved_step=$step
      return
    fi
  done
  find_nearest "$wanted" "${steps[@]}" "${steps[@]#*_}" "${steps[@]%%_*}"
  for step in "${steps[@]}"; do
    case $nearest in "${step#*_}" | "${step%%_*}") nearest=$step ;; esac
  done
  die "there is no step '$1'; did you mean $nearest? The steps are: ${steps[*]}"
}

# step_field STEP FIELD: prints what the step says of itself in steps/steps.json, a text; nothing where it is not there.
step_field() {
  [ ! -f "$root/steps/steps.json" ] || sed -nE "s/^\{\"name\": \"$1\",.*\"$2\": \"([^\"]*)\".*$/\1/p" "$root/steps/steps.json"
}

# find_architecture STEP: sets architecture to what the step is compiled for: 80 (and every newer GPU), 90a or 100a.
find_architecture() {
  architecture=$(step_field "$1" architecture)
  case $architecture in
    80 | 90a | 100a) ;;
    *) die "steps/steps.json does not say which GPUs $1 is for; 'cmake --build build/emulator --target describe_steps' writes it." ;;
  esac
}

# ---- CUDA --------------------------------------------------------------------------------------------------------

# Finds nvcc (CUDACXX, PATH, CUDA_HOME, the usual place, tools/bootstrap --cuda) and exports what CMake and the
# programs need to find the rest of that toolkit. Sets nvcc; empty when there is none, with the reason in nvcc_problem. One
# that does not work gets a note; where CUDACXX names it, no other is taken. GEMM_STEPS_SYSTEM_CUDA replaces the usual place.
find_cuda() {
  local candidate toolkit path tried=' '
  check_temporary_folder
  nvcc='' nvcc_problem=
  for candidate in "${CUDACXX:-}" "$(command -v nvcc || true)" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" \
    "${GEMM_STEPS_SYSTEM_CUDA-/usr/local/cuda}/bin/nvcc" "$root/.toolchain/cuda/bin/nvcc"; do
    [ -n "$candidate" ] || continue
    if [ ! -x "$(command -v "$candidate" 2>/dev/null)" ]; then
      [ "$candidate" = "${CUDACXX:-}" ] || continue
      nvcc_problem="CUDACXX is '$candidate', which is not a program"
      note "$program: $nvcc_problem; no other nvcc is taken in its place"
      unset CUDACXX
      break
    fi
    path=$(realpath "$(command -v "$candidate")")
    [[ $tried != *" $path "* ]] || continue # PATH, CUDA_HOME and the usual place are often one
    tried+="$path "
    # Asked of nvcc itself: what is on the PATH may be a wrapper that lies somewhere else.
    toolkit=$("$candidate" --dryrun -x cu -c /dev/null </dev/null 2>&1 | sed -n 's/^#\$ *TOP=//p') || true
    if toolkit=$(realpath -q "$toolkit"); then
      nvcc=$path
      break
    fi
    nvcc_problem="the nvcc at $candidate does not work"
    note "$program: $nvcc_problem: '$candidate --dryrun' names no toolkit"
    if [ "$candidate" = "${CUDACXX:-}" ]; then
      unset CUDACXX
      break
    fi
  done
  # Disassemblers fetched on their own come last, so that a complete toolkit wins.
  PATH=$PATH:$root/.toolchain/bin
  [ -n "$nvcc" ] || return 0
  export CUDACXX=$nvcc PATH=${PATH%":$root/.toolchain/bin"}:$toolkit/bin:$root/.toolchain/bin
  if [ -d "$toolkit/lib64" ]; then
    export CUDAToolkit_ROOT=$toolkit
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$toolkit/lib64
  fi
}

# Asks the driver for the first GPU. Sets gpu_name and gpu_capability (90 for 9.0, empty when unknown), and returns
# false with the reason in gpu_problem when there is none to use.
find_gpu() {
  local line
  gpu_name='' gpu_capability='' gpu_problem=''
  if ! have nvidia-smi; then
    if [ -e /dev/nvidia0 ]; then
      gpu_name="the GPU at /dev/nvidia0"
      return 0
    fi
    gpu_problem="no NVIDIA GPU here"
    return 1
  fi
  if ! line=$(nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null | head -n 1) ||
    [ -z "$line" ] || [ "${line#No devices}" != "$line" ]; then
    gpu_problem="nvidia-smi finds no usable GPU"
    return 1
  fi
  gpu_name=${line%,*}
  gpu_capability=${line##*, }
  gpu_capability=${gpu_capability/./}
  if ! [[ $gpu_capability =~ ^[0-9]+$ ]]; then
    gpu_capability=
  elif ((gpu_capability < 80)); then
    gpu_problem="$gpu_name has compute capability ${gpu_capability:0:-1}.${gpu_capability: -1}, the steps need 8.0"
    return 1
  fi
}

# take_backend ARGUMENT...: sets wanted_backend from --backend, and remaining to the arguments that are not ours.
take_backend() {
  wanted_backend=auto
  remaining=()
  while (($# > 0)); do
    case $1 in
      --backend)
        (($# > 1)) || die "--backend needs a value: gpu or emulator."
        wanted_backend=$2
        shift
        ;;
      --backend=*) wanted_backend=${1#*=} ;;
      *) remaining+=("$1") ;;
    esac
    shift
  done
  case $wanted_backend in
    auto | gpu | emulator) ;;
    *) die "--backend is '$wanted_backend'; it must be gpu or emulator." ;;
  esac
}

# choose_backend WANTED STEP...: sets backend and reason. WANTED is auto, gpu or emulator.
choose_backend() {
  local wanted=$1 step wanted_gpu wanted_capability
  shift
  case $wanted in
    emulator) backend=emulator reason="asked for" ;;
    gpu)
      [ -n "$nvcc" ] || die "the GPU build needs nvcc, ${nvcc_problem:-which is not here}: install the CUDA Toolkit (12.4 or newer)" \
        "or run tools/bootstrap --cuda."
      find_gpu || die "$gpu_problem; --backend emulator works on any machine."
      backend=gpu reason="asked for"
      ;;
    auto)
      backend=emulator
      if ! find_gpu; then
        reason=$gpu_problem
      elif [ -z "$nvcc" ]; then
        reason="$gpu_name is here but ${nvcc_problem:-no nvcc}; tools/bootstrap --cuda fetches one"
      else
        for step in "$@"; do
          find_architecture "$step"
          case $architecture in
            90a) wanted_gpu=Hopper wanted_capability=90 ;;
            100a) wanted_gpu=Blackwell wanted_capability=100 ;;
            *) continue ;; # every GPU that find_gpu accepts
          esac
          if [ -n "$gpu_capability" ] && [ "$gpu_capability" != "$wanted_capability" ]; then
            reason="$step needs $wanted_gpu (compute capability ${wanted_capability%0}.0) and $gpu_name is not"
            return 0
          fi
        done
        backend=gpu reason="$gpu_name and nvcc are here"
      fi
      ;;
  esac
}

# check_git: git says which files belong to the repository; without it there would be none, and nothing to complain of.
check_git() {
  local said
  have git || die "git is not installed; it says which files belong to the repository."
  said=$(git -C "$root" rev-parse --is-inside-work-tree 2>&1) ||
    die "$root is not a git repository that can be read (${said%%$'\n'*}); git says which files to look at."
}

# ---- Building ----------------------------------------------------------------------------------------------------

# The compiler cache must have a folder that can be written; where HOME is read-only the build goes on without it.
check_cache() {
  local folder
  have ccache && [ -z "${CCACHE_DISABLE:-}" ] || return 0
  folder=$(ccache --get-config cache_dir 2>/dev/null) && [ -n "$folder" ] || return 0
  if { mkdir -p "$folder" && [ -w "$folder" ]; } 2>/dev/null; then return 0; fi
  note "$program: the compiler cache $folder cannot be written, so that nothing is kept there; CCACHE_DIR names another folder"
  export CCACHE_DISABLE=1
}

check_compilers() {
  local version
  check_temporary_folder
  check_cache
  have cmake || die "cmake is not installed; CMake 3.25 or newer is needed (tools/bootstrap installs it)."
  version=$(cmake --version 2>&1) || die "cmake does not run: ${version##*$'\n'}"
  version=$(sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p' <<<"$version")
  version_at_least "$version" 3.25 || die "cmake is version $version; 3.25 or newer is needed."
  have ninja || die "ninja is not installed (tools/bootstrap installs it)."
  have "${CXX:-c++}" || die "the C++ compiler '${CXX:-c++}' is not installed (tools/bootstrap installs g++)."
}

# Every folder with a kernel.cuh is a step, and one with a bad name stops all builds: said here without CMake's words.
check_step_folders() {
  local kernel step before=
  for kernel in "$root"/steps/*/kernel.cuh; do
    [ -e "$kernel" ] || continue
    step=${kernel%/*} step=${step##*/}
    [[ $step =~ ^[0-9][0-9]_[a-z0-9_]+$ ]] ||
      die "steps/$step is not named like a step (two digits, an underscore, a name in lower case); rename the folder."
    [ "${step%%_*}" != "${before%%_*}" ] ||
      die "steps/$before and steps/$step have the same number; give one of them another."
    before=$step
  done
}

# lock_build NAME: one command at a time builds in build/NAME; Ninja sees to nothing of the kind. Until unlock_build.
lock_build() {
  have flock || return 0
  { exec 9>>"$root/build/.lock-$1"; } 2>/dev/null || return 0
  flock -w 1 9 2>/dev/null || {
    note "$program: another command builds in build/$1; this one waits for it"
    flock 9 2>/dev/null || true # a file system without locks
  }
}
unlock_build() { { exec 9>&-; } 2>/dev/null || true; }

# start_again FOLDER: empties it.
start_again() {
  rm -rf "$1" 2>/dev/null || die "cannot empty $1; remove it by hand."
  mkdir -p "$1"
}

# configure PRESET: when there is no build folder yet, or none that can be used.
configure() {
  local preset=$1 folder=$root/build/$1 log cached
  need_writable "$folder"
  log=$folder/configure.log
  if [ -f "$folder/CMakeCache.txt" ]; then
    # A cache of another place, or of a compiler that is gone, cannot be used again.
    cached=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt")
    if [ "$cached" != "$root" ]; then start_again "$folder"; fi
  fi
  if [ -f "$folder/CMakeCache.txt" ]; then
    cached=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$folder/CMakeCache.txt")
    if [ "$preset" = gpu ] && { [ ! -x "$cached" ] || [ "$(realpath "$cached")" != "$nvcc" ]; }; then
      start_again "$folder"
    fi
  fi
  if [ ! -f "$folder/build.ninja" ]; then
    note "$program: setting up build/$preset; the first build takes a minute or two"
    if ! (cd "$root" && cmake --preset "$preset" >"$log" 2>&1); then
      show_failure "$log"
      die "configuring the $preset build failed (everything it said is in $log)."
    fi
  fi
}

# last_progress LOG: how far Ninja is and with which file, as "[n/N] file".
last_progress() {
  local line
  line=$(sed -n -E 's,^(\[[0-9]+/[0-9]+\]) .* object (.*/)?CMakeFiles/[^/]+\.dir/(__/)*(.*)\.o$,\1 \4,p; t
    s,^(\[[0-9]+/[0-9]+\]) Linking [A-Z]+ [a-z ]* (\S+)$,\1 linking \2,p; t
    s,^(\[[0-9]+/[0-9]+\]) (cd |[^ ]*cmake ).*,\1 preparing,p; t
    s,^\[[0-9]+/[0-9]+\] .*$,&,p' "$1" 2>/dev/null | tail -n 1)
  say "${line/"${root#/}/"/}"
}

# line_can_change: standard error is a terminal that knows how to clear a line.
line_can_change() { [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; }

# watch_build WHAT LOG: says what is done after three seconds, then how far it is: on a terminal in one line that changes,
# elsewhere in a line every ten seconds.
progress_seconds=10
watch_build() {
  local now='' before='' width
  sleep 3 >/dev/null 2>&1
  kill -0 $$ 2>/dev/null || return 0 # $$ is gone after an interrupt
  note "$program: $1"
  width=$( (stty size <&2) 2>/dev/null | cut -d ' ' -f 2) || true
  while kill -0 $$ 2>/dev/null; do
    now=$(last_progress "$2") || true
    if [ "$now" != "$before" ]; then
      if line_can_change; then printf '\r%s\033[K' "${now:0:$((${width:-80} - 1))}" >&2; else note "$program: $now"; fi
      before=$now
    fi
    if line_can_change; then sleep 0.5; else sleep "$progress_seconds"; fi >/dev/null 2>&1
  done
}

# patiently WHAT LOG COMMAND...: runs the command with its output in LOG; what takes longer is watched.
patiently() {
  local what=$1 log=$2 watch status=0
  shift 2
  watch_build "$what" "$log" 9>&- &
  watch=$!
  disown "$watch" # nobody reports its end
  end_at_interrupts
  NINJA_STATUS='[%f/%t] ' "$@" >"$log" 2>&1 9>&- || status=$?
  end_by_interrupts
  kill -KILL "$watch" 2>/dev/null || true # no trap of this shell can come in between
  if line_can_change; then printf '\r\033[K' >&2; fi
  return "$status"
}

# show_failure LOG: prints what went wrong: that the disk is full, the errors of CMake without its call stack, or else what
# was said of each file that did not compile, or else everything.
show_failure() {
  need_writable "$(dirname "$1")"
  if grep -q -E 'No space left on device|Disk quota exceeded' "$1"; then
    die "the disk is full; tools/clean --dry shows how much the builds take."
  fi
  if grep -q 'Too many open files' "$1"; then
    die "a build opens more files at once than ulimit -n allows ($(ulimit -n)); raise that limit."
  fi
  if grep -q '^CMake Error' "$1"; then
    # CMake breaks its lines; those of one paragraph belong together.
    awk 'function flush() { if (text != "") print "  " text; text = "" }
      /^CMake Error: / { flush(); on = 1; text = substr($0, 14); next }
      /^CMake Error/ { flush(); on = 1; next }
      /^(Call Stack|--|\[|ninja:|FAILED:)/ { flush(); on = 0 }
      on && /^ *$/ { flush(); next }
      on && /^(  )?[^ ]/ { sub(/^  /, ""); text = text (text == "" ? "" : " ") $0; next }
      on { flush(); print "  " $0 }
      END { flush() }' "$1" >&2
  elif grep -q '^FAILED: ' "$1"; then
    awk '/^FAILED: / { on = 1; getline; next } /^(\[[0-9]+\/[0-9]+\]|ninja: )/ { on = 0 } on { print "  " $0 }' "$1" >&2
  else
    grep -v -E '^\[[0-9]+/[0-9]+\]' "$1" | sed 's/^/  /' >&2 || true
  fi
}

rebuild() { (cd "$root" && cmake --preset "$1") && cmake --build "$root/build/$1" --target "${@:2}"; }

# build PRESET TARGET...: configures when needed and builds, quietly unless it fails; `all` builds everything. Each set of
# targets has a log of its own in build/PRESET/logs.
build() {
  local preset=$1 folder=$root/build/$1 what log status=0
  shift
  what="compiling $*"
  if [ "$*" = build.ninja ]; then what="reading the project's files"; elif (($# > 4)); then what="compiling $# programs"; fi
  local first=
  if (($# == 1)) && [[ $1 != all && $1 != build.ninja && ! -e $folder/bin/${1/#emulate/emulate_rewrite} ]]; then
    first=' (the first time: a minute or two)'
  fi
  check_step_folders
  need_writable "$root/build"
  lock_build "$preset"
  configure "$preset"
  make_scratch "$folder/logs"
  log=$folder/logs/$(printf '%.100s' "$*" | tr ' /' '++').log
  patiently "$what for the $preset preset$first" "$scratch/log" cmake --build "$folder" --target "$@" || status=$?
  # Somebody has removed what CMake writes when it configures, and only then.
  if ((status != 0)) && grep -q 'missing and no known rule to make it' "$scratch/log"; then
    status=0
    patiently "configuring again, as a file of build/$preset is gone" "$scratch/log" rebuild "$preset" "$@" || status=$?
  fi
  mv -f "$scratch/log" "$log"
  unlock_build
  ((status == 0)) && return
  show_failure "$log"
  die "building $* for the $preset preset failed (all messages are in $log)."
}

# shellcheck shell=bash disable=SC2034 # the variables are for the scripts that source this
# Shared by the scripts in tools/: messages, the toolchain, steps, builds. Sourced, never run.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
program="tools/$(basename "$0")"

say() { printf '%s\n' "$*"; }
note() { printf '%s\n' "$*" >&2; }
# One sentence: what is wrong and what would be right. Status 2: bad input or an unusable machine.
die() {
  printf '%s: error: %s\n' "$program" "$*" >&2
  exit 2
}

# Prints the script's own first comment.
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

have() { command -v "$1" >/dev/null 2>&1; }

# version_at_least FOUND WANTED
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# make_scratch PARENT: sets scratch to a new folder beside what will be put in place at once when complete; it is
# removed when the script ends, however it ends.
scratch_folders=()
remove_scratch() { ((${#scratch_folders[@]} == 0)) || rm -rf "${scratch_folders[@]}"; }
trap remove_scratch EXIT
trap 'exit 130' INT TERM
make_scratch() {
  mkdir -p "$1"
  scratch=$(mktemp -d "$1/.part.XXXXXX")
  chmod 755 "$scratch"
  scratch_folders+=("$scratch")
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

# ---- CUDA --------------------------------------------------------------------------------------------------------

# Finds nvcc (CUDACXX, PATH, CUDA_HOME, the usual place, tools/bootstrap --cuda) and exports what CMake and the
# programs need to find the rest of that toolkit. Sets nvcc; empty when there is none. GEMM_STEPS_SYSTEM_CUDA
# replaces the usual place.
find_cuda() {
  local candidate
  nvcc=
  for candidate in "${CUDACXX:-}" "$(command -v nvcc || true)" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" \
    "${GEMM_STEPS_SYSTEM_CUDA-/usr/local/cuda}/bin/nvcc" "$root/.toolchain/cuda/bin/nvcc"; do
    [ -n "$candidate" ] || continue
    candidate=$(command -v "$candidate" 2>/dev/null || true)
    if [ -x "$candidate" ]; then
      nvcc=$(realpath "$candidate")
      break
    fi
  done
  # Disassemblers fetched on their own come last, so that a complete toolkit wins.
  PATH=$PATH:$root/.toolchain/bin
  [ -n "$nvcc" ] || return 0
  # Asked of nvcc itself: what is on the PATH may be a wrapper that lies somewhere else.
  local toolkit
  toolkit=$("$nvcc" --dryrun -x cu -c /dev/null 2>&1 | sed -n 's/^#\$ *TOP=//p')
  toolkit=$(realpath -q "$toolkit") || die "the nvcc at $nvcc does not work: '$nvcc --dryrun' names no toolkit."
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
  local wanted=$1 step
  shift
  case $wanted in
    emulator) backend=emulator reason="asked for" ;;
    gpu)
      [ -n "$nvcc" ] || die "the GPU build needs nvcc, which is not here: install the CUDA Toolkit (12.4 or newer)" \
        "or run tools/bootstrap --cuda."
      find_gpu || die "$gpu_problem; --backend emulator works on any machine."
      backend=gpu reason="asked for"
      ;;
    auto)
      backend=emulator
      if ! find_gpu; then
        reason=$gpu_problem
      elif [ -z "$nvcc" ]; then
        reason="$gpu_name is here but no nvcc; tools/bootstrap --cuda fetches one"
      else
        for step in "$@"; do
          if ((10#${step%%_*} > 7)) && [ -n "$gpu_capability" ] && [ "$gpu_capability" != 90 ]; then
            reason="$step needs Hopper (compute capability 9.0) and $gpu_name is not"
            return 0
          fi
        done
        backend=gpu reason="$gpu_name and nvcc are here"
      fi
      ;;
  esac
}

# ---- Building ----------------------------------------------------------------------------------------------------

check_compilers() {
  local version
  have cmake || die "cmake is not installed; CMake 3.25 or newer is needed (tools/bootstrap installs it)."
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
  version_at_least "$version" 3.25 || die "cmake is version $version; 3.25 or newer is needed."
  have ninja || die "ninja is not installed (tools/bootstrap installs it)."
  have "${CXX:-c++}" || die "the C++ compiler '${CXX:-c++}' is not installed (tools/bootstrap installs g++)."
}

# configure PRESET: when there is no build folder yet, or none that can be used.
configure() {
  local preset=$1 folder=$root/build/$1 log cached
  mkdir -p "$folder"
  log=$folder/configure.log
  if [ -f "$folder/CMakeCache.txt" ]; then
    # A cache of another place, or of a compiler that is gone, cannot be used again.
    cached=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt")
    if [ "$cached" != "$root" ]; then rm -rf "$folder" && mkdir -p "$folder"; fi
  fi
  if [ -f "$folder/CMakeCache.txt" ]; then
    cached=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$folder/CMakeCache.txt")
    if [ "$preset" = gpu ] && { [ ! -x "$cached" ] || [ "$(realpath "$cached")" != "$nvcc" ]; }; then
      rm -rf "$folder" && mkdir -p "$folder"
    fi
  fi
  if [ ! -f "$folder/build.ninja" ]; then
    note "$program: setting up build/$preset; the first build takes a minute or two"
    if ! (cd "$root" && cmake --preset "$preset" >"$log" 2>&1); then
      awk '/^CMake Error/ { show = 1; next } /^(Call Stack|--)/ { show = 0 } show && NF' "$log" >&2
      die "configuring the $preset build failed (everything it said is in $log)."
    fi
  fi
}

# patiently WHAT LOG COMMAND...: runs the command with its output in LOG; after three seconds it says what it does.
patiently() {
  local what=$1 log=$2 clock status=0
  shift 2
  { sleep 3 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null && note "$program: $what"; } & # $$ is gone after an interrupt
  clock=$!
  disown "$clock" # nobody reports its end
  "$@" >"$log" 2>&1 || status=$?
  kill -KILL "$clock" 2>/dev/null || true # no trap of this shell can come in between
  return "$status"
}

# build PRESET TARGET...: configures when needed and builds, quietly unless it fails; `all` builds everything.
build() {
  local preset=$1 folder=$root/build/$1 log=$root/build/$1/build.log
  shift
  configure "$preset"
  if ! patiently "compiling $* for the $preset preset" "$log" cmake --build "$folder" --target "$@"; then
    grep -v -E '^\[[0-9]+/[0-9]+\]' "$log" | sed 's/^/  /' >&2
    die "building $* for the $preset preset failed (the messages above are in $log)."
  fi
}

# shellcheck shell=bash disable=SC2034,SC2154 # common.sh and the scripts share variables
# Installing what is missing: distribution packages, the CUDA Toolkit, the disassemblers. Sourced after common.sh.

base_packages=(git g++ cmake ninja-build ccache catch2 libcli11-dev libfmt-dev nlohmann-json3-dev
  libboost-context-dev python3 python3-venv python3-jsonschema)
# One version of clang-format: each major version formats differently.
developer_packages=(clang-format-14 clang-tidy lld shellcheck)
page_packages=(emscripten libfmt-dev nlohmann-json3-dev) # for tools/site --emulator

# The wheels of one CUDA Toolkit. The disassemblers were first published for 13.2; they read older machine code.
cuda_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96
  nvidia-cuda-cccl==13.0.85 nvidia-cublas==13.1.0.3)
disassembler_wheels=(nvidia-cuda-cuobjdump==13.2.86 nvidia-cuda-nvdisasm==13.2.86)

# Alone they are no reason to install anything before a build; tools/bootstrap does. Boost is for the emulator. What checks
# records comes from pip where it is missing (tools/lib/environment.py).
can_wait=(git ccache python3-venv python3-jsonschema libboost-context-dev)

# A program counts as there when it can be run, whoever installed it.
command_of() {
  case $1 in
    ninja-build) echo ninja ;;
    g++) if have g++; then echo g++; else echo "${CXX:-c++}"; fi ;;
    g++-aarch64-linux-gnu) echo aarch64-linux-gnu-g++ ;;
    qemu-user) echo qemu-aarch64 ;;
    emscripten) echo em++ ;;
    clang) echo clang++ ;;
    llvm) echo llvm-cov ;;
    git | cmake | ccache | python3 | clang-format-14 | clang-tidy | lld | shellcheck) echo "$1" ;;
  esac
}

# found_by_cmake: the packages of libraries that CMake finds, whoever installed them.
found_by_cmake() {
  have cmake && have ninja && have "${CXX:-c++}" || return 0
  mkdir -p "$root/build/packages" 2>/dev/null || return 0
  cmake -G Ninja -S "$root/tools/lib/packages" -B "$root/build/packages" 2>/dev/null |
    sed -n 's/^-- found //p' | tr '\n' ' ' || true
}

# find_missing NAME...: sets missing to the packages whose programs or libraries are not here. Quick when dpkg knows them.
find_missing() {
  local package tool installed found candidates
  missing=()
  have dpkg-query || return 0 # neither Debian nor Ubuntu: CMake names what it does not find
  installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true) "
  for package in "$@"; do
    tool=$(command_of "$package")
    if [ -n "$tool" ] && have "$tool" || [[ $installed == *" installed:$package "* ]]; then continue; fi
    # In a group: one that a limit kills would be told in bash's words.
    if [ "$package" = python3-venv ] && { python3 -c 'import ensurepip, venv'; } >/dev/null 2>&1; then continue; fi
    if [ "$package" = python3-jsonschema ] && { python3 -c 'import jsonschema'; } >/dev/null 2>&1; then continue; fi
    missing+=("$package")
  done
  [[ " ${missing[*]}" == *-dev* || " ${missing[*]} " == *" catch2 "* ]] || return 0
  found=" $(found_by_cmake) "
  candidates=("${missing[@]}") missing=()
  for package in "${candidates[@]}"; do
    [[ $found == *" $package "* ]] || missing+=("$package")
  done
}

# ensure_packages NAME...: quiet and quick when nothing is missing.
ensure_packages() {
  find_missing "$@"
  ((${#missing[@]} == 0)) || install_missing
}

# ensure_base: what every build needs; when something is missing, the rest comes along.
ensure_base() {
  local package
  find_missing "${base_packages[@]}"
  for package in "${missing[@]}"; do
    if [[ " ${can_wait[*]} " != *" $package "* ]]; then
      install_missing
      return
    fi
  done
}

# prepare WANTED STEP...: installs what is missing, and sets nvcc, backend and reason (choose_backend).
prepare() {
  ensure_base
  check_compilers
  find_cuda # after the compilers: nvcc does not work without g++
  choose_backend "$@"
  if [ "$backend" = emulator ]; then ensure_packages libboost-context-dev; fi
}

# install_missing: with apt-get, as root or with sudo.
install_missing() {
  local sudo=() log by_hand="apt-get install -y ${missing[*]}"
  check_temporary_folder
  if [ "$(id -u)" != 0 ]; then
    have sudo || die "packages are missing and this is not root; run this as root: $by_hand"
    sudo=(sudo)
    # Without a terminal nobody can type a password.
    if [ ! -t 0 ]; then
      sudo=(sudo -n)
      sudo -n true 2>/dev/null || die "packages are missing and sudo wants a password; run: sudo $by_hand"
    fi
  fi
  have apt-get || die "packages are missing and apt-get is not here; install: ${missing[*]}"
  note "$program: installing ${missing[*]}"
  make_scratch "${TMPDIR:-/tmp}"
  log=$scratch/apt.log
  if ! { "${sudo[@]}" apt-get update && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    grep -E '^(E|W|Err):?' "$log" >&2 || tail -n 5 "$log" >&2
    die "apt-get could not install ${missing[*]} (is there a network?); what it said is above."
  fi
}

# offer_packages WHAT NAME...: the same for what can be left out: WHAT needs them, and one line says why when they cannot be had.
offer_packages() {
  local what=$1 said
  shift
  find_missing "$@"
  if ((${#missing[@]} == 0)); then return 0; fi
  # A subshell has no trap of its own, and what the script has in scratch folders stays.
  said=$(trap 'on_exit $?' EXIT && scratch_folders=() && install_missing 2>&1) || note "$program: $what: left out, $(tail -n 1 <<<"$said" | sed 's/^[^:]*: error: //; s/; what it said is above\.$//')"
}

# find_pip FOLDER: sets pip to a command; a throw-away environment in FOLDER where the system has none.
find_pip() {
  pip=(python3 -m pip)
  "${pip[@]}" --version >/dev/null 2>&1 && return 0
  python3 -m venv "$1/venv" >/dev/null 2>&1 && pip=("$1/venv/bin/python" -m pip)
}

# fetch_wheels FOLDER WHEEL...: unpacks them into FOLDER; false when they could not be had, the reason in fetch_log.
fetch_wheels() {
  local folder=$1
  shift
  fetch_log=$folder/pip.log
  find_pip "$folder" || {
    echo "python3 has no pip and cannot make an environment with one" >"$fetch_log"
    return 1
  }
  # No cache and no scripts: the wheels are only unpacked. --target needs no permission to touch the system.
  "${pip[@]}" install --quiet --retries 1 --timeout 15 --disable-pip-version-check --no-input --no-deps \
    --no-compile --no-cache-dir --target "$folder/wheels" "$@" >"$fetch_log" 2>&1 </dev/null
}

# The whole toolkit appears at once under .toolchain/cuda, or not at all.
install_cuda() {
  local folder toolkit
  if [ -x "$root/.toolchain/cuda/bin/nvcc" ]; then return 0; fi
  note "$program: fetching the CUDA Toolkit into .toolchain/cuda (530 MB to download, 850 MB on disk)"
  make_scratch "$root/.toolchain"
  folder=$scratch
  fetch_wheels "$folder" "${cuda_wheels[@]}" "${disassembler_wheels[@]}" || {
    tail -n 3 "$fetch_log" >&2
    die "the CUDA Toolkit could not be fetched with pip (its last words are above); install it from your" \
      "distribution or NVIDIA instead."
  }
  toolkit=$(echo "$folder"/wheels/nvidia/cu*)
  # The wheels hold what running programs need; building needs the usual names as well.
  ln -s lib "$toolkit/lib64"
  mkdir -p "$toolkit/targets/$(uname -m)-linux"
  ln -s ../../include "$toolkit/targets/$(uname -m)-linux/include"
  ln -s ../../lib "$toolkit/targets/$(uname -m)-linux/lib"
  local library
  for library in "$toolkit"/lib/lib*.so.*; do
    ln -sf "$(basename "$library")" "${library%%.so.*}.so"
  done
  "$toolkit/bin/nvcc" --version >/dev/null || die "the fetched nvcc does not run on this machine."
  mv "$toolkit" "$root/.toolchain/cuda"
}

# Toolkits from wheels lack cuobjdump and nvdisasm, which only the SASS tools need.
install_disassembler() {
  local folder tool
  if [ -z "$nvcc" ] || { have cuobjdump && have nvdisasm; }; then return 0; fi
  make_scratch "$root/.toolchain"
  folder=$scratch
  if ! fetch_wheels "$folder" "${disassembler_wheels[@]}"; then
    note "$program: cuobjdump and nvdisasm are missing and could not be fetched; the SASS tools and tests need them."
    return 0
  fi
  mkdir -p "$root/.toolchain/bin"
  for tool in nvdisasm cuobjdump; do
    mv "$(echo "$folder"/wheels/nvidia/cu*/bin/$tool)" "$root/.toolchain/bin/$tool"
  done
}

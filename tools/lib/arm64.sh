#!/usr/bin/env bash
# Usage: tools/lib/arm64.sh [FOLDER]
#
# Unpacks Debian's packages for 64-bit Arm that the emulator and its tests are linked with into FOLDER, or into
# .toolchain/arm64, where cmake/aarch64-linux-gnu.cmake looks for them. Nothing is installed; the compiler and the
# processor's emulator are the packages g++-aarch64-linux-gnu and qemu-user.
set -euo pipefail

die() {
  printf 'tools/lib/arm64.sh: error: %s\n' "$*" >&2
  exit 2
}

case ${1:-} in
  --help | -h)
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
    exit 0
    ;;
  -*) die "there is no argument '$1'; a folder may be named." ;;
esac
folder=${1:-$(dirname "$(realpath "$0")")/../../.toolchain/arm64}
folder=$(realpath -m "$folder")
for tool in apt-get dpkg-deb aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null || die "$tool is not here; 'apt-get install g++-aarch64-linux-gnu qemu-user' on Debian or Ubuntu."
done
[ ! -e "$folder/complete" ] || exit 0
mkdir -p "$folder"/{apt/lists/partial,apt/cache/archives/partial,debs,bin}
: >"$folder/apt/status"
# Lists of their own, so that those of this machine stay as they are.
apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State::Lists=$folder/apt/lists"
  -o "Dir::State::status=$folder/apt/status" -o "Dir::Cache=$folder/apt/cache")
"${apt[@]}" update || die "the lists of packages for arm64 cannot be fetched."
boost=$("${apt[@]}" --no-install-recommends -s install libboost-context-dev 2>/dev/null | awk '/^Inst libboost-?context1|^Inst libboost1/ { print $2 }' || true)
[ -n "$boost" ] || boost='libboost-context1.74.0 libboost-context1.74-dev libboost1.74-dev'
fmt=$("${apt[@]}" -s install libfmt-dev 2>/dev/null | awk '/^Inst libfmt[0-9]/ { print $2 }' || true)
# shellcheck disable=SC2086
(cd "$folder/debs" && "${apt[@]}" download $boost ${fmt:-libfmt9} libfmt-dev catch2 libcli11-dev nlohmann-json3-dev) ||
  die "the packages for arm64 cannot be fetched."
for package in "$folder"/debs/*.deb; do dpkg-deb -x "$package" "$folder"; done
for tool in addr2line objcopy readelf; do ln -sf "$(command -v "aarch64-linux-gnu-$tool")" "$folder/bin/$tool"; done
rm -rf "$folder/apt" "$folder/debs"
: >"$folder/complete"

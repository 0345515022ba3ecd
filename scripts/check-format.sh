#!/usr/bin/env bash
# Checks that the sources are as clang-format would write them. Another major version than the one
# below formats differently, so then, or without clang-format, nothing is checked: exit code 77.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=14
skip() {
  echo "check-format.sh: SKIPPED, nothing was checked: $*"
  exit 77
}

for tool in "clang-format-$wanted" clang-format; do
  command -v "$tool" > /dev/null && break
  tool=
done
[[ -n $tool ]] || skip "no clang-format here"
version=$("$tool" --version)
[[ $version =~ version\ $wanted\. ]] || skip "version $wanted is wanted, this is: $version"

find base emulator dpdk_io impairment network verbs_shim tests -type f \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) \
  -print0 | xargs -0 "$tool" --dry-run --Werror

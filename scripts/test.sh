#!/usr/bin/env bash
# Installs what the tests need, builds everything, runs all tests.
#
#   scripts/test.sh [--preset release|debug|asan|tsan] [-- CTEST_ARGUMENTS]
#
# Fails when a test fails or none is found. Skipped tests are listed at the end: a skip is no pass.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release
while (($# > 0)); do
  case $1 in
    --preset)
      preset=${2:?--preset wants a name}
      shift 2
      ;;
    --)
      shift
      break
      ;;
    *)
      echo "test.sh: unknown argument '$1'; options of ctest go after --" >&2
      exit 2
      ;;
  esac
done

step() { printf '\n==> %s\n' "$*"; }

step "Packages"
./scripts/packages.sh test

step "Build (into build/$preset)"
cmake --preset "$preset" -DBUILD_TESTING=ON
cmake --build --preset "$preset"

step "Tests"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# Two at a time: an end-to-end test waits more than it computes (docs/testing.md).
ctest --preset "$preset" --no-tests=error --parallel 2 "$@" 2>&1 | tee "$log" || status=$?

skipped=$(grep -E '^[[:space:]]+[0-9]+ - .*\((Skipped|Disabled|Not Run)\)$' "$log" || true)
step "Summary"
grep -E 'tests passed|No tests were found' "$log" || true
if [[ -n $skipped ]]; then
  echo "NOT RUN: $(wc -l <<< "$skipped") of them (why: ctest --preset $preset -V -R NAME)"
  printf '%s\n' "$skipped"
else
  echo "Skipped: none"
fi
exit "$status"

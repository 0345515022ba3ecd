#!/usr/bin/env bash
# Installs what the tests need, builds everything, runs all tests.
#
#   scripts/test.sh [--preset release|debug|asan|tsan] [-- CTEST_ARGUMENTS]
#
# Fails when a test fails or none is found. Skipped tests are listed at the end: a skip is no pass. Up to three tests with
# real programs that fail are run once more, alone, since a busy machine is a reason to fail that is not the NIC's; what
# then passes is listed as well, with the log of its failure kept.
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

# The names of the tests that failed, a line each: ctest writes NUMBER:NAME.
results=build/$preset/Testing/Temporary
failed=
((status == 8)) && failed=$(cut -d: -f2- "$results/LastTestsFailed.log")
unsteady=
if [[ -n $failed ]] && (($(wc -l <<< "$failed") <= 3)) && ! grep -qvE '^(e2e|interop)/' <<< "$failed"; then
  step "Once more, alone: $(tr '\n' ' ' <<< "$failed")"
  cp "$results/LastTest.log" "$results/FirstFailure.log"
  if ctest --preset "$preset" "$@" --rerun-failed; then
    status=0
    unsteady=$failed
  fi
fi

step "Summary"
grep -E 'tests passed|No tests were found' "$log" || true
if [[ -n $unsteady ]]; then
  echo "UNSTEADY: $(wc -l <<< "$unsteady") of them failed among the others and passed alone (why: $results/FirstFailure.log)"
  printf '%s\n' "$unsteady"
fi
if [[ -n $skipped ]]; then
  echo "NOT RUN: $(wc -l <<< "$skipped") of them (why: ctest --preset $preset -V -R NAME)"
  printf '%s\n' "$skipped"
else
  echo "Skipped: none"
fi
exit "$status"

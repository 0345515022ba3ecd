#!/usr/bin/env bash
# Fuzzes one target with libFuzzer. docs/fuzzing.md says what the targets are.
#
#   scripts/fuzz.sh TARGET MINUTES [--jobs N] [--coverage]
#
# TARGET: frame, gso, transport, services, control, cm, rings, ip_host or script. Starts from tests/fuzz/corpus/TARGET and from what
# earlier runs found (build/fuzz/corpus/TARGET). With --coverage it prints at the end which lines
# of the code under test all these inputs reach; 0 MINUTES then only does that.
#
# Exit code: 0 nothing found; 1 a finding, whose input lies in build/fuzz/findings/TARGET;
# 77 without clang, when nothing was fuzzed.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "fuzz.sh: $*; usage: scripts/fuzz.sh frame|gso|transport|services|control|cm|rings|ip_host|script MINUTES [--jobs N] [--coverage]" >&2
  exit 2
}

(($# >= 2)) || usage "a target and a number of minutes are wanted"
target=$1 minutes=$2
shift 2
jobs=1 coverage=0
while (($# > 0)); do
  case $1 in
    --jobs)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage "--jobs wants a number"
      jobs=$2
      shift 2
      ;;
    --coverage) coverage=1 && shift ;;
    *) usage "unknown argument '$1'" ;;
  esac
done
[[ $minutes =~ ^[0-9]+$ ]] || usage "'$minutes' is no number of minutes"

more=()
case $target in
  frame) max_len=1200 code=(emulator/wire) ;;
  gso) max_len=1024 code=(dpdk_io/kernel/gso_receiver.cc dpdk_io/kernel/gso_batch.cc emulator/wire/icrc_identification.cc) ;;
  transport | services) max_len=2048 code=(emulator/transport) ;;
  control)
    max_len=1024 code=(emulator/device emulator/daemon/control)
    # libFuzzer spent seven eighths of the time on the energy of its inputs and on looking for leaks in between, of which
    # ctest's replay tells under AddressSanitizer.
    more=(-entropic=0 -detect_leaks=0)
    ;;
  cm)
    max_len=2048
    code=(emulator/cm emulator/daemon/cm_service/cm_commands.cc emulator/daemon/cm_service/cm_structures.cc
          emulator/wire/cm_message.cc emulator/wire/cma_header.cc)
    ;;
  rings)
    max_len=1024
    code=(emulator/daemon/rings/shared_work_queues.cc emulator/daemon/rings/shared_completion_ring.cc
          emulator/daemon/rings/doorbells.cc emulator/daemon/rings/doorbells.h)
    ;;
  ip_host) max_len=1024 code=(dpdk_io/ip_host) ;;
  script) max_len=2048 code=(emulator/script) ;;
  *) usage "there is no target '$target'" ;;
esac

skip() {
  echo "fuzz.sh: SKIPPED, nothing was fuzzed: $*"
  exit 77
}
./scripts/packages.sh test || skip "packages are missing"
command -v clang++ > /dev/null || skip "no clang here"

stored=tests/fuzz/corpus/$target
corpus=build/fuzz/corpus/$target
findings=build/fuzz/findings/$target

build() {
  cmake --preset "$1" > /dev/null
  cmake --build --preset "$1" --target "fuzz_$target"
}

fuzz() {
  build fuzz
  mkdir -p "$corpus" "$findings"
  local root=$PWD
  local options=(-max_total_time="$((minutes * 60))" -max_len="$max_len" -len_control=20 -timeout=20
                 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$root/$findings/" "${more[@]}")
  ((jobs == 1)) || options+=(-jobs="$jobs" -workers="$jobs")
  # Each job of several leaves a log in the folder it is started in.
  (cd "$findings" && "$root/build/fuzz/bin/fuzz_$target" "${options[@]}" "$root/$corpus" "$root/$stored")
}

report_coverage() {
  command -v llvm-profdata llvm-cov > /dev/null || skip "no llvm-cov here (scripts/packages.sh fuzz)"
  build fuzz-coverage
  mkdir -p "$corpus"
  local program=build/fuzz-coverage/bin/fuzz_$target profile=build/fuzz-coverage/$target
  LLVM_PROFILE_FILE=$profile.profraw "$program" "$stored" "$corpus" > /dev/null
  llvm-profdata merge -sparse "$profile.profraw" -o "$profile.profdata"
  llvm-cov report "$program" -instr-profile="$profile.profdata" "${code[@]}"
}

status=0
((minutes == 0)) || fuzz || status=1
((coverage == 0)) || report_coverage
if ((status != 0)); then
  echo "fuzz.sh: FOUND something; its input lies in $findings"
fi
exit "$status"

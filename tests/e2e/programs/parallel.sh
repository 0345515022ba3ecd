#!/usr/bin/env bash
# parallel.sh THREADS PROGRAM [ARGUMENTS]: within `rocemu run`. The program passes, and so many of the NIC's threads shared
# the work meanwhile.
set -euo pipefail

wanted=$1
shift
"$@"
status=$("$ROCEMU" status --json)
turns=$(sed -n 's/.*"worker_turns": \([0-9]*\).*/\1/p' <<< "$status")
threads=$(sed -n 's/.*"most_threads": \([0-9]*\).*/\1/p' <<< "$status")
echo "turns of devices by other threads than the engine's: $turns, on up to $threads threads at a time"
((turns > 0 && threads == wanted))

#!/usr/bin/env bash
# parallel.sh WHAT LEAST[-MOST] PROGRAM [ARGUMENTS]: within `rocemu run`. The program passes, and so many of the NIC's threads
# shared the work meanwhile: devices' turns (worker_turns) or what programs of one move (shared_moves).
set -euo pipefail

what=$1
wanted=$2
shift 2
"$@"
status=$("$ROCEMU" status --json)
count=$(sed -n "s/.*\"$what\": \([0-9]*\).*/\1/p" <<< "$status")
threads=$(sed -n 's/.*"most_threads": \([0-9]*\).*/\1/p' <<< "$status")
echo "$what: $count, on up to $threads threads at a time"
((count > 0 && threads >= ${wanted%-*} && threads <= ${wanted#*-}))

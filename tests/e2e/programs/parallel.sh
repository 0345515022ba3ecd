#!/usr/bin/env bash
# parallel.sh PROGRAM [ARGUMENTS]: within `rocemu run`. The program passes, and the NIC's threads
# shared the work meanwhile.
set -euo pipefail

"$@"
turns=$("$ROCEMU" status --json | sed -n 's/.*"worker_turns": \([0-9]*\).*/\1/p')
echo "turns of devices by other threads than the engine's: $turns"
((turns > 0))

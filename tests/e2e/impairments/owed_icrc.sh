#!/usr/bin/env bash
# owed_icrc.sh PROGRAM [ARGUMENTS]: within `rocemu run`. A link gets impairments and loses them again, while the program's
# packets cross it: some owe their ICRC, some bear it, and none that is looked at is wrong. The program passes.
set -euo pipefail

"$@" &
program=$!
changes=0
while kill -0 "$program" 2> /dev/null; do
  "$ROCEMU" link set rocemu0 delay=1us
  "$ROCEMU" link set rocemu0 none
  ((changes += 1))
done
wait "$program"
echo "changes of the link: $changes"
((changes > 1))
status=$("$ROCEMU" status --json)
grep -q '"rx_icrc_errors": 0' <<< "$status"
! grep '"rx_icrc_errors": [1-9]' <<< "$status"

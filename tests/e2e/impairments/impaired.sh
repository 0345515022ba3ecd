#!/usr/bin/env bash
# Unmodified programs over a private NIC whose links are bad: they must end without error, and the NIC
# must have been as bad as was asked.
#
#   impaired.sh SPEC [PROGRAM ...]     as in rocemu run --impair SPEC (docs/impairments.md)
#
# RECOVERY names another loss recovery than the default (docs/loss-recovery.md).
# ROCEMU names the rocemu command to use (default: the one in PATH).
set -euo pipefail

self=$(readlink -f "$0")
here=$(dirname "$self")
export ROCEMU=${ROCEMU:-rocemu}

pair() { "$here/../tools/pair.py" --timeout 100 --forbid 'invalid data' -- "$@"; }

# An end of ibv_rc_pingpong ends once it has received everything, so nobody repeats its last ACK
# when that is lost: its peer's last request then fails, on any device. It is all that may fail.
pingpong() {
  local output
  if output=$(pair ibv_rc_pingpong -g 1 -c -s 16384 -n 100); then
    echo "$output"
  elif grep -q -E ': (server|client) ended with 1$' <<< "$output" &&
    grep -q 'retry counter exceeded (12) for wr_id 2$' <<< "$output" &&
    grep -q '^100 iters' <<< "$output"; then
    echo "PASS ibv_rc_pingpong, but for the last ACK, which was lost"
  else
    echo "$output"
    return 1
  fi
}

if [[ $1 == --inside ]]; then
  shift
  # Beside each other: perftest's programs spend their time asleep and measuring the processor's frequency.
  jobs=()
  for program in "$@"; do
    case $program in
      ibv_rc_pingpong) pingpong & ;;
      *) pair "$program" -F -s 16384 -n 300 & ;;
    esac
    jobs+=($!)
  done
  status=0
  for job in "${jobs[@]}"; do wait "$job" || status=1; done
  ((status == 0)) || exit "$status"
  "$ROCEMU" link show --json | /usr/bin/python3 -c '
import json, sys
links = [link for link in json.load(sys.stdin) if link["spec"] != "none"]
total = {key: sum(link[key] for link in links) for key in ("frames", "lost", "duplicated", "corrupted")}
print(total)
asked = links[0]["spec"]
for piece, count in (("loss=", "lost"), ("dup=", "duplicated"), ("corrupt=", "corrupted")):
    if piece in asked and total[count] == 0:
        sys.exit(f"FAIL {asked}, but no frame was {count}")
'
  exit 0
fi

spec=$1
shift
programs=("$@")
((${#programs[@]} > 0)) || programs=(ib_write_bw ib_read_bw ib_send_bw ibv_rc_pingpong)
for program in "${programs[@]}"; do
  command -v "$program" > /dev/null || {
    echo "SKIP: $program is missing"
    exit 77
  }
done
"$ROCEMU" run --recovery "${RECOVERY:-go-back-n}" --impair "$spec" -- "$self" --inside "${programs[@]}"

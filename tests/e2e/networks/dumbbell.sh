#!/usr/bin/env bash
# ib_write_bw through a dumbbell: it gets what the link in the middle carries and no more, and nothing
# is lost there.
#
#   dumbbell.sh
#
# ROCEMU names the rocemu command to use (default: the one in PATH).
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
export ROCEMU=${ROCEMU:-rocemu}
command -v ib_write_bw > /dev/null || {
  echo "SKIP: ib_write_bw is missing"
  exit 77
}

if [[ ${1:-} != --inside ]]; then
  exec "$ROCEMU" run --devices 4 --network "$here/dumbbell.toml" -- "$0" --inside
fi

# rocemu0 and rocemu1 are left of the link, rocemu2 and rocemu3 right of it.
output=$("$here/../tools/pair.py" --server rocemu2 --client rocemu0 --timeout 100 --verbose -- \
  ib_write_bw -F -s 65536 -n 200 --report_gbits) || {
  echo "$output"
  exit 1
}
echo "$output"
"$ROCEMU" status --json | /usr/bin/python3 -c '
import json, re, sys
output = sys.argv[1]
status = json.load(sys.stdin)
lost = sum(device["port"]["dropped_network"] for device in status["devices"])
gbits = float(re.search(r"^ *65536 +200 +\S+ +(\S+)", output, re.M).group(1))
print(f"{gbits} Gbit/s of 0.4, {lost} lost")
middle = next(port for port in status["network"] if port["port"] == "s0 to s1")
print(middle)
if middle["lost"] or not middle["bytes"] > 200 * 65536:
    sys.exit("FAIL: the link in the middle has not seen that")
if not 50_000 < middle["queue_max_bytes"]["0"]: sys.exit("FAIL: nothing has waited for the link in the middle")
if lost: sys.exit("FAIL: a lossless network has lost frames")
if not 0.2 < gbits < 0.4: sys.exit("FAIL: that is not what the link carries")
' "$output"

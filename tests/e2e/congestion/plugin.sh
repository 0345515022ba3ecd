#!/usr/bin/env bash
# The example's algorithm, built outside the tree against the header alone, keeps the queue of a dumbbell
# short, live (dumbbell.py) and in virtual time; and libraries that are none are refused with a line that says why.
#
#   plugin.sh INCLUDE_FOLDER
#
# ROCEMU names the rocemu command to use (default: the one in PATH).
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
export ROCEMU=${ROCEMU:-rocemu}
include=$(readlink -f "$1")
command -v cc > /dev/null || {
  echo "SKIP: cc is missing"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/../../../examples/congestion/gentle.c" "$work"
cd "$work"
(($(wc -l < gentle.c) <= 60)) || {
  echo "FAIL: the example is longer than the 60 lines that docs/experiments.md promises"
  exit 1
}
cc -Wall -Wextra -Werror -shared -fPIC -I "$include" -o libgentle.so gentle.c

refused() {  # SPEC TEXT
  local said
  said=$("$ROCEMU" run --congestion "$1" -- true 2>&1) && {
    echo "FAIL: $1 was taken"
    exit 1
  }
  echo "$said"
  [[ $said == *"$2"* && $(wc -l <<< "$said") == 1 ]] || {
    echo "FAIL: that does not say: $2"
    exit 1
  }
}
refused ./none.so "cannot open shared object file"
refused ./gentle.c "./gentle.c"
refused ./libgentle.so,decrease=2 "decrease: '2' is no number from 0 to 1"
echo 'int nothing;' | cc -shared -fPIC -x c -o libnothing.so -
refused ./libnothing.so "it has no function rocemu_congestion()"
sed 's/= ROCEMU_CONGESTION_VERSION/= 99/' gentle.c > later.c
cc -shared -fPIC -I "$include" -o liblater.so later.c
refused ./liblater.so "it was built for version 99 of rocemu/congestion.h"

"$here/dumbbell.py" "$work/libgentle.so,increase=0.5,period=500"

# Two senders into one link in virtual time: prints the longest queue before the link, in bytes, in the second half of the time.
simulated() {  # SPEC
  cat > sim.toml << EOF
duration = "500ms"
network = "$here/ecn.toml"
[nic]
congestion = "$1"
[workload.all]
kind = "incast"
to = "h2"
hosts = ["h2", "h0", "h1"]
[results]
interval = "1ms"
ports = ["s0 s1"]
EOF
  rm -rf out
  "$ROCEMU" sim sim.toml --out out > /dev/null
  python3 - << 'EOF'
import csv
longest = 0
with open("out/queues.csv") as file:  # a row for each change
    for row in csv.DictReader(file):
        late = int(row["time_ns"]) > 250_000_000
        longest = max(longest, int(row["bytes"])) if late else int(row["bytes"])
print(longest)
EOF
}
without=$(simulated none)
with=$(simulated "$work/libgentle.so,increase=0.5,period=500")
echo "in virtual time: a queue of $with bytes, without congestion control of $without"
((with * 3 < without)) || {
  echo "FAIL: the queue was not kept short in virtual time"
  exit 1
}

#!/usr/bin/env bash
# The example's algorithm, built outside the tree against the header alone, keeps the queue of a dumbbell
# short (dumbbell.py); and libraries that are none are refused with a line that says why.
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

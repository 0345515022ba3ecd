#!/usr/bin/env bash
# check-includes.sh finds each kind of violation, and nothing in a tree that has none.
#   includes_test.sh CHECK_INCLUDES_SH
set -euo pipefail

check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# RULE FILE LINE: that rule must refuse the line in such a file; RULE "ok": none does. All are looked at together, each in
# a file of its own.
expectations=()
expect() {
  local file=${2%/*}/${#expectations[@]}_${2##*/}
  mkdir -p "$tree/$(dirname "$file")"
  printf '%s\n' '#pragma once' "$3" > "$tree/$file"
  expectations+=("$1|$file|$3")
}

expect ok emulator/transport/a.h '#include "emulator/wire/types.h"'
expect ok emulator/daemon/a.cc '#include <rte_mbuf.h>'
expect ok emulator/daemon/a.cc '#include <thread>'
expect ok dpdk_io/a.cc '#include <rte_mbuf.h>'
expect ok verbs_shim/provider/a.cc '#include <infiniband/verbs.h>'
expect ok tests/unit/wire/a.cc '#include "tests/unit/wire/b.h"'
expect ok dpdk_io/port/a.cc '#include "network/links.h"'
expect ok network/a.h '#include "impairment/link.h"'
expect layers network/a.h '#include "dpdk_io/port/port.h"'
expect layers dpdk_io/port/a.cc '#include "dpdk_io/switch/switch.h"'
expect pure network/a.h '#include <thread>'
expect ok emulator/sim/a.cc '#include "impairment/link.h"'
expect layers emulator/wire/a.h '#include "emulator/transport/endpoint.h"'
expect layers emulator/wire/a.h '  #  include "verbs_shim/abi/control.h"'
expect layers emulator/dma/a.cc '#include "emulator/device/hca.h"'
expect layers emulator/cli/a.cc '#include "emulator/daemon/engine/engine.h"'
expect layers dpdk_io/a.cc '#include "emulator/wire/types.h"'
expect ok dpdk_io/a.cc '#include "dpdk_io/ip_host/packet.h"'
expect layers dpdk_io/ip_host/a.cc '#include "dpdk_io/port/port.h"'
expect no-dpdk dpdk_io/ip_host/a.cc '#include <rte_mbuf.h>'
expect pure dpdk_io/ip_host/a.cc '#include <sys/socket.h>'
expect layers impairment/a.cc '#include "emulator/wire/types.h"'
expect layers emulator/transport/a.cc '#include "impairment/link.h"'
expect layers verbs_shim/preload/a.cc '#include "verbs_shim/provider/a.h"'
expect layers verbs_shim/provider/a.cc '#include "emulator/wire/types.h"'
expect pure emulator/transport/a.cc '#include <chrono>'
expect pure emulator/device/a.cc '#include <mutex>'
expect pure emulator/dma/a.cc '#include <sys/socket.h>'
expect pure impairment/a.cc '#include <chrono>'
expect no-dpdk emulator/wire/a.cc '#include <rte_byteorder.h>'
expect no-dpdk verbs_shim/provider/a.cc '#include <rte_ring.h>'
expect no-rdma dpdk_io/a.cc '#include <infiniband/verbs.h>'
expect abi verbs_shim/abi/a.h '#include <infiniband/verbs.h>'
expect rooted emulator/wire/a.cc '#include "types.h"'
expect rooted tests/unit/wire/a.cc '#include "../b.h"'

output=$("$check" "$tree") && {
  echo "a tree with violations was accepted"
  exit 1
}
for expectation in "${expectations[@]}"; do
  IFS='|' read -r rule file line <<< "$expectation"
  found=$(grep -F "$file:" <<< "$output" || true)
  if [[ $rule == ok ]]; then
    [[ -z $found ]] && continue
  else
    [[ $found == *"$file:2: [$rule]"* ]] && continue
  fi
  echo "expected $rule for '$line' in $file, got: $found"
  failures=$((failures + 1))
done

# NAME INCLUDED...: a header of the tree with those includes.
add() {
  local name=$1
  shift
  mkdir -p "$tree/$(dirname "$name")"
  echo '#pragma once' > "$tree/$name"
  (($# == 0)) || printf '#include "%s"\n' "$@" >> "$tree/$name"
}

# RULE PLACE WHAT: the tree must be refused by that rule, at that file or folder.
expect_tree() {
  local output
  if ! output=$("$check" "$tree") && [[ $output == *"$2:1: [$1]"* ]]; then return; fi
  echo "$3: expected $1 of $2, got: $output"
  failures=$((failures + 1))
}

rm -rf "${tree:?}"/*
mkdir -p "$tree/emulator/wire"
echo 'int x;' > "$tree/emulator/wire/a.h"
expect_tree once emulator/wire/a.h 'a header without #pragma once'

rm -rf "${tree:?}"/*
add emulator/wire/a.h emulator/wire/b.h
add emulator/wire/b.h emulator/wire/c.h
add emulator/wire/c.h emulator/wire/a.h
expect_tree circle emulator/wire/a.h 'three headers that include each other'

rm -rf "${tree:?}"/*
add emulator/cm/above/a.h emulator/cm/below/b.h
add emulator/cm/below/b.h
add emulator/cm/below/c.h emulator/cm/above/d.h
add emulator/cm/above/d.h
expect_tree circle emulator/cm/above 'two folders that include each other, by files that do not'
[[ $("$check" --tree "$tree") == *$'floor 0\n  emulator/cm/above (2 files): emulator/cm/below'* ]] || {
  echo "--tree does not draw the folders"
  failures=$((failures + 1))
}

rm -rf "${tree:?}"/*
for ((i = 0; i < 30; ++i)); do add "emulator/cm/many/$i.h"; done
"$check" "$tree" > /dev/null || {
  echo "30 files were too many"
  failures=$((failures + 1))
}
add emulator/cm/many/one.h
expect_tree crowded emulator/cm/many '31 files'
exit $((failures > 0))

#!/usr/bin/env bash
# Checks who includes whom. Prints each violation with its rule; exit code 1 when there is one.
#
#   scripts/check-includes.sh [ROOT]     (none: the project this script is in)
#
# Rules:
#   layers    a folder includes only the folders that the table below gives it
#   pure      emulator/ outside daemon/, lab/ and cli/, and impairment/, know no DPDK, socket, thread or clock
#   abi       verbs_shim/abi includes nothing but the C library
#             and dpdk_io/ip_host neither
#   no-rdma   dpdk_io knows Ethernet, so no RDMA header
#   no-dpdk   DPDK headers belong to dpdk_io and emulator/daemon
#   rooted    quoted includes are written from the project's root
#   once      a header begins with #pragma once (include guards in verbs_shim/abi, which is plain C)
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# shellcheck disable=SC2016
awk_program='
BEGIN {
  allowed["base"] = "base"
  allowed["emulator/wire"] = "base emulator/wire"
  allowed["emulator/transport"] = "base emulator/wire emulator/transport"
  allowed["emulator/cm"] = "base emulator/wire emulator/cm"
  allowed["emulator/dma"] = "base emulator/dma"
  allowed["emulator/device"] = "base emulator/wire emulator/transport emulator/cm emulator/dma emulator/device"
  allowed["emulator/sim"] = "base emulator/wire emulator/transport emulator/cm emulator/device emulator/sim impairment"
  allowed["emulator/daemon"] = "base emulator/wire emulator/transport emulator/cm emulator/dma " \
                               "emulator/device emulator/daemon dpdk_io dpdk_io/ip_host impairment verbs_shim/abi"
  allowed["emulator/lab"] = "base emulator/lab impairment"
  allowed["emulator/cli"] = "base emulator/cli impairment verbs_shim/abi"
  allowed["dpdk_io"] = "base dpdk_io dpdk_io/ip_host impairment"
  allowed["dpdk_io/ip_host"] = "base dpdk_io/ip_host"
  allowed["impairment"] = "base impairment"
  allowed["verbs_shim/abi"] = "verbs_shim/abi"
  allowed["verbs_shim/exchange"] = "base verbs_shim/abi verbs_shim/exchange"
  allowed["verbs_shim/provider"] = "base verbs_shim/abi verbs_shim/exchange verbs_shim/provider"
  allowed["verbs_shim/preload"] = "base verbs_shim/abi verbs_shim/exchange verbs_shim/preload"

  dpdk = "^(rte_|dpdk)"
  rdma = "^(infiniband|rdma|linux/(rdma|ib_))"
  impure = "^(sys/socket|sys/un|netinet/|net/|arpa/|netdb|linux/if|boost/asio|" \
           "thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier|stop_token|" \
           "pthread|threads\\.h|sched\\.h|" \
           "chrono|ctime|time\\.h|sys/time|sys/timerfd)"
}

function part_of(path, pieces, count) {
  count = split(path, pieces, "/")
  if (pieces[1] == "emulator" || pieces[1] == "verbs_shim") {
    return count > 2 ? pieces[1] "/" pieces[2] : pieces[1]
  }
  if (path ~ /^dpdk_io\/ip_host\//) return "dpdk_io/ip_host"
  return pieces[1]
}

function complain(rule, text) {
  printf "%s:%d: [%s] %s\n", FILENAME, FNR, rule, text
  ++violations
}

function check_quoted(part, name, target) {
  target = part_of(name)
  if (part == "tests") {
    if (!(target in allowed) && target != "tests") {
      complain("rooted", "\"" name "\" is not written from the root of the project")
    }
  } else if (!(target in allowed)) {
    complain("rooted", "\"" name "\" is not written from the root of the project")
  } else if (index(" " allowed[part] " ", " " target " ") == 0) {
    complain("layers", part " may not include " target " (\"" name "\"); it may: " allowed[part])
  }
}

function check_angled(part, name) {
  if (part == "tests") return
  if (name ~ dpdk && part != "dpdk_io" && part != "emulator/daemon") {
    complain("no-dpdk", part " may not include <" name ">")
  }
  if (name ~ impure && part ~ /^(emulator\/|impairment|dpdk_io\/ip_host)/ && part !~ /^emulator\/(daemon|lab|cli)$/) {
    complain("pure", part " may not include <" name ">")
  }
  if (name ~ rdma && part ~ /^dpdk_io/) complain("no-rdma", part " may not include <" name ">")
  if (name ~ /\// && name != "sys/types.h" && part == "verbs_shim/abi") complain("abi", part " may not include <" name ">")
}

function end_of_file() {
  if (last_file ~ /\.h$/ && !guarded) {
    printf "%s:1: [once] no #pragma once\n", last_file
    ++violations
  }
}

FNR == 1 {
  if (last_file != "") end_of_file()
  last_file = FILENAME
  part = part_of(FILENAME)
  guarded = 0
  ++files
  if (part != "tests" && !(part in allowed)) {
    complain("layers", part " is not in the table of scripts/check-includes.sh")
    nextfile
  }
}

/^#pragma once/ { guarded = 1 }
/^#ifndef ROCEMU_/ && part == "verbs_shim/abi" { guarded = 1 }

/^[ \t]*#[ \t]*include[ \t]*"/ { split($0, halves, "\""); check_quoted(part, halves[2]) }
/^[ \t]*#[ \t]*include[ \t]*</ { split($0, halves, /[<>]/); check_angled(part, halves[2]) }

END {
  if (last_file != "") end_of_file()
  printf "%d files, %d violations\n", files, violations
  exit violations > 0 || files == 0
}
'

folders=()
for folder in base emulator dpdk_io impairment verbs_shim tests; do
  [[ -d $folder ]] && folders+=("$folder")
done
((${#folders[@]} > 0)) || {
  echo "check-includes.sh: there is no source folder in $PWD" >&2
  exit 1
}
find "${folders[@]}" -type f \( -name '*.h' -o -name '*.cc' -o -name '*.c' -o -name '*.inc' \) \
  -print0 | sort -z | xargs -0 awk "$awk_program" || exit 1

#!/usr/bin/env bash
# Runs the NIC against Linux's Soft RoCE (rdma_rxe), or measures it beside that, in a virtual machine (qemu without KVM).
#
#   scripts/interop.sh [--short] [--only REGEX] [--port interface|udp|vlan] [--list] [--verbose] [--table FILE]
#   scripts/interop.sh --scripts tests/scripts [--table FILE]     scripts of verbs and frames (docs/scripts.md)
#   scripts/interop.sh --pci CARD... [--short] [--driver vfio-pci|uio_pci_generic] [--only REGEX] [--list] [--table FILE]
#   scripts/interop.sh --bench [--repetitions N] [--only REGEX] [--table FILE] [--siw FILE]   beside rxe, siw and TCP in one machine
#
# With --pci the NIC is on a network card of a second virtual machine: e1000e, igb, vmxnet3 or virtio-net-pci of qemu's.
#
# All of it takes some 20 minutes on two idle cores, --short two. The first run fetches a kernel and programs (some
# 100 MB) from the Debian mirror into ~/.cache/rocemu-interop. Exit code 77: it cannot be run here, and says why.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."

run=run.py
for word in "$@"; do
  [[ $word == --pci ]] && run=run_pci.py
  [[ $word == --bench ]] && run=run_bench.py
  [[ $word == --help || $word == -h ]] && sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$self" && exit 0
done

./scripts/packages.sh build run interop
cmake --preset release -DBUILD_TESTING=ON > /dev/null
cmake --build --preset release --target rocemu_bench interop_scenario rocemu-script-agent
export ROCEMU=$PWD/build/release/bin/rocemu SCENARIO=$PWD/build/release/tests/interop/interop_scenario
export AGENT=$PWD/build/release/bin/rocemu-script-agent
exec "tests/interop/$run" "$@"

#!/usr/bin/env bash
# Prints the architecture that an installed tree is for, as uname(1) has it; with --debian as dpkg has it.
#
#   packaging/system/architecture.sh [--debian] TREE
set -euo pipefail
names=(x86_64 aarch64)
[[ $1 == --debian ]] && names=(amd64 arm64) && shift
program=${1:?the installed tree}/bin/rocemu
# e_machine of the ELF header.
machine=$(od --address-radix=n --skip-bytes=18 --read-bytes=2 --format=u2 --endian=little "$program")
case $((machine)) in
  62) echo "${names[0]}" ;;
  183) echo "${names[1]}" ;;
  *) echo "architecture.sh: $program is for a machine of ELF's number $((machine)), of which no release is made" >&2 && exit 1 ;;
esac

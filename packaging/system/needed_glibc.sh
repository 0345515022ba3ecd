#!/usr/bin/env bash
# Prints the version of glibc that an installed tree needs, by the symbols that it wants; fails when it needs another
# library that is not in it. rocemu-script-agent, which is itself a verbs program, may want libibverbs.
#
#   packaging/system/needed_glibc.sh FOLDER
set -euo pipefail
folder=${1:?a folder with bin and lib/rocemu}
files=("$folder"/bin/* "$folder"/lib/rocemu/*.so*)
while read -r library; do
  [[ -e $folder/lib/rocemu/$library ]] && continue
  case $library in
    lib[cm].so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux-*.so.? | libibverbs.so.1) ;;
    *) echo "needed_glibc.sh: something in $folder wants $library, which is not there" >&2 && exit 1 ;;
  esac
done < <(objdump -p "${files[@]}" | sed -nE 's/^ +NEEDED +//p' | sort -u)
objdump -T "${files[@]}" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1

#!/usr/bin/env bash
# Checks that programs and libraries run with an old glibc: none wants a symbol of a newer version.
#
#   scripts/check-glibc.sh VERSION FILE...
set -euo pipefail
oldest=${1:?the oldest version of glibc, as in 2.31}
shift

newer=0
for file in "$@"; do
  symbols=$(objdump -T "$file")
  while read -r version symbol; do
    if [[ $(printf '%s\n' "$oldest" "$version" | sort -V | tail -n 1) != "$oldest" ]]; then
      echo "check-glibc.sh: $file wants $symbol of glibc $version, which is newer than $oldest"
      newer=1
    fi
  done < <(sed -nE 's/.*\*UND\*.*\(?GLIBC_([0-9.]+)\)? +([^ ]+)$/\1 \2/p' <<< "$symbols")
done
exit "$newer"

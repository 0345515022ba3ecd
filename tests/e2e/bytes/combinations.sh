#!/usr/bin/env bash
# combinations.sh CONFIGS VERIFY_BYTES [ARGUMENTS]: every byte over a NIC of each combination of memory that it maps, a capture
# that shows each frame, a bad network, and devices on two threads. What a message passes on its way, and where its ICRC is
# computed, differs in each.
set -euo pipefail
configs=$1
shift

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

ways=("--share-memory" "--pcap $folder/capture.pcapng" "--impair loss=1%,reorder=1%,dup=0.5%,corrupt=0.1%"
      "--config $configs/parallel.toml")
for ((combination = 0; combination < 1 << ${#ways[@]}; ++combination)); do
  options=()
  for ((way = 0; way < ${#ways[@]}; ++way)); do
    if ((combination >> way & 1)); then
      read -ra words <<< "${ways[way]}"
      options+=("${words[@]}")
    fi
  done
  printf 'rocemu run %s\n' "${options[*]}"
  if ! "$ROCEMU" run "${options[@]}" -- "$@" > "$folder/log" 2>&1; then
    cat "$folder/log"
    exit 1
  fi
  if [[ " ${options[*]} " == *" --pcap "* ]]; then
    # The capture has been looked at, and its file begins as such a file does.
    [[ -s $folder/capture.pcapng ]]
    rm "$folder/capture.pcapng"
  fi
done

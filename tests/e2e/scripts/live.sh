#!/usr/bin/env bash
# Scripts of verbs and frames (docs/scripts.md) against a NIC that is alive, on a udp port of loopback.
#
#   live.sh FOLDER...
#
# ROCEMU names the rocemu command to use (default: the one in PATH).
set -euo pipefail

rocemu=${ROCEMU:-rocemu}
# Of its own, since others may run at the same time.
network=127.77.$((1 + $$ % 250))
nic=$network.2
own=$network.1
port=$((20000 + $$ % 10000))
dir=$(mktemp -d /tmp/rocemu-scripts-XXXXXX)
export XDG_RUNTIME_DIR=$dir
end() {
  [[ -z ${agent:-} ]] || kill "$agent" 2> /dev/null || true
  "$rocemu" down --name scripts > /dev/null 2>&1 || true
  rm -rf "$dir"
}
trap end EXIT

# Marks that a script lets come at once have to come within the interval of CNPs here, too.
"$rocemu" up --name scripts --port "rocemu0=udp:$nic" --congestion none,min_time_between_cnps=4095
mkfifo "$dir/agent"
"$rocemu" exec --name scripts -- "$rocemu" script --agent --agent-port $port > "$dir/agent" &
agent=$!
read -r ready < "$dir/agent"
[[ $ready == ready ]] || { echo "the agent did not start" >&2; exit 1; }
"$rocemu" script --port "$nic" --address "$own" --agent-port $port --slack 100 "$@"

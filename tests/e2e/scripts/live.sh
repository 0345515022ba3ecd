#!/usr/bin/env bash
# Scripts of verbs and frames (docs/scripts.md) against a NIC that is alive, on a udp port of loopback.
#
#   live.sh FOLDER...
#
# ROCEMU names the rocemu command to use (default: the one in PATH).
set -euo pipefail

rocemu=${ROCEMU:-rocemu}
# Of its own, since others may run at the same time.
network=127.$((64 + $$ / 250 % 100)).$((1 + $$ % 250))
nic=$network.2
own=$network.1
dir=$(mktemp -d /tmp/rocemu-scripts-XXXXXX)
export XDG_RUNTIME_DIR=$dir
end() {
  local code=$?
  ((code == 0)) || "$rocemu" status --name scripts || true
  [[ -z ${agent:-} ]] || kill "$agent" 2> /dev/null || true
  "$rocemu" down --name scripts > /dev/null 2>&1 || true
  rm -rf "$dir"
}
trap end EXIT

# Marks that a script lets come at once have to come within the interval of CNPs here, too.
"$rocemu" up --name scripts --port "rocemu0=udp:$nic" --congestion none,min_time_between_cnps=4095
mkfifo "$dir/agent"
for ((attempt = 0; attempt < 5; ++attempt)); do  # another program may have the port
  port=$((20000 + RANDOM % 10000))
  "$rocemu" exec --name scripts -- "$rocemu" script --agent --agent-port $port > "$dir/agent" &
  agent=$!
  ready=
  read -r ready < "$dir/agent" || true
  [[ $ready != ready ]] || break
done
[[ $ready == ready ]] || { echo "the agent did not start" >&2; exit 1; }
# A script that fails is played twice more, since a machine that stops for some milliseconds has its timers run out or its
# marks apart; a NIC that does it wrongly fails each time.
play() { "$rocemu" script --port "$nic" --address "$own" --agent-port "$port" --slack 2000 --quiet 20 "$@"; }
play --tries 3 "$@"

printf '# A QP can be had.\ncreate_qp(q, rc) = EINVAL\n' > "$dir/wrong.roce"
! said=$(play --tries 2 "$dir/wrong.roce") || { echo "FAIL a wrong script went as written: $said" >&2; exit 1; }
[[ $(grep -c 'played once more' <<< "$said") == 1 && $(grep -c 'instead   create_qp(q, rc) = ok' <<< "$said") == 2 ]] ||
  { echo "FAIL of a script that fails twice: $said" >&2; exit 1; }

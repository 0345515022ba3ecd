# Pairs of librdmacm's programs on two hosts or NICs; to be sourced after namespaces.sh. The script that does has these:
#   on HOST WORD...                runs a program there
#   cm_server_host, cm_client_host whom to give `on`
#   cm_server_waits                whether somebody waits for connections on the server's host
# shellcheck shell=bash

# cm_pair SERVER... -- CLIENT...
cm_pair() {
  local server_words=() attempt log
  while [[ $1 != -- ]]; do
    server_words+=("$1")
    shift
  done
  shift
  echo "== $*"
  log=$(mktemp)
  for ((attempt = 1; ; ++attempt)); do
    cm_pair_once "$@" && break
    cat "$log" "$log.client"
    # rping may close the event channel while its other thread waits there, which then ends the program (newer ones
    # wait for the thread).
    grep -q 'rdma_get_cm_event: Bad file descriptor' "$log" "$log.client" && ((attempt < 5)) || fail "$1"
    echo "once more"
  done
  ! grep -q 'mismatch\|data verify error' "$log" "$log.client" || fail "$1: other data than was sent"
  rm -f "$log" "$log.client"
}

cm_pair_once() {
  local server tries
  # The NIC may still have what the server before listened at.
  for ((tries = 0; tries < 100; ++tries)); do
    cm_server_waits || break
    sleep 0.1
  done
  on "$cm_server_host" "${server_words[@]}" > "$log" 2>&1 &
  server=$!
  for ((tries = 0; tries < 100; ++tries)); do
    cm_server_waits && break
    sleep 0.1
  done
  on "$cm_client_host" "$@" > "$log.client" 2>&1 || { kill "$server" 2> /dev/null; wait "$server"; return 1; }
  wait "$server"
}

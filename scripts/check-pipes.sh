#!/usr/bin/env bash
# Checks that no script reads a pipe with something that stops at what it looks for (grep -q, head, ...): the program at
# the other end may then die of SIGPIPE, which with pipefail makes the whole line fail, now and then. What works is
# grep -q PATTERN < <(PROGRAM), or text in a variable.
set -euo pipefail
cd "$(dirname "$0")/.."

if grep -rnE '[|][[:space:]]*(head\b|grep +-[a-zA-Z]*[qm]|sed [^|]*\bq\b|awk [^|]*\bexit\b)' \
  --include '*.sh' --include run scripts action tests .ci; then
  echo "check-pipes.sh: what reads these pipes may stop before their end"
  exit 1
fi

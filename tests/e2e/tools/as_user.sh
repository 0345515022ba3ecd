#!/usr/bin/env bash
# as_user.sh COMMAND...: runs it as an ordinary user; is skipped where that is what everything runs as.
set -euo pipefail
if [[ $(id -u) != 0 ]]; then
  echo "SKIP: not root: everything runs as an ordinary user already"
  exit 77
fi
exec setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"

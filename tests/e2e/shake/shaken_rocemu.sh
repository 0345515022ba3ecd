#!/usr/bin/env bash
# rocemu, but that every NIC it starts is shaken as $ROCEMU_TEST_SHAKE says: for tests that start their own.
# ROCEMU_TEST_COMMAND is the command itself.
set -euo pipefail
: "${ROCEMU_TEST_COMMAND:?}" "${ROCEMU_TEST_SHAKE:?}"
case ${1-} in
  run | up) exec "$ROCEMU_TEST_COMMAND" "$1" "--shake=$ROCEMU_TEST_SHAKE" "${@:2}" ;;
  *) exec "$ROCEMU_TEST_COMMAND" "$@" ;;
esac

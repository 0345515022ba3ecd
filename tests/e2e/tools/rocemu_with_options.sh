#!/usr/bin/env bash
# rocemu, but that every NIC it starts has $ROCEMU_TEST_OPTIONS: for tests that start their own. ROCEMU_TEST_COMMAND is
# the command itself.
set -euo pipefail
: "${ROCEMU_TEST_COMMAND:?}" "${ROCEMU_TEST_OPTIONS:?}"
read -ra options <<< "$ROCEMU_TEST_OPTIONS"
case ${1-} in
  run | up) exec "$ROCEMU_TEST_COMMAND" "$1" "${options[@]}" "${@:2}" ;;
  *) exec "$ROCEMU_TEST_COMMAND" "$@" ;;
esac

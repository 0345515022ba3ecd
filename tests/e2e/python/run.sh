#!/usr/bin/env bash
# run.sh [--user] WHAT...: runs tests of the Python package by pytest, which names and counts those that it skips; three at a
# time where pytest-xdist is there, since they mostly wait.
#
#   --user   as an ordinary user without any capability (started by root)
#
# PYTHONPATH names the folder with the package, ROCEMU the command. Exit code 77: all was skipped, or pytest is missing.
set -euo pipefail

as_user=()
if [[ $1 == --user ]]; then
  as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
  shift
  ((EUID == 0)) || { echo "SKIP: only root can become an ordinary user"; exit 77; }
fi
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import pytest' 2> /dev/null || { echo "SKIP: pytest is missing (Debian package python3-pytest)"; exit 77; }

lanes=()
"$python" -c 'import xdist' 2> /dev/null && lanes=(-n 3)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 777 "$scratch"
HOME=$scratch TMPDIR=$scratch "${as_user[@]}" "$python" -B -m pytest -p no:cacheprovider -rs "${lanes[@]}" "$@"

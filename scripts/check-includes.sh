#!/usr/bin/env bash
# Checks who includes whom, and draws it. See check_includes.py; the table of layers is layers.txt.
#
#   scripts/check-includes.sh [--tree] [ROOT]     (no ROOT: the project this script is in)
set -euo pipefail
exec python3 -B "$(dirname "$0")/check_includes.py" "$@"

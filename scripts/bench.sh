#!/usr/bin/env bash
# Measures rocemu beside its floors and beside what a user would have otherwise, all in one run.
#
#   scripts/bench.sh [--quick | --full] [--json FILE] [--plots DIRECTORY] [--only REGEX] [--htsim DIR]
#
# --quick (the default) takes a few minutes and measures what the targets need; --full adds the curves
# over message sizes. More: scripts/bench.sh --help and docs/performance.md.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ " $* " != *" --help "* && " $* " != *" -h "* ]]; then
  ./scripts/packages.sh build run bench >&2
  echo "==> Build (into build/release)" >&2
  cmake --preset release -DBUILD_TESTING=ON > /dev/null
  cmake --build --preset release --target rocemu_bench >&2
fi
exec python3 -B scripts/bench/main.py "$@"

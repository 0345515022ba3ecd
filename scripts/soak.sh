#!/usr/bin/env bash
# Runs what is too long for scripts/test.sh, and writes a report (Markdown and JSON): the tests with AddressSanitizer and
# UBSan, with ThreadSanitizer, random scenarios, fuzzing, programs killed in traffic, the stress of every byte, and hostile
# programs beside an honest pair.
#
#   scripts/soak.sh --hours N | --minutes N [--only PART]... [--report FOLDER]      scripts/soak.sh --list
#
# The time, without builds, is shared out among the parts (docs/testing.md). With --only it is that of the parts named,
# and the report keeps what it has of the others, so that a soak goes on where it was stopped. Exit code: 0 no part in
# the report failed, 1 one did, 2 wrong usage.
set -euo pipefail
cd "$(dirname "$0")/.."

exec python3 -B scripts/soak/soak.py "$@"

#!/bin/sh
set -e
# Where systemd is, what rocemu@.service wants: its user, and that it is known.
if command -v systemd-sysusers > /dev/null; then
  systemd-sysusers rocemu.conf
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi

#!/usr/bin/env bash
# For maintainers: does a fresh clone work on a minimal Debian 12 that has nothing but what the
# scripts install? Makes one with debootstrap in a temporary folder and runs in it, from fresh clones
# of this repository's HEAD: quickstart.sh and test.sh as root, quickstart.sh again as a user without
# any privilege.
#
#   sudo scripts/chroot-check.sh [--keep] [--mirror URL] [-- COMMAND ARGUMENTS]
#
#   --keep     leave the folder there and say where it is
#   --mirror   the archive to install from (none: the one this machine's apt uses for Debian 12)
#   COMMAND    run this as root in the clone instead
#
# Needs root, debootstrap, git, 4 GB in $TMPDIR. Mounts and processes are in namespaces of their own
# and vanish with them.
set -euo pipefail
cd "$(dirname "$0")/.."

release=bookworm
fail() {
  echo "chroot-check.sh: $*" >&2
  exit 1
}

keep=
mirror=
while (($# > 0)); do
  case $1 in
    --keep)
      keep=yes
      shift
      ;;
    --mirror)
      mirror=${2:?--mirror wants a URL}
      shift 2
      ;;
    --)
      shift
      break
      ;;
    *) fail "unknown argument '$1'" ;;
  esac
done

((EUID == 0)) || fail "must run as root (debootstrap and chroot)"
command -v debootstrap > /dev/null || fail "debootstrap is missing: apt-get install debootstrap"
if [[ -z $mirror ]]; then
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="$release" '$2 == release && $3 == "main" { print $1; exit }')
  [[ -n $mirror ]] || fail "this machine's apt has no source for $release; name one with --mirror"
fi

root=$(mktemp -d "${TMPDIR:-/tmp}/rocemu-chroot-XXXXXX")
chmod 755 "$root" # apt in it drops its privileges
if [[ -n $keep ]]; then
  echo "chroot-check.sh: the folder is $root"
else
  trap 'rm -rf --one-file-system "$root"' EXIT
fi

echo "==> Minimal $release in $root"
debootstrap --variant=minbase "$release" "$root" "$mirror" > "$root.log" 2>&1 ||
  fail "debootstrap failed, see $root.log"
rm -f "$root.log"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
apt-config dump | grep -iE '^Acquire::([a-z:]*Proxy|Check-)' > "$root/etc/apt/apt.conf.d/90machine" || true
for clone in root/rocemu srv/rocemu; do
  git clone --quiet --no-hardlinks . "$root/$clone"
done
chown -R 65534:65534 "$root/srv/rocemu"

# shellcheck disable=SC2016
inside='
  set -euo pipefail
  mount -t proc proc "$1/proc"
  mount --rbind /sys "$1/sys"
  mount --rbind /dev "$1/dev"
  root=$1
  shift
  exec chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /bin/bash -c "cd /root/rocemu && exec \"\$@\"" bash "$@"
'
enter() {
  unshare --mount --propagation private --pid --fork --kill-child \
    bash -c "$inside" bash "$root" "$@"
}

if (($# > 0)); then
  enter "$@"
  exit
fi
echo "==> quickstart.sh as root"
enter ./scripts/quickstart.sh
echo "==> test.sh as root"
enter ./scripts/test.sh
echo "==> quickstart.sh as a user without privileges"
enter setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all \
  --no-new-privs env HOME=/tmp bash -c 'cd /srv/rocemu && exec ./scripts/quickstart.sh'
echo "chroot-check.sh: all of it works"

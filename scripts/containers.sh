#!/usr/bin/env bash
# Runs what docs/deployment.md says about containers by Docker or Podman: a NIC and a program in containers of different
# distributions, a NIC of the host, NICs of two containers by UDP, Compose, and with Podman the release's image in another one.
#
#   scripts/containers.sh TARBALL docker|podman...
#
# As root, in namespaces of its own, with an engine of its own there: the machine's is left alone. TARBALL is of
# scripts/release.sh; images are made from the roots of scripts/distributions.sh (ROCEMU_ROOTS, /var/tmp/rocemu-roots), where
# bookworm and trixie have to be, and are kept there. `scripts/packages.sh containers` installs the engines.
set -euo pipefail
usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }
[[ ${1:-} != -h && ${1:-} != --help ]] || { usage && exit 0; }
(($# >= 2)) || { usage >&2 && exit 2; }
tarball=$(realpath "$1")
roots=${ROCEMU_ROOTS:-/var/tmp/rocemu-roots}
for name in "${@:2}"; do
  case $name in
    docker) needed=(docker dockerd docker-compose) ;;
    podman) needed=(podman podman-compose runc) ;;
    *) echo "containers.sh: '$name' is neither docker nor podman; see --help" >&2 && exit 2 ;;
  esac
  for program in "${needed[@]}"; do
    command -v "$program" > /dev/null || { echo "containers.sh: $program is not here; see --help for the packages" >&2 && exit 2; }
  done
done
for name in bookworm trixie; do
  [[ -d $roots/$name ]] || { echo "containers.sh: no root of $name in $roots; run scripts/distributions.sh $1 bookworm trixie" >&2 && exit 2; }
done
version=$(basename "$tarball" | sed -E 's/^rocemu-(.*)-linux-.*/\1/')
image=$(dirname "$tarball")/$(basename "$tarball" .tar.gz | sed 's/-linux-/-oci-/').tar
compose_file=$(realpath "$(dirname "$0")/../packaging/container/compose.yaml")
if [[ -z ${INSIDE:-} ]]; then
  INSIDE=yes exec unshare --net --mount --uts --pid --fork --kill-child --mount-proc "$(realpath "$0")" "$@"
fi
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir /run/lock
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

start_docker() {
  export DOCKER_HOST=unix:///run/docker.sock
  dockerd --data-root "$roots/docker" --exec-root /run/docker --pidfile /run/docker.pid --host "$DOCKER_HOST" \
    --log-level error > "$work/dockerd.log" 2>&1 &
  until docker info > /dev/null 2>&1; do
    kill -0 $! || { cat "$work/dockerd.log"; exit 1; }
    sleep 0.2
  done
  engine=(docker)
  compose=(docker-compose)
}

start_podman() {
  engine=(podman --root "$roots/podman" --runroot /run/containers --cgroup-manager cgroupfs --runtime runc)
  printf '#!/bin/sh\nexec %s "$@"\n' "${engine[*]}" > "$work/podman"
  chmod 755 "$work/podman"
  compose=(podman-compose --podman-path "$work/podman")
}

make_images() {
  local name
  for name in bookworm trixie; do
    "${engine[@]}" image inspect "debian:$name" > /dev/null 2>&1 ||
      tar --directory "$roots/$name" --exclude=./rocemu.tar.gz --exclude=./var/cache --exclude=./var/lib/apt --create . |
      "${engine[@]}" import - "debian:$name"
  done
  mkdir "$work/image"
  tar --directory "$work/image" --extract --gzip --file "$tarball"
  mv "$work"/image/rocemu-* "$work/image/rocemu"
  printf 'FROM debian:bookworm\nCOPY rocemu /opt/rocemu\n' > "$work/image/Dockerfile"
  DOCKER_BUILDKIT=0 "${engine[@]}" build --quiet --tag rocemu "$work/image"
}

pair='ib_write_bw -d rocemu0 > /dev/null & sleep 1; ib_write_bw -d rocemu1 localhost'
bandwidth() { grep '^ 65536 ' || { echo "FAILED"; exit 1; }; }

# What a run that failed has left: the engines' folders are kept.
clean() {
  "${engine[@]}" rm --force --volumes nic server
  "${engine[@]}" network rm bridge1
  "${compose[@]}" --project-name rocemu --file "$compose_file" down --volumes
}

try() {
  export PROGRAM=debian:trixie
  clean > /dev/null 2>&1 || true
  echo "== $1: a NIC in a container of Debian 12, a program in one of Debian 13"
  "${engine[@]}" run --detach --name nic --user 0 -v /run/rocemu -v /opt/rocemu \
    --entrypoint /opt/rocemu/bin/rocemud rocemu --dir /run/rocemu > /dev/null
  "${engine[@]}" run --rm --user 0 --volumes-from nic debian:trixie \
    /opt/rocemu/bin/rocemu exec --socket /run/rocemu/nic.sock -- sh -c "$pair" | bandwidth
  "${engine[@]}" stop nic > /dev/null
  "${engine[@]}" rm --volumes nic > /dev/null

  echo "== $1: the host's NIC"
  XDG_RUNTIME_DIR=/run "$work/image/rocemu/bin/rocemu" up --name host
  "${engine[@]}" run --rm --user 0 -v /run/rocemu/host:/run/rocemu -v "$work/image/rocemu:/opt/rocemu:ro" debian:trixie \
    /opt/rocemu/bin/rocemu exec --socket /run/rocemu/nic.sock -- sh -c "$pair" | bandwidth
  XDG_RUNTIME_DIR=/run "$work/image/rocemu/bin/rocemu" down --name host

  echo "== $1: NICs of two containers, by UDP on a bridge, as nobody without any capability"
  "${engine[@]}" network create bridge1 > /dev/null
  local each=(--network bridge1 --user nobody --cap-drop ALL --security-opt no-new-privileges)
  # shellcheck disable=SC2016 # expanded inside
  local nic='PATH=$PATH:/opt/rocemu/bin; exec rocemu run --port "rocemu0=udp:$(hostname -i)" --'
  "${engine[@]}" run --detach --rm --name server "${each[@]}" rocemu sh -c "$nic ib_write_bw" > /dev/null
  server=$("${engine[@]}" inspect --format '{{(index .NetworkSettings.Networks "bridge1").IPAddress}}' server)
  "${engine[@]}" run --rm "${each[@]}" rocemu sh -c "$nic sh -c 'sleep 2; ib_write_bw $server'" | bandwidth
  "${engine[@]}" network rm bridge1 > /dev/null

  echo "== $1: Compose"
  local service=("${compose[@]}" --project-name rocemu --file "$compose_file")
  if [[ $1 == podman ]]; then  # podman-compose 1.0 does not end by --abort-on-container-exit
    "${service[@]}" up --detach > /dev/null 2>&1
    "${engine[@]}" logs --follow "$("${engine[@]}" ps --all --quiet --filter label=com.docker.compose.service=program)" 2>&1 |
      bandwidth
  else  # each line has its service's name before it, and colours
    "${service[@]}" up --abort-on-container-exit --exit-code-from program 2>&1 | sed -E 's/^[^|]*\|[^ ]* //' | bandwidth
  fi
  "${service[@]}" down --volumes > /dev/null 2>&1

  [[ $1 == podman ]] || return 0  # Docker loads such an image from 25 on
  echo "== $1: the release's image, added to one of Debian 13 by two lines"
  "${engine[@]}" load --quiet --input "$image" > /dev/null
  printf 'FROM debian:trixie\nCOPY --from=rocemu:%s / /\n' "$version" | "${engine[@]}" build --quiet --tag mine - > /dev/null
  "${engine[@]}" run --rm --user nobody --cap-drop ALL --read-only mine rocemu run -- sh -c "$pair" | bandwidth
}

for name in "${@:2}"; do
  "start_$name"
  make_images
  try "$name"
  rm -r "$work/image"
done

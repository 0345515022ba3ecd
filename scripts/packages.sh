#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that rocemu needs; does nothing when they are there.
#
#   scripts/packages.sh [build] [run] [fuzz] [interop] [test] [bench] [release] [soak] [clusters] [containers] [pictures] [arm64]
#                                          (none: build and run)
#   scripts/packages.sh --names SET...     prints the packages' names, and does nothing else
#
# build: to compile; run: the programs the README uses; fuzz: what scripts/fuzz.sh uses;
# interop: what scripts/interop.sh uses (qemu); test: all of these, and what the tests use;
# bench: what scripts/bench.sh compares with and draws by;
# release: what scripts/release.sh and scripts/distributions.sh use besides build;
# soak: test, and the applications that are too large for it (scripts/soak.sh);
# clusters: what the test of Slurm and MPICH needs besides test;
# containers: what scripts/containers.sh and scripts/kubernetes.sh use besides release;
# pictures: what scripts/stories.py draws with, and the tests of the ladder's page;
# arm64: what scripts/arm64.sh builds and runs with.
set -euo pipefail

build=(g++ cmake mold ninja-build pkg-config libdpdk-dev libboost-dev libisal-dev libcli11-dev
       libspdlog-dev nlohmann-json3-dev libexpected-dev libmnl-dev libibverbs-dev libncurses-dev libnuma-dev)
run=(libibverbs1 ibverbs-utils perftest)
fuzz=(clang libclang-rt-dev llvm)
bench=(iperf3 libns3-dev python3 python3-matplotlib qperf rdmacm-utils ucx-utils libfabric-bin)
interop=(cpio iproute2 kmod perftest python3 qemu-system-x86 rdmacm-utils xz-utils)
test=(catch2 clang-format curl fio gdb iproute2 iputils-ping libfabric-bin libopenmpi-dev librdmacm-dev musl-tools mypy
      openmpi-bin procps prometheus-node-exporter python3 python3-grpcio python3-pip python3-pytest python3-pytest-xdist
      python3-pyverbs python3-scapy python3-yaml qemu-block-extra qemu-utils qperf rdmacm-utils sudo tgt tmux tshark ucx-utils
      valgrind)
release=(debootstrap libbsd-dev libmd-dev lintian python3 rpm rpmlint umoci)
soak=(ceph-common ceph-mon ceph-osd)
clusters=(libmpich-dev mpich munge slurm-client slurmctld slurmd)
containers=(containerd containernetworking-plugins docker-compose docker.io dpkg-dev etcd-server golang-go openssl podman podman-compose rsync
            runc)
pictures=(chromium fonts-dejavu-core)
arm64=(cmake cpio g++-aarch64-linux-gnu kmod ninja-build pkg-config python3 qemu-system-arm qemu-user xz-utils)

fail() {
  echo "packages.sh: $*" >&2
  exit 1
}

only_names=false
if [[ ${1:-} == --names ]]; then
  only_names=true
  shift
fi
wanted=()
for set in "${@:-build run}"; do
  for name in $set; do
    case $name in
      build) wanted+=("${build[@]}") ;;
      run) wanted+=("${run[@]}") ;;
      fuzz) wanted+=("${fuzz[@]}") ;;
      bench) wanted+=(catch2 "${bench[@]}") ;;
      interop) wanted+=(catch2 "${interop[@]}") ;;
      test) wanted+=("${build[@]}" "${run[@]}" "${fuzz[@]}" "${interop[@]}" "${test[@]}") ;;
      release) wanted+=("${release[@]}") ;;
      soak) wanted+=("${build[@]}" "${run[@]}" "${fuzz[@]}" "${interop[@]}" "${test[@]}" "${soak[@]}") ;;
      containers) wanted+=("${containers[@]}") ;;
      clusters) wanted+=("${clusters[@]}") ;;
      pictures) wanted+=("${pictures[@]}") ;;
      arm64) wanted+=("${arm64[@]}") ;;
      *) fail "there is no package set '$name'; use build, run, fuzz, interop, test, bench, release, soak, clusters, containers, pictures or arm64" ;;
    esac
  done
done

if "$only_names"; then
  echo "${wanted[*]}"
  exit 0
fi
command -v dpkg-query > /dev/null ||
  fail "this is not Debian or Ubuntu; install what these packages hold: ${wanted[*]}"

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2> /dev/null || true)
  [[ $state == ii* ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "packages: all there"
  exit 0
fi

as_root=(env DEBIAN_FRONTEND=noninteractive)
if ((EUID != 0)); then
  command -v sudo > /dev/null ||
    fail "not root and no sudo here; have this run as root: apt-get install ${missing[*]}"
  if [[ -t 0 ]]; then sudo=(sudo); else sudo=(sudo -n); fi
  "${sudo[@]}" true ||
    fail "sudo refuses; have this run as root: apt-get install ${missing[*]}"
  as_root=("${sudo[@]}" "${as_root[@]}")
fi

echo "packages: installing ${missing[*]}"
apt=("${as_root[@]}" apt-get -q -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
"${apt[@]}" update
"${apt[@]}" install --no-install-recommends "${missing[@]}"

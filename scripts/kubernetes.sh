#!/usr/bin/env bash
# Runs packaging/kubernetes in a cluster of one node: etcd, Kubernetes' own programs, containerd with a bridge as the pod
# network, all in namespaces of this machine. The pods of pods.yaml ask for the node's NIC, those of pod-network.yaml have
# NICs of their own; each pair runs ib_write_bw.
#
#   scripts/kubernetes.sh TARBALL
#
# As root. TARBALL is of scripts/release.sh. Kubernetes' programs, which Debian 12 packages only as source, are compiled once
# (a quarter of an hour), and the images made from the root of Debian 12 of scripts/distributions.sh (ROCEMU_ROOTS,
# /var/tmp/rocemu-roots) and packaging/kubernetes/Dockerfile; they are kept in ROCEMU_KUBERNETES
# (/var/tmp/rocemu-kubernetes). `scripts/packages.sh containers` installs what it uses.
set -euo pipefail
usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }
[[ ${1:-} != -h && ${1:-} != --help ]] || { usage && exit 0; }
(($# == 1)) || { usage >&2 && exit 2; }
refuse() { echo "kubernetes.sh: $*" >&2 && exit 2; }
tarball=$(realpath "$1")
[[ -r $tarball ]] || refuse "there is no $tarball"
[[ $(id -u) == 0 ]] || refuse "only root can make the node's namespaces"
root=${ROCEMU_ROOTS:-/var/tmp/rocemu-roots}/bookworm
kept=${ROCEMU_KUBERNETES:-/var/tmp/rocemu-kubernetes}
binaries=$kept/bin
images=$kept/images.tar
project=$(realpath "$(dirname "$0")/..")
manifests=$project/packaging/kubernetes

# ---- what is made in the machine's own network, as it comes from there ----

# Debian's source package, by a list of its own, as a machine's own may have no sources in it.
make_programs() {
  local name programs=(kubelet kube-apiserver kube-controller-manager kube-scheduler kubectl)
  local apt=(-o "Dir::Etc::sourceparts=$kept/lists.d" -o Dir::Etc::sourcelist=/dev/null -o "Dir::State::lists=$kept/lists")
  [[ ! -x $binaries/kubectl ]] || return 0
  echo "== Kubernetes' programs, from source"
  rm -rf "$kept"/{lists,lists.d,source,go}
  mkdir -p "$kept"/{lists/partial,lists.d,source/src/k8s.io,go} "$binaries"
  # Either of the two ways to say where packages come from may be the one that is used here.
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list || true; } 2> /dev/null | sed -n 's/^deb /deb-src /p' > "$kept/lists.d/source.list"
  { cat /etc/apt/sources.list.d/*.sources || true; } 2> /dev/null | sed 's/^Types:.*/Types: deb-src/' > "$kept/lists.d/source.sources"
  apt-get "${apt[@]}" -q update
  (
    cd "$kept/source"
    apt-get "${apt[@]}" -q source --download-only kubernetes
    dpkg-source --no-check --extract kubernetes_*.dsc src/k8s.io/kubernetes
    cd src/k8s.io/kubernetes
    # Where its packages lie, without modules: go.mod there names other releases than what comes along.
    export GOPATH=$kept/source GOCACHE=$kept/go GO111MODULE=off CGO_ENABLED=0
    make generated_files
    for name in "${programs[@]}"; do
      echo "compiling $name"
      go build -ldflags '-s -w' -o "$binaries/$name" "k8s.io/kubernetes/cmd/$name"
    done
  )
  rm -rf "$kept"/{lists,lists.d,source,go}
}

# `perftest` and Debian 12 are one image, which knows nothing of rocemu; what sleeps in a pod's name is that one, too.
make_images() {
  local podman=(podman --root "$kept/podman" --runroot "$kept/run" --cgroup-manager cgroupfs --runtime runc)
  local build=("${podman[@]}" build --quiet --isolation chroot --network host)
  echo "== images"
  "${podman[@]}" image exists debian:12 ||
    tar --directory "$root" --exclude=./rocemu.tar.gz --exclude=./home --exclude=./pyverbs --exclude='./var/cache/apt/*.bin' \
      --exclude='./var/cache/apt/archives/*.deb' --exclude='./var/lib/apt/lists/*_*' --create . |
    "${podman[@]}" import --quiet - debian:12 > /dev/null
  "${podman[@]}" tag debian:12 perftest
  printf 'FROM debian:12\nENTRYPOINT ["sleep", "infinity"]\n' | "${build[@]}" --tag pause -
  mkdir "$1/rocemu"
  tar --extract --gzip --file "$tarball" --directory "$1/rocemu" --strip-components 1
  printf 'FROM debian:12\nCOPY rocemu /opt/rocemu\n' | "${build[@]}" --file - --tag rocemu "$1"
  "${build[@]}" --file "$manifests/Dockerfile" --tag rocemu-node "$project"
  # A pod's `rocemu` is docker.io's to the kubelet, podman's of here are localhost's.
  local name library=(docker.io/library/{perftest,rocemu,rocemu-node})
  for name in "${library[@]}"; do "${podman[@]}" tag "localhost/${name##*/}" "$name"; done
  rm -f "$images"
  "${podman[@]}" save --quiet --multi-image-archive --format docker-archive --output "$images" localhost/pause "${library[@]}"
}

if [[ -z ${INSIDE:-} ]]; then
  for program in go dpkg-source podman runc etcd containerd ctr openssl; do
    command -v "$program" > /dev/null || refuse "$program is not here; see --help for the packages"
  done
  [[ -e $root/.complete ]] || refuse "no root of Debian 12 in $root; run scripts/distributions.sh $1 bookworm"
  make_programs
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  make_images "$scratch"
  rm -rf "$scratch"
  INSIDE=yes exec unshare --net --mount --uts --pid --fork --kill-child --mount-proc "$(realpath "$0")" "$@"
fi
PATH=$binaries:$PATH
work=/run/work  # in memory; all of it, and what runs, ends with the namespaces
fail() {
  echo "FAILED: $*"
  tail -n "${LOG_LINES:-5}" "$work"/*.log
  exit 1
}

# ---- the node: an interface for its address, and folders of its own ----

hostname node
ip link set lo up
ip link add eth0 type veth peer name outside
ip link set outside up
ip address add 10.80.0.1/24 dev eth0
ip link set eth0 up
ip route add default dev eth0
mount --make-rslave /
for folder in /run /var/lib/kubelet /var/log/pods /var/log/containers /etc/cni /opt/rocemu; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=755 tmpfs "$folder"
done
mount --make-rshared /var/lib/kubelet
mkdir -p /etc/cni/net.d "$work/containerd"
cat > /etc/cni/net.d/10-pods.conf << 'CONF'
{"cniVersion": "0.4.0", "name": "pods", "type": "bridge", "bridge": "pods", "isGateway": true, "mtu": 9000,
 "ipam": {"type": "host-local", "subnet": "10.81.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}
CONF

# ---- Kubernetes ----

cat > "$work/containerd.toml" << CONF
version = 2
root = "$work/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:latest"
  restrict_oom_score_adj = true  # root of a container or virtual machine may not be allowed to lower it
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
CONF
printf 'secret,root,0,system:masters\n' > "$work/tokens"
cat > "$work/config" << 'CONF'
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: root, user: {token: secret}}]
contexts: [{name: here, context: {cluster: here, user: root}}]
current-context: here
CONF
cat > "$work/kubelet.yaml" << 'CONF'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
evictionHard: {nodefs.available: "1%", imagefs.available: "1%"}
CONF
export KUBECONFIG=$work/config
openssl genrsa -out "$work/accounts.key" 2048 2> /dev/null

containerd --config "$work/containerd.toml" > "$work/containerd.log" 2>&1 &
etcd --data-dir "$work/etcd" > "$work/etcd.log" 2>&1 &
kube-apiserver --etcd-servers=http://127.0.0.1:2379 --cert-dir="$work/certificates" \
  --token-auth-file="$work/tokens" --authorization-mode=AlwaysAllow --disable-admission-plugins=ServiceAccount \
  --service-account-issuer=https://here --service-account-signing-key-file="$work/accounts.key" \
  --service-account-key-file="$work/accounts.key" --service-cluster-ip-range=10.82.0.0/24 --allow-privileged \
  --advertise-address=10.80.0.1 --kubelet-preferred-address-types=InternalIP > "$work/apiserver.log" 2>&1 &
until ctr version > /dev/null 2>&1; do sleep 0.2; done
ctr --namespace k8s.io images import "$images" > /dev/null
# wait_for SECONDS WORDS COMMAND...: until the command prints the words
wait_for() {
  local end=$((SECONDS + $1)) words=$2
  shift 2
  until grep -q -- "$words" <<< "$("$@" 2> /dev/null)"; do
    ((SECONDS < end)) || fail "no '$words' of $*: $("$@" 2>&1)"
    sleep 0.5
  done
}
wait_for 120 ok kubectl get --raw /healthz
for name in kube-controller-manager kube-scheduler; do
  "$name" --kubeconfig="$work/config" --leader-elect=false > "$work/$name.log" 2>&1 &
done
kubelet --kubeconfig="$work/config" --config="$work/kubelet.yaml" --hostname-override=node --node-ip=10.80.0.1 \
  --container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock > "$work/kubelet.log" 2>&1 &
wait_for 120 ' Ready ' kubectl get nodes
kubectl get nodes -o wide

# ---- the node's NIC as a resource ----

kubectl apply -f "$manifests/daemonset.yaml"
wait_for 180 '^16$' kubectl get node node -o 'jsonpath={.status.allocatable.rocemu\.io/nic}'
kubectl --namespace kube-system get pods -o wide

# meet FILE: its two pods; there is no DNS here, so the client is told the server's address
meet() {
  local server address
  server=$(sed -n '/^  name: \(.*server\)$/{s//\1/p;q}' "$manifests/$1")
  sed '/^---/,$d' "$manifests/$1" | kubectl apply -f -
  wait_for 120 '[0-9]' kubectl get pod "$server" -o 'jsonpath={.status.podIP}'
  address=$(kubectl get pod "$server" -o 'jsonpath={.status.podIP}')
  sed "s/ib_write_bw $server/ib_write_bw $address/" "$manifests/$1" | kubectl apply -f -
  wait_for 180 Succeeded kubectl get pod "${server/server/client}" -o 'jsonpath={.status.phase}'
  wait_for 60 Succeeded kubectl get pod "$server" -o 'jsonpath={.status.phase}'
  kubectl get pods -o wide
  kubectl logs "${server/server/client}" | grep '^ 65536 ' || fail "$1: $(kubectl logs "${server/server/client}")"
}
meet pods.yaml
meet pod-network.yaml

#!/usr/bin/env bash
# A Slurm cluster of two nodes, each with a network, a host name, a /run and a /dev/shm of its own on this machine, and an
# ordinary user's jobs on it: packaging/slurm, as docs/deployment.md has it. Nothing is left when this ends.
#
#   slurm.sh     by root, as slurmd starts other users' programs. ROCEMU names the rocemu command to use, MPI_PROGRAMS the
#                folder of tests/e2e/mpi's. Exit code 77: skipped.
set -euo pipefail

# shellcheck source=../tools/namespaces.sh
source "$(dirname "$0")/../tools/namespaces.sh"
[[ $(id -u) == 0 ]] || skip "not root: slurmd starts the programs of other users"
need slurmctld:slurmctld slurmd:slurmd srun:slurm-client munged:munge ib_write_bw:perftest ip:iproute2
need_namespaces --net --mount --uts --pid
if [[ -z ${INSIDE:-} ]]; then
  INSIDE=yes exec unshare --net --mount --uts --pid --fork --kill-child --mount-proc "$self"
fi
packaging=$(realpath "$(dirname "$self")/../../../packaging/slurm")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT  # the namespaces end with this script, and what runs in them
chmod 755 "$scratch"

# ---- the machines ----

mount -t tmpfs -o mode=755 tmpfs /run
printf '127.0.0.1 localhost\n10.79.0.1 head\n10.79.0.11 node1\n10.79.0.12 node2\n' > "$scratch/hosts"
mount --bind "$scratch/hosts" /etc/hosts
hostname head
ip link set lo up
ip link add cluster type bridge
ip address add 10.79.0.1/24 dev cluster
ip link set cluster up
for node in 1 2; do
  ip netns add "node$node"
  ip link add "to$node" type veth peer name eth0 netns "node$node"
  ip link set "to$node" master cluster mtu 9000 up
  ip -n "node$node" address add "10.79.0.1$node/24" dev eth0
  ip -n "node$node" link set eth0 mtu 9000 up
  ip -n "node$node" link set lo up
done

# ---- Slurm ----

for script in prolog epilog task-prolog with-nic; do
  sed "s,^rocemu=/opt.*,rocemu=$ROCEMU," "$packaging/$script.sh" > "$scratch/$script.sh"
  chmod 755 "$scratch/$script.sh"
done
{
  sed "s,=/etc/slurm/rocemu,=$scratch,; s,^NodeName.*,& CPUs=2 NodeAddr=10.79.0.1[1-2]," "$packaging/slurm.conf"
  cat << CONF
ClusterName=test
SlurmctldHost=head(10.79.0.1)
SlurmUser=root
AuthInfo=socket=$scratch/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool-%n
TmpFS=/dev/shm
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd-%n.pid
CONF
} > "$scratch/slurm.conf"
export SLURM_CONF=$scratch/slurm.conf
install -d -m 755 "$scratch/munge" "$scratch/state" "$scratch"/spool-node{1,2}
head --bytes=1024 /dev/urandom > "$scratch/munge/key"
chmod 600 "$scratch/munge/key"
munged --foreground --force --socket="$scratch/munge/socket" --key-file="$scratch/munge/key" \
  --pid-file="$scratch/munge/pid" --log-file="$scratch/munge/log" --seed-file="$scratch/munge/seed" 2> /dev/null &
slurmctld -D > "$scratch/slurmctld.log" 2>&1 &
for node in node1 node2; do
  # shellcheck disable=SC2016 # expanded inside
  nsenter --net="/run/netns/$node" unshare --mount --uts bash -c '
    hostname "$0"
    mount -t tmpfs -o mode=755 tmpfs /run
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    exec slurmd -D -N "$0"' "$node" > "$scratch/$node.log" 2>&1 &
done
logs() { tail -n 30 "$scratch"/*.log; }
until [[ $(sinfo --noheader --Format=nodes --states=idle 2> /dev/null) -eq 2 ]]; do
  ((SECONDS < 60)) || fail "the nodes are not there: $(sinfo 2>&1; logs)"
  sleep 0.2
done
echo "two nodes after $SECONDS s"

# ---- an ordinary user's jobs ----

mkdir "$scratch/home"
chown 65534:65534 "$scratch/home"
cd "$scratch/home"
user=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all
  env -i "HOME=$PWD" "PATH=$(dirname "$ROCEMU"):$PATH" "SLURM_CONF=$SLURM_CONF")

# job WORDS ARGUMENT...: sbatch's arguments; the job prints these words
job() {
  local words=$1 text
  shift
  "${user[@]}" timeout 120 sbatch --wait --quiet --output=out "$@" > said 2>&1 || fail "$*: $(cat said out 2>&1; logs)"
  text=$(< out)
  grep -q -- "$words" <<< "$text" || fail "$*: no '$words' in: $text"
  echo "PASS $*"
  grep -- "$words" <<< "$text"
}
# wrapped WORDS COMMAND ARGUMENT...: a job of two nodes that is one command
wrapped() { job "$1" --nodes=2 --constraint=rocemu "${@:3}" --wrap "$2"; }

job '^without a NIC' --constraint= --wrap 'env | grep ROCEMU || echo without a NIC'
job '^ 65536 ' "$packaging/job.sbatch"
job '^ 65536 ' --constraint= --nodes=2 --ntasks-per-node=1 --wrap "srun $scratch/with-nic.sh bash -c '
  ((SLURM_PROCID == 0)) && exec ib_write_bw
  until ib_write_bw \${SLURM_LAUNCH_NODE_IPADDR}; do sleep 0.1; done'"

over_nic='export UCX_NET_DEVICES=rocemu0:1 UCX_TLS=rc_verbs,ud_verbs:aux,self
          export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx OMPI_MCA_btl=^openib'
if [[ -n ${MPI_PROGRAMS:-} ]]; then
  for start in mpirun 'srun --mpi=pmix'; do
    wrapped '^40 hops, 40 counted' "$over_nic; $start $MPI_PROGRAMS/ring" --ntasks-per-node=2
    wrapped '^all words right' "$over_nic; $start $MPI_PROGRAMS/alltoall" --ntasks-per-node=2
  done
fi
if command -v mpicxx.mpich > /dev/null; then
  mpicxx.mpich -O -o ring "$(dirname "$self")/../mpi/ring.cc"
  for start in mpiexec.mpich 'srun --mpi=pmi2'; do
    wrapped '^40 hops, 40 counted' "$over_nic; $start ./ring" --ntasks-per-node=2
  done
fi

# ---- a node whose UDP port is taken: the job says so, and the node stays ----

nsenter --net=/run/netns/node1 "$ROCEMU" run --port rocemu0=udp:10.79.0.11 -- sleep 60 > /dev/null &
until [[ -n $(nsenter --net=/run/netns/node1 ss -Hlun sport = 4791) ]]; do sleep 0.1; done
"${user[@]}" sbatch --wait --quiet --output=out --constraint=rocemu --nodelist=node1 --wrap ibv_devinfo > said 2>&1 &&
  fail "a job ran without its NIC: $(cat out)"
grep '^rocemu: the NIC did not start: UDP port 4791 of 10.79.0.11' out || fail "the job said: $(cat said out 2>&1; logs)"
left() { find /proc/[0-9]*/root/run -maxdepth 1 -name 'rocemu-job-*' 2> /dev/null || true; }
until [[ $(sinfo --noheader --Format=nodes --states=idle) -eq 2 && -z $(left) ]]; do
  ((++tries < 100)) || fail "a node is gone, or a job left files: $(sinfo; left)"
  sleep 0.2
done

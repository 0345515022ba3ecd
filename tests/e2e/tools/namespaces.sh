# What scripts that run programs in namespaces begin with; to be sourced. ROCEMU names the rocemu command to use (default:
# the one in PATH).
# shellcheck shell=bash
self=$(readlink -f "$0")
export ROCEMU=${ROCEMU:-rocemu}

fail() {
  echo "FAIL $*"
  exit 1
}

skip() {
  echo "SKIP: $*"
  exit 77
}

# as_user_if_asked "$@": with --user in front the script runs once more, as an ordinary user without any capability. It
# has to be started by root for that.
as_user_if_asked() {
  [[ ${1:-} == --user ]] || return 0
  [[ $(id -u) == 0 ]] || skip "not root: everything runs as an ordinary user already"
  exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs \
    env -u XDG_RUNTIME_DIR HOME=/ "$self" "${@:2}"
}

# need PROGRAM:PACKAGE...
need() {
  local program
  for program in "$@"; do
    command -v "${program%%:*}" > /dev/null || skip "${program%%:*} is missing (Debian package ${program##*:})"
  done
}

# Sets `user` to the options of unshare that an ordinary user has to give besides those given here.
need_namespaces() {
  user=()
  [[ $(id -u) == 0 ]] || user=(--user --map-root-user)
  unshare "${user[@]}" "$@" true 2> /dev/null || skip "no namespaces can be made here"
}

# refused WORDS PORT: the NIC does not start, and the message has these words
refused() {
  local text
  text=$("$ROCEMU" run --port "rocemu0=$2" -- true 2>&1) && fail "a NIC on $2 started"
  grep -qF "$1" <<< "$text" || fail "$2: $text"
  [[ $(wc -l <<< "$text") == 1 ]] || fail "$2: more than one line: $text"
  echo "$text"
}

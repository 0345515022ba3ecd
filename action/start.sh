#!/usr/bin/env bash
# What action.yml does: unpacks a release of rocemu, brings a NIC up, and hands its environment on to the later steps of
# the job. Needs no root, no compiler and no kernel module.
#
#   action/start.sh [--tarball FILE | --repository OWNER/NAME [--version VERSION]] [--sha256 HEX]
#                   [--name NAME] [--devices N] [--impair SPEC]... [--check NAMES|true|false] [--share-memory true|false]
#                   [--show environment|command] [-- OPTION OF "rocemu up"...]
#
#   --tarball FILE    the release, with FILE.sha256 beside it unless --sha256 is given
#   --repository      where else it is downloaded from: this repository's releases at $GITHUB_SERVER_URL, by gh where
#                     that is and $GH_TOKEN is set, else by curl
#   --version         which one (that of the sources around this script), with or without a v in front
#   --sha256 HEX      what the tarball's checksum must be; without it that of the file beside it
#   --name NAME       the NIC's name (ci)
#   --impair SPEC     as "rocemu up" has it; several lines are several links
#   --check NAMES     programs of later steps are checked (docs/check.md); true: by all checks
#   --show            environment: programs of later steps see the NIC (default); command: those that are started by
#                     "rocemu exec -- PROGRAM" do
#
# An option with an empty value is one that is not given. Writes to $GITHUB_ENV, $GITHUB_PATH, $GITHUB_OUTPUT and
# $GITHUB_STEP_SUMMARY, and unpacks in $RUNNER_TEMP. Exit code 2 is wrong usage.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
  echo "::error title=rocemu::$1"
  exit "${2:-1}"
}

tarball='' repository='' version='' sha256='' name=ci show=environment share_memory=false
up=()

# OPTION VALUE: one that "rocemu up" has as well, unless VALUE is empty.
hand_on() {
  local line
  while IFS= read -r line; do
    [[ -z $line ]] || up+=("$1" "$line")
  done <<< "$2"
}

check_by() {
  case $1 in
    '' | false) ;;
    true) up+=(--check) ;;
    *) up+=("--check=$1") ;;
  esac
}

while (($# > 0)); do
  case $1 in
    --help | -h)
      sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --)
      shift
      up+=("$@")
      break
      ;;
  esac
  (($# > 1)) || fail "'$1' is no option of start.sh, or has no value; see start.sh --help" 2
  case $1 in
    --tarball) tarball=$2 ;;
    --repository) repository=$2 ;;
    --version) version=${2#v} ;;
    --sha256) sha256=$2 ;;
    --name) name=${2:-$name} ;;
    --show) show=${2:-$show} ;;
    --share-memory) share_memory=${2:-$share_memory} ;;
    --devices | --impair) hand_on "$1" "$2" ;;
    --check) check_by "$2" ;;
    *) fail "'$1' is no option of start.sh; see start.sh --help" 2 ;;
  esac
  shift 2
done
[[ $show == environment || $show == command ]] || fail "show is environment or command, not '$show'" 2
[[ $share_memory == true || $share_memory == false ]] || fail "share-memory is true or false, not '$share_memory'" 2
[[ -n $tarball || -n $repository ]] || fail "where is the release? --tarball or --repository says so" 2
for file in GITHUB_ENV GITHUB_PATH; do
  [[ -n ${!file:-} ]] || fail "$file is not set: this is for a step of a workflow; elsewhere see docs/ci.md" 2
done

folder=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/rocemu-XXXXXX")

# Prints the file's name.
download() {
  local file
  : "${version:=$(sed -nE 's/^project\(rocemu VERSION ([0-9.]+).*/\1/p' "$here/../CMakeLists.txt")}"
  file=rocemu-$version-linux-$(uname -m).tar.gz
  if [[ -n ${GH_TOKEN:-} ]] && command -v gh > /dev/null; then
    gh release download "v$version" --repo "$repository" --dir "$folder" --pattern "$file" --pattern "$file.sha256" >&2
  else
    local from=${GITHUB_SERVER_URL:?}/$repository/releases/download/v$version
    curl --fail --silent --show-error --location --retry 3 -o "$folder/$file" "$from/$file" &&
      curl --fail --silent --show-error --location --retry 3 -o "$folder/$file.sha256" "$from/$file.sha256"
  fi || return
  echo "$folder/$file"
}

if [[ -z $tarball ]]; then
  tarball=$(download) || fail "release ${version:-of these sources} for $(uname -m) cannot be had from $repository"
fi
[[ -r $tarball ]] || fail "there is no release $tarball"
[[ -n $sha256 ]] || read -r sha256 _ < "$tarball.sha256" || fail "there is no checksum $tarball.sha256; --sha256 gives one"
read -r actual _ < <(sha256sum "$tarball")
[[ $actual == "$sha256" ]] || fail "the checksum of $tarball is $actual, not $sha256"

tar --extract --gzip --no-same-owner --strip-components 1 --directory "$folder" --file "$tarball" ||
  fail "$tarball cannot be unpacked"
rocemu=$folder/bin/rocemu
# A release of another architecture, or a C library other than glibc.
release=$("$rocemu" version) || fail "the release does not run here: it is for glibc 2.31 and later, and for the processor in its name ($(uname -m) here)"

said=$("$rocemu" up --name "$name" "${up[@]}" 2>&1) || fail "the NIC does not start: $said"
echo "$said ($release)"

# The variables of the later steps, NAME=VALUE a line.
variables() {
  local script names each
  script=$("$rocemu" env --name "$name")
  names=$(sed -nE 's/^export ([A-Z_]+)=.*/\1/p' <<< "$script" | sort -u)
  [[ $show == environment ]] || names=$(grep -xE 'ROCEMU_DIR|ROCEMU_CHECK' <<< "$names")
  eval "$script"
  for each in $names; do printf '%s=%s\n' "$each" "${!each}"; done
  [[ $share_memory == false ]] || echo ROCEMU_SHARE_MEMORY=1
}
handed_on=$(variables)
echo "$handed_on" >> "$GITHUB_ENV"
echo "$folder/bin" >> "$GITHUB_PATH"
printf '%s\n' "prefix=$folder" "state-directory=$(sed -n 's/^ROCEMU_DIR=//p' <<< "$handed_on")" >> "${GITHUB_OUTPUT:-/dev/null}"

cat >> "${GITHUB_STEP_SUMMARY:-/dev/null}" << SUMMARY
### rocemu

$said ($release)${up[*]:+; \`${up[*]}\`}

<details><summary>Devices</summary>

\`\`\`
$("$rocemu" status --name "$name")
\`\`\`
</details>

SUMMARY

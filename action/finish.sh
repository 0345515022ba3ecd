#!/usr/bin/env bash
# What action/finish/action.yml does, at the end of a job that has had a NIC by action.yml: shows what the programs did wrong,
# if they were checked, and ends the NIC.
#
#   action/finish.sh [--report FILE] [--fail-on-findings true|false]
#
#   --report FILE         where the findings are left: JUnit XML when it is called .xml, else JSON
#                         ($RUNNER_TEMP/rocemu-findings.xml)
#   --fail-on-findings    whether findings are a failure of the step (true)
#
# An option with an empty value is one that is not given. The NIC is that of $ROCEMU_DIR; where there is none, as it did not
# start, nothing is done. A NIC that has ended by itself is a failure.
set -euo pipefail

report=${RUNNER_TEMP:-${TMPDIR:-/tmp}}/rocemu-findings.xml
fail_on_findings=true
while (($# > 0)); do
  case $1 in
    --help | -h)
      sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --report) report=${2:-$report} ;;
    --fail-on-findings) fail_on_findings=${2:-$fail_on_findings} ;;
    *)
      echo "::error title=rocemu::'$1' is no option of finish.sh; see finish.sh --help"
      exit 2
      ;;
  esac
  shift 2
done

# Told at once, and a failure after all else has been done: whoever mistypes it wants the NIC to end, too.
refused=0
if [[ $fail_on_findings != true && $fail_on_findings != false ]]; then
  echo "::error title=rocemu::fail-on-findings is true or false, not '$fail_on_findings'"
  fail_on_findings=true
  refused=2
fi
if [[ -z ${ROCEMU_DIR:-} ]]; then
  echo "rocemu: no NIC has been started in this job"
  exit "$refused"
fi

# Findings as annotations, with the place in the sources of the first frame that has one in the workspace. Debug information
# has paths from there, or from a folder in it, where a compiler was told so (-ffile-prefix-map, ccache).
annotate() {
  awk -v workspace="${GITHUB_WORKSPACE:-$PWD}/" '
    function is_there(path,  found, line) { found = (getline line < path) > 0; close(path); return found }
    function escaped(text) { gsub(/%/, "%25", text); return text }
    function show() {
      if (name != "") print "::error " place "title=rocemu check, " name "::" escaped(sentence)
      name = place = ""
    }
    name == "" && /^[a-z-]+: / { name = $1; sub(/:$/, "", name); sentence = substr($0, length($1) + 2); next }
    /^  / && place == "" {
      source = index($NF, workspace) == 1 ? substr($NF, length(workspace) + 1) : $NF
      sub(/^(\.\.\/)+/, "", source)
      if (split(source, parts, ":") == 2 && source !~ /^\// && is_there(workspace parts[1]))
        place = "file=" parts[1] ",line=" parts[2] ","
    }
    /^$/ { show() }'
}

status=0
text=''
if [[ -n ${ROCEMU_CHECK:-} ]]; then
  text=$(rocemu findings --check-report "$report") || status=$?
  echo "report=$report" >> "${GITHUB_OUTPUT:-/dev/null}"
fi
case $status in
  0) ;;
  66)
    annotate <<< "$text"
    [[ $fail_on_findings == true ]] || status=0
    ;;
  *) echo "::error title=rocemu::the findings cannot be read (exit code $status)" ;;
esac
if [[ -n $text ]]; then
  printf '%s\n' "$text"
  # shellcheck disable=SC2016
  printf '### rocemu check\n\n```\n%s\n```\n' "$text" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
fi

ended=$(rocemu down --name "$(basename "$ROCEMU_DIR")" 2>&1) || status=1
if [[ $ended == *"is down" ]]; then
  echo "$ended"
else
  status=1
  echo "::error title=rocemu::$ended"
fi
exit "$((status != 0 ? status : refused))"

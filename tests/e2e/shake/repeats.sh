#!/usr/bin/env bash
# A failing program over a shaken NIC ends with the words that shake a NIC the same way again, one that goes well with
# none; a file and status know of it, too.
set -euo pipefail
fail() {
  echo "FAIL: $*"
  exit 1
}
name=shake-$$
trap '"$ROCEMU" down --name "$name" > /dev/null 2>&1 || true' EXIT

said=$("$ROCEMU" run --shake=placement,rnr -- false 2>&1) && fail "false went well"
again=$(grep -o -e '--shake=[^ ]*' <<< "$said") || fail "how to repeat it is not said: $said"
[[ $again =~ ^--shake=placement,rnr,strength=50,seed=[1-9][0-9]*$ ]] || fail "that is no option: $again"
said=$("$ROCEMU" run "$again" -- false 2>&1) && fail "false went well"
grep -qF -e "$again" <<< "$said" || fail "another seed the second time: $said"
said=$("$ROCEMU" run --shake -- true 2>&1) || fail "true failed: $said"
[[ -z $said ]] || fail "said over a program that went well: $said"
said=$("$ROCEMU" run --shake=nonsense -- true 2>&1) && fail "nonsense was taken"
grep -q "no behaviour" <<< "$said" || fail "what is wrong is not said: $said"

config=$(mktemp)
printf '[shake]\nbehaviours = ["numbers", "garbage"]\nseed = 5\nstrength = 20\n' > "$config"
"$ROCEMU" up --name "$name" --config "$config" > /dev/null
rm "$config"
status=$("$ROCEMU" status --name "$name" --json)
[[ $status == *'"shake": "garbage,numbers,strength=20,seed=5"'* ]] || fail "status does not show it"
echo PASS

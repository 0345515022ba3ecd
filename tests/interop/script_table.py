"""Scripts of verbs and frames (docs/scripts.md) against Linux rxe: which go as written. Where rxe is known to do something
else, rxe_deviations.txt says what; a script that fails and is not there is a failure, and so is one that is there and
goes as written. With a "?" before its name it is a matter of chance, and behind the name stands what is then seen."""
import datetime
import json
import os
import re
import subprocess
import time
from pathlib import Path

from guest import GuestFailed

HERE = Path(__file__).resolve().parent
DEVIATIONS = HERE / "rxe_deviations.txt"
AGENT_SECONDS = 20
# An emulated machine is slow: what may come this late, and how long nothing has to come.
SLACK_MS = "300"
QUIET_MS = "60"


def known_deviations():
    """By the script's name, folder included: what rxe does, and the pattern of what is seen where it does so by chance; else None."""
    lines = DEVIATIONS.read_text(encoding="utf-8").splitlines()
    pairs = (line.split(":", 1) for line in lines if line and not line.startswith("#"))
    deviations = {}
    for name, what in pairs:
        name, _, seen = name.strip().partition(" ")
        deviations[name.lstrip("?")] = (what.strip(), seen if name.startswith("?") else None)
    return deviations


def start_agent(guest):
    agent = os.environ.get("AGENT", "rocemu-script-agent")
    guest.push(agent)
    running = guest.start("exec rocemu-script-agent")
    deadline = time.monotonic() + AGENT_SECONDS
    while ":12B8 " not in guest.run("cat /proc/net/tcp6"):  # port 4792
        if running.code() is not None or time.monotonic() > deadline:
            raise GuestFailed(f"the agent did not start: {running.output()}")
        time.sleep(0.1)
    return running


def name_of(script):
    path = Path(script["file"])
    return f"{path.parent.name}/{path.stem}"


def verdict(script, deviations):
    """The word of the table, what was seen, and whether that is as it must be."""
    known, seen_by_chance = deviations.get(name_of(script), (None, None))
    result = script["result"]
    if result == "failed":
        is_known = known is not None and (seen_by_chance is None or re.search(seen_by_chance, script["came"]) is not None)
        return ("deviates", known if is_known else f"expected {script['expected']}; came {script['came']}", is_known)
    may_go_as_written = known is None or seen_by_chance is not None
    return (result, script.get("came", "") if result != "ok" else "", may_go_as_written and result != "no script")


def results(rocemu, *words):
    played = subprocess.run([rocemu, "script", "--json", *words], stdout=subprocess.PIPE, check=False, text=True)
    return json.loads(played.stdout)["scripts"]


def commit():
    try:
        return subprocess.run(["git", "-C", Path(__file__).parent, "describe", "--always", "--dirty"], text=True,
                              capture_output=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no commit"


def table_of(rows, rocemu, linux):
    """Of which run it is; and script, the clause that it holds, and what each peer does."""
    version = subprocess.check_output([rocemu, "--version"], text=True).strip()
    yield f"Run of {datetime.date.today()}: {version} ({commit()}), Linux {linux}."
    yield ""
    yield "| script | holds | rocemu | Linux rxe |"
    yield "|---|---|---|---|"
    for script, own, word, remark in rows:
        text = f"{word}: {remark}" if remark else word
        cells = [name_of(script), script["title"], own, text]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def play(guest, rocemu, address, folder, table, linux):
    agent = start_agent(guest)
    scripts = results(rocemu, "--port", address, "--slack", SLACK_MS, "--quiet", QUIET_MS, folder)
    agent.stop()
    own = {script["file"]: script["result"] for script in results(rocemu, folder)}
    deviations = known_deviations()
    rows, wrong = [], 0
    for script in scripts:
        word, remark, fits = verdict(script, deviations)
        wrong += not fits
        print(f"{'' if fits else 'FAIL '}{word}  {name_of(script)}{': ' if remark else ''}{remark}", flush=True)
        rows.append((script, own[script["file"]], word, remark))
    if table:
        Path(table).write_text("\n".join(table_of(rows, rocemu, linux)) + "\n", encoding="utf-8")
    print(f"{len(scripts) - wrong} of {len(scripts)} as they must be")
    return 1 if wrong or not scripts else 0

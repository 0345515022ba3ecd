#!/usr/bin/python3 -B
"""Runs the stories of docs/seeing.md, with the commands that stand there, and says whether they still tell what the page
says. With --pictures it makes the page's pictures anew, of what has just happened.

    scripts/stories.py                            # all of them, by the programs of build/release
    scripts/stories.py wrong-rkey --keep /tmp/x   # one; what it has written stays in /tmp/x
    scripts/stories.py --pictures docs/plots      # and draws them; needs scripts/packages.sh pictures

The exit code is 0 when all was as the page says, 1 when not, 77 when it was, and pictures were asked for and there is no
Chromium here."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "seeing.md"
LIMIT_S = 60
SKIPPED = 77
sys.path.append(str(ROOT / "tests" / "e2e" / "trace"))
from browser import Browser, find  # noqa: E402

# What a story's commands have to say, and what its picture shows: from where on, and how high; both are JavaScript in
# the ladder's page, in pixels.
WIDTH = 1180
STORIES = {
    "lost-last-packet": {
        "says": ["Lost first: WRITE_LAST", r"\d % of it, .* ms, an ACK timeout ran", "It is 14 now"],
        "top": "yOf('loss', -135)", "height": 420},
    "rnr-storm": {
        "says": ["the receiver was not ready", r"It has sent \d+ RNR NAKs"],
        "do": "view.zoom = 0.8; lay()", "top": "yOf('send_only', -42)", "height": 620},
    "wrong-rkey": {
        "says": ["WRITE 3: remote access error", r"wr_id 0x3, failed: remote access error.*by rule bad_rkey",
                 "3 others were flushed"],
        "top": "yOf('wr_id 0x3', -130)", "height": "view.height - yOf('wr_id 0x3', -110)"},
    "slow-consumer": {
        "says": ["20 messages in", "But it is slow to take what it has", "Its program is slower than what comes"],
        "do": "view.zoom = 0.8; lay()", "top": "yOf('send_only', -42)", "height": 640},
    "read-behind-write": {
        "says": ["wrote 'record 3', read 'record 2'", "READ was under way together .* changes the same bytes",
                 "was not over when the READ was", "Nothing orders requests of two QPs"],
        "top": "yOf('wr_id 0x3: rdma write', -20)", "height": 470},
}
# How far down the first event stands that such a text tells of.
Y_OF = "globalThis.yOf = (text, more) => view.y[view.items.find((i) => i.text.includes(text)).anchor] + more;"


def block_of(name):
    """The commands of a story, as the page has them."""
    found = re.search(rf"<!-- story: {re.escape(name)} -->\n+```\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        sys.exit(f"stories.py: {PAGE.relative_to(ROOT)} has no commands of {name}")
    return found[1]


def run(name, folder, build):
    """What the commands print. They run in `folder`, where the sources of tests are to be found, and at once in line."""
    environment = dict(os.environ, PATH=f"{build / 'bin'}:{os.environ['PATH']}", XDG_RUNTIME_DIR=str(folder))
    if not (folder / "tests").exists():
        (folder / "tests").symlink_to(ROOT / "tests")
    done = subprocess.run(["bash", "-eu", "-c", block_of(name)], cwd=folder, env=environment, text=True, timeout=LIMIT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    print(done.stdout, end="")
    if done.returncode != 0:
        print(f"stories.py: {name}: the commands end with {done.returncode}")
    return done.returncode == 0, done.stdout


def is_told(name, said):
    missing = [text for text in STORIES[name]["says"] if re.search(text, said) is None]
    for text in missing:
        print(f"stories.py: {name}: nothing says '{text}'")
    return not missing


def draw(name, folder, pictures):
    story = STORIES[name]
    with Browser(width=WIDTH + 60) as page:
        page.open(next(folder.glob("*.html")))
        page.drawn()
        page.value(Y_OF + story.get("do", ""))
        svg = page.value(f"svgOf({story.get('top', '0')}, {story.get('height', 'view.height')}, {WIDTH})")
        path = pictures / f"{name}.svg"
        path.write_text(svg, encoding="utf-8")
        print(f"{path}: {len(svg)} bytes")
        if page.problems:
            print("stories.py: the page complains: " + "; ".join(page.problems))
        return not page.problems


def tell(name, options):
    print(f"=== {name}")
    folder = Path(options.keep) / name if options.keep else Path(tempfile.mkdtemp(prefix="rocemu-story-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        is_run, said = run(name, folder, Path(options.build).resolve())
        return is_run and is_told(name, said) and (not options.pictures or find() is None or
                                                   draw(name, folder, Path(options.pictures)))
    finally:
        if not options.keep:
            shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of these stories alone: " + ", ".join(STORIES))
    parser.add_argument("--build", default=ROOT / "build" / "release", help="where bin/rocemu is (build/release)")
    parser.add_argument("--pictures", metavar="FOLDER", help="draw NAME.svg there")
    parser.add_argument("--keep", metavar="FOLDER", help="traces and ladders stay in FOLDER/NAME")
    options = parser.parse_args()
    if unknown := set(options.names) - set(STORIES):
        parser.error(f"there is no story {', '.join(sorted(unknown))}")
    told = [tell(name, options) for name in options.names or STORIES]
    if not all(told):
        return 1
    if options.pictures and find() is None:
        print("SKIPPED: the pictures: there is no Chromium here (scripts/packages.sh pictures)")
        return SKIPPED
    return 0


sys.exit(main())

#!/usr/bin/env python3
"""Makes docs/check-misuse.md: each program of the corpus beside what the checker says of it.

    document.py BUILD-FOLDER > docs/check-misuse.md
    document.py --table docs/check.md               the last column of the table of checks there
    document.py --compare docs/check-misuse.md docs/check.md
                                                    is every program there as it is now, and that column?

Numbers that differ from run to run (processes, threads, addresses, keys, QPNs) are written as letters.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
PARTS = {
    "memory": "Buffers of requests that are posted",
    "queues": "Posting, completions, events",
    "connections": "What two ends have to agree on",
    "remote": "What a peer does to memory",
}
HEAD = """# Mistakes, and what the checker says of them

The programs of [tests/misuse](../tests/misuse/README.md): each makes a mistake when it is called with `wrong`, and does the
same thing right when it is called with `right`, where the checker ([check.md](check.md)) is silent. `pair/pair.h` has what
they have in common: two connected ends, `client` and `server`, and short names for single verbs. The reports are of real
runs of `rocemu run --check -- PROGRAM wrong`, with the numbers that differ from run to run left out. The page is made by
`tests/misuse/document.py`.
"""


def sources(part):
    return sorted((HERE / part).glob("*.c"))


def shaken():
    """What makes a program fail whose mistake no check can see, by its name."""
    return dict(line.split(maxsplit=2)[:2] for line in (HERE / "shaken.txt").read_text().splitlines())


def prose_and_code(source):
    text = source.read_text()
    comment = re.match(r"/\*(.*?)\*/\n", text, re.S)
    prose = " ".join(line.strip().lstrip("*").strip() for line in comment[1].splitlines()).strip()
    code = text[comment.end():].strip()
    code = "\n".join(line for line in code.splitlines() if not line.startswith("#include")).strip()
    return prose, code


def finding_of(source):
    return re.search(r"// <-- ([a-z-]+)$", source.read_text(), re.M)[1]


def neutral(report):
    """The report without what is of this run alone."""
    report = re.sub(r"^==\d+==", "==PID==", report, flags=re.M)
    report = re.sub(r"\bthread \d+", "thread TID", report)
    report = re.sub(r"\bQP 0x[0-9a-f]{6}\b", "QP 0xQPN", report)
    report = re.sub(r"\b0x[0-9a-f]{9,16}\b", "0xADDRESS", report)
    report = re.sub(r"(?<=[lr]key )0x[0-9a-f]+", "0xKEY", report)
    report = re.sub(r"^ +#\d+ (?:__libc_start\w*|_start) .*\n", "", report, flags=re.M)
    return re.sub(r"\S*\btests/misuse/", "tests/misuse/", report)


def report_of(build, source):
    command = [build / "bin/rocemu", "run", "--check", "--", build / "tests/e2e/misuse" / source.stem, "wrong"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                              timeout=60, check=False, cwd=folder)
    found = re.findall(r"^==\d+== rocemu check: .*?^==\d+==$", done.stderr, re.M | re.S)
    if not found:
        sys.exit(f"document.py: {source.stem}: no report\n{done.stderr}")
    more = len(found) - 1
    return neutral(found[0]) + (f"\n(and {more} more of the kind)" if more else "")


# What no program of the corpus can be sure to do, or not in one process: which test shows that it is found.
BY_OTHERS = {
    "`channel-in-use`": "`e2e/check/races-rping`",
    "`empty-event`": "`e2e/check/races-pingpong`",
    "`listen-gap`": "`e2e/check/races-listens-twice`",
    "`byte-order` (between programs)": "`unit_inspection`, refused_keys_test.cc",
}
# A check that has two rows: the part of the corpus that is the second one's, and not the first one's.
BY_PART = {"`memory-gone` (by a peer)": "remote"}
NOT_ITS = {("`memory-gone`", "remote")}
# | `NAME` … | what is found | what is not | corpus |
ROW = re.compile(r"^\| ((`[a-z-]+`)[^|]*?) *\|(?:\\\||[^|])*\|(?:\\\||[^|])*\|")


def corpus_of(row, check):
    """The programs that the checker finds by the check, as links, and those alone that are the row's own."""
    found = []
    for part in PARTS:
        if BY_PART.get(row, part) != part or (row, part) in NOT_ITS:
            continue
        found += [source.stem for source in sources(part)
                  if f"`{finding_of(source)}`" == check and source.stem not in shaken()]
    return ", ".join(f"[{name}](check-misuse.md#{name})" for name in found)


def with_column(text):
    """docs/check.md with the column as it is to be: what e2e/misuse/* find, and are silent at when it is done right."""
    before, title, table = text.partition("## What is found\n")
    table, end, after = table.partition("## What the NIC adds\n")
    lines, named = [], set()
    for line in table.splitlines():
        if row := ROW.match(line):
            named.add(row[2])
            corpus = BY_OTHERS.get(row[1]) or corpus_of(row[1], row[2])
            if not corpus:
                sys.exit(f"document.py: no program of the corpus is found by {row[1]}")
            line = f"{row[0]} {corpus} |"
        lines.append(line)
    for source in (source for part in PARTS for source in sources(part) if source.stem not in shaken()):
        if f"`{finding_of(source)}`" not in named:
            sys.exit(f"document.py: {finding_of(source)} has no row in the table of checks")
    return before + title + "\n".join(lines) + "\n" + end + after


def compare_table(page):
    if with_column(page.read_text()) != page.read_text():
        sys.exit(f"document.py: {page}: the corpus is not as it is now; document.py --table {page}")


def write(build):
    print(HEAD)
    by_shake = shaken()
    print("| program | what is found |\n|---|---|")
    for source in (source for part in PARTS for source in sources(part)):
        found = "by no check; it fails with `--shake`" if source.stem in by_shake else f"`{finding_of(source)}`"
        print(f"| [{source.stem}](#{source.stem}) | {found} |")
    print()
    for part, title in PARTS.items():
        print(f"## {title}\n")
        for source in sources(part):
            prose, code = prose_and_code(source)
            print(f"### {source.stem}\n\n{textwrap.fill(prose, 118)}\n\n```c\n{code}\n```\n")
            if shake := by_shake.get(source.stem):
                print(f"No check sees it. With `--shake={shake}` ([shake.md](shake.md)) it fails.\n")
            else:
                print(f"```text\n{report_of(build, source)}\n```\n")


def compare(page):
    text = page.read_text()
    for part in PARTS:
        for source in sources(part):
            _, code = prose_and_code(source)
            if f"### {source.stem}\n" not in text or code not in text:
                sys.exit(f"document.py: {page}: {source.stem} is not there as it is now; make the page again")


if len(sys.argv) == 4 and sys.argv[1] == "--compare":
    compare(pathlib.Path(sys.argv[2]))
    compare_table(pathlib.Path(sys.argv[3]))
elif len(sys.argv) == 3 and sys.argv[1] == "--table":
    table = pathlib.Path(sys.argv[2])
    table.write_text(with_column(table.read_text()))
elif len(sys.argv) == 2:
    write(pathlib.Path(sys.argv[1]).resolve())
else:
    sys.exit(__doc__)

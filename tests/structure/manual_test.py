"""Every option of every command, as --help has it, is in its man page and in each shell's completion.

  manual_test.py BIN_FOLDER SHARE_FOLDER
"""

import re
import subprocess
import sys
from pathlib import Path

# The names in front of what is said of them: "  -h,--help", and with newer CLI11 "  -h,     --help", "          --version".
ROW = re.compile(r"^ {2,10}(?:-\w, +)?-\S+", re.MULTILINE)
LONG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
SHORT = re.compile(r"^ {2}(-[a-z])\b", re.MULTILINE)
SUBCOMMANDS = re.compile(r"^Subcommands:\n((?: +\S.*\n)+)", re.MULTILINE | re.IGNORECASE)
PAGES = {"rocemu": "man/man1/rocemu.1", "rocemud": "man/man8/rocemud.8"}
COMPLETIONS = ("bash-completion/completions/rocemu", "zsh/site-functions/_rocemu",
               "fish/vendor_completions.d/rocemu.fish")


def all_help(words):
    """The words of each command, and what it says."""
    said = subprocess.run([*words, "--help"], check=True, capture_output=True, text=True).stdout
    yield words, said
    for rows in SUBCOMMANDS.findall(said):
        for name in re.findall(r"^ {2}(\S+)", rows, re.MULTILINE):
            yield from all_help([*words, name])


def options(said):
    """Those that have a row: the text around may name other commands' too."""
    rows = "\n".join(ROW.findall(said))
    return {*LONG.findall(rows), *SHORT.findall(rows)} - {"--help", "-h"}


def part_of(page, words):
    """What a man page says of one command."""
    page = page.replace("\\-", "-")
    if len(words) == 1:
        return page
    start = page.index(f".SS \\fB{' '.join(words)}\\fR\n")
    return re.split(r"\n\.S[SH] ", page[start:])[0]


def missing(wanted, text):
    return sorted(option for option in wanted if not re.search(rf"(?<![\w-]){option}(?![\w-])", text.replace("\\fB", " ")))


def shell_part(name, text, words):
    """What a completion offers for one command."""
    if name.endswith(".fish"):
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words[1:]) or "__fish_use_subcommand"
        lines = [line for line in text.splitlines() if f"'{seen}; and not" in line]
        return re.sub(r" -l ", " --", "\n".join(lines))
    pattern = rf'\["{" ".join(words)}"\]="([^"]*)"' if "bash" in name else rf"^'{' '.join(words)}' '([^']*)'"
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""


def main():
    commands, share = sys.argv[1], Path(sys.argv[2])
    problems, asked = [], 0
    for command, page_name in PAGES.items():
        page = (share / page_name).read_text()
        for words, said in all_help([f"{commands}/{command}"]):
            words = [command, *words[1:]]
            wanted = options(said)
            asked += len(wanted)
            text = part_of(page, words)
            problems += [f"{page_name}: {' '.join(words)} {option}" for option in missing(wanted, text)]
            for one in wanted:  # An option that were not there would be seen.
                if not missing({one}, re.sub(rf"{one}(?![\w-])", "", text)):
                    problems.append(f"the test does not see that {one} is missing")
            for name in COMPLETIONS if command == "rocemu" else ():
                offered = shell_part(name, (share / name).read_text(), words)
                long = {option for option in wanted if option.startswith("--")}
                problems += [f"{name}: {' '.join(words)} {option}" for option in missing(long, offered)]
    print("\n".join(["missing:", *problems]) if problems else f"{asked} options, each in its page and each shell's completion")
    return 1 if problems or asked < 60 else 0


sys.exit(main())

"""What a command says with --help, and each of its subcommands, taken apart."""

import re
import subprocess
from dataclasses import dataclass, field

HEADING = re.compile(r"^(options|positionals|subcommands):$", re.IGNORECASE)
OPTION = re.compile(r"^ {2}(-\S.*?)(?: {2,}(\S.*))?$")
ROW = re.compile(r"^ {2}(\S+)(?: {2,}(\S.*))?$")
CONTINUED = re.compile(r"^ {10,}(\S.*)$")
NAME = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


@dataclass
class Row:
    """An option, a positional or a subcommand: what is written, and what it does."""

    term: str
    text: str = ""

    def names(self):
        """-h,--help: both; none of a positional."""
        return NAME.findall(self.term) if self.term.startswith("-") else []

    def value(self):
        """What stands for the option's value; empty where it takes none, or can do without."""
        match = re.match(r"\S+ ([^\[\s]\S*)", self.term)
        return match.group(1) if match else ""


@dataclass
class Help:
    """One command's: words are rocemu, link, set; paragraphs are what comes after the options, line by line."""

    words: list
    title: str = ""
    usage: list = field(default_factory=list)
    options: list = field(default_factory=list)
    positionals: list = field(default_factory=list)
    subcommands: list = field(default_factory=list)
    paragraphs: list = field(default_factory=list)
    children: list = field(default_factory=list)

    def everything(self):
        """This command and all below it."""
        yield self
        for child in self.children:
            yield from child.everything()

    def next_words(self):
        """The words that may follow: subcommands, or where the usage alone names them, as lab's does, those."""
        name = " ".join(self.words)
        return [row.term for row in self.subcommands] or sorted(
            {found for line in self.usage for found in re.findall(rf"{name} ([a-z]+)\b", line)})


def parse(words, said):
    """The text of --help as a Help without children."""
    lines = said.strip().splitlines()
    result = Help(words, title=lines[0])
    rows = last = None
    in_usage, paragraph = False, []
    for line in [*lines[1:], ""]:
        in_usage = line.startswith("Usage:") or (in_usage and line.startswith(" "))
        heading, option, row = HEADING.match(line), OPTION.match(line), ROW.match(line)
        if not line.strip():
            if paragraph:
                result.paragraphs.append(paragraph)
            rows, paragraph = None, []
        elif in_usage:
            result.usage.append(re.sub(r"^(Usage:| {6}) ", "", line))
        elif heading:
            rows = getattr(result, heading.group(1).lower())
        elif option and not paragraph:
            last = Row(re.sub(r", +-", ",-", option.group(1)), option.group(2) or "")
            result.options.append(last)
        elif row and not paragraph and (rows is not None or row.group(1).isupper()):
            last = Row(row.group(1), row.group(2) or "")
            (result.positionals if rows is None else rows).append(last)
        elif last and not paragraph and CONTINUED.match(line):
            last.text = f"{last.text} {line.strip()}".strip()
        else:
            paragraph.append(line)
    return result


def read(program, words):
    """Asks the program, a command in words, and for all its subcommands."""
    said = subprocess.run([*program, *words[1:], "--help"], check=True, capture_output=True, text=True).stdout
    result = parse(words, said)
    result.children = [read(program, [*words, row.term]) for row in result.subcommands]
    return result

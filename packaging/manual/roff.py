"""Text as man pages are written."""

import re


def escaped(text):
    """Nothing in it is an instruction to roff; dashes can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def bold(text):
    return f"\\fB{escaped(text)}\\fR"


def italic(text):
    return f"\\fI{escaped(text)}\\fR"


def header(name, section, version, title):
    return ["'\\\" t", f'.TH {name.upper()} {section} "" "rocemu {version}" "{title}"',
            ".\\\" No hyphens, no justified lines.", ".nh", ".ad l"]


def literal(lines):
    """As it stands."""
    return [".RS 4", ".nf", *map(escaped, lines), ".fi", ".RE"]


def item(term, text):
    """A term, roff already, and what is said of it, roff too."""
    return [".TP", term, text or "\\&"]

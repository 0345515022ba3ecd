"""The pages of section 1 and 8: what the commands say with --help, and what the documents say of both."""

import re

from roff import bold, escaped, header, italic, item, literal


def option_term(row):
    """--name NAME: the names bold, the value in italics."""
    def formatted(word):
        return ", ".join(map(bold, word.split(","))) if word.startswith("-") else italic(word)
    name, bracket, value = row.term.partition("[=")
    if bracket:
        return f"{bold(name.strip())}[={italic(value.rstrip(']'))}]"
    return " ".join(map(formatted, row.term.split()))


def paragraph(lines):
    """Lines that are indented or in columns stand as they are written, others are text."""
    result, text, rows = [".PP"], [], []
    for line in [*lines, ""]:
        if "  " in line:
            rows.append(line.removeprefix("  "))
            continue
        if rows:
            result += text + literal(rows)
            text, rows = [], []
        if line:
            text.append(escaped(line))
    return result + text


def options(said):
    """Positionals and options of one command; --help, which all have, says what this page says."""
    result = []
    for row in said.positionals:
        result += item(italic(row.term), escaped(row.text))
    for row in said.options:
        if row.names() != ["-h", "--help"]:
            result += item(option_term(row), escaped(row.text))
    return result


def details(said):
    """The options, and what follows them."""
    result = options(said)
    for lines in said.paragraphs:
        result += paragraph(lines)
    return result


def command(said):
    """A subcommand with its usage, and those below it."""
    result = [f".SS {bold(' '.join(said.words))}", escaped(said.title), *literal(said.usage), *details(said)]
    for child in said.children:
        result += command(child)
    return result


def references(names):
    parts = [re.sub(r"(.*)\((.)\)", r".BR \1 (\2)", name) for name in names]
    return [".SH SEE ALSO", *(part + "," for part in parts[:-1]), parts[-1],
            ".PP", "The documents: /usr/share/doc/rocemu, or share/doc/rocemu where rocemu was unpacked."]


def rocemu(said, version, sections):
    """rocemu.1; sections are parts of the documents, roff already."""
    result = header("rocemu", 1, version, "A software RoCEv2 NIC")
    result += [".SH NAME", f"rocemu \\- {escaped(said.title)}", ".SH SYNOPSIS", *literal(
        line for child in said.children for line in child.usage or [" ".join(child.words)])]
    result += [".SH DESCRIPTION",
               "A process, \\fBrocemud\\fR(8), is a NIC that speaks RoCEv2. Verbs programs that know nothing of it find its",
               "devices as they find any RDMA device, and run over them unchanged. This is the command that makes such NICs,",
               "runs programs over them, and shows and changes what they do.", *options(said), ".SH COMMANDS"]
    for child in said.children:
        result += command(child)
    examples = next(lines[1:] for lines in said.paragraphs if lines[0] == "Examples:")
    result += [*sections, ".SH EXAMPLES", *literal(line[2:] for line in examples)]
    return result + references(["rocemud(8)", "rocemu.toml(5)", "ibv_devinfo(1)", "ib_write_bw(1)"])


def rocemud(said, version, sections):
    """rocemud.8."""
    summary, _, description = said.title.removeprefix("rocemud: ").partition(". ")
    result = header("rocemud", 8, version, "A software RoCEv2 NIC")
    result += [".SH NAME", f"rocemud \\- {escaped(summary)}", ".SH SYNOPSIS", *literal(
        ["rocemud --dir DIR [OPTIONS]"]), ".SH DESCRIPTION", escaped(description),
        "Its state directory holds the socket \\fInic.sock\\fR, by which programs and \\fBrocemu\\fR(1) reach it,",
        "and the device tree \\fIsys\\fR, by which libibverbs finds its devices.", ".SH OPTIONS", *details(said)]
    return result + sections + references(["rocemu(1)", "rocemu.toml(5)"])

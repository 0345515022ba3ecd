"""Writes the man pages and the shells' completions: from what the commands themselves say with --help, and from
docs/configuration.md.

  write.py BIN_FOLDER CONFIGURATION_MD VERSION OUT [EMULATOR...]

OUT gets the folders man and completion, as share/ has them. EMULATOR runs the commands where they are another processor's.
"""

import sys
from pathlib import Path

import command_help
import completion
import man_page
import markdown
from roff import header


def main():
    commands, document, version, out, *emulator = sys.argv[1:]
    text = Path(document).read_text()

    def part(name, title):
        return [f".SH {name}", *markdown.section(text, title)]

    rocemu = command_help.read([*emulator, f"{commands}/rocemu"], ["rocemu"])
    rocemud = command_help.read([*emulator, f"{commands}/rocemud"], ["rocemud"])
    files = part("FILES", "Names and state directories")
    toml = [*header("rocemu.toml", 5, version, "A software RoCEv2 NIC"), ".SH NAME",
            "rocemu.toml \\- configuration of a rocemu NIC", *part("DESCRIPTION", "The file"),
            *man_page.references(["rocemu(1)", "rocemud(8)"])]
    pages = {"man/man1/rocemu.1": man_page.rocemu(rocemu, version, [
                 *part("EXIT STATUS", "Exit codes"), *part("ENVIRONMENT", "Environment"), *files]),
             "man/man8/rocemud.8": man_page.rocemud(rocemud, version, files),
             "man/man5/rocemu.toml.5": toml,
             "bash-completion/completions/rocemu": completion.bash(rocemu),
             "zsh/site-functions/_rocemu": completion.zsh(rocemu),
             "fish/vendor_completions.d/rocemu.fish": completion.fish(rocemu)}
    for name, lines in pages.items():
        path = Path(out, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")


main()

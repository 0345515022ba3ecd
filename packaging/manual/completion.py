"""What shells offer after rocemu: subcommands, options, files and names of NICs."""

import re

from command_help import NAME, Row

FROM_HELP = "Written from what rocemu says with --help."


def short(text):
    """What fits beside an option."""
    return re.split(r"[:;(.] ?", text)[0].strip().replace("'", "")[:70]


def next_words(said):
    """Rows of what may follow a command: subcommands, and its options one name each. Options that are named beside
    another, or in the usage alone, count."""
    options = {}
    for row in said.options:
        for name in [*row.names(), *NAME.findall(row.text)]:
            if name.startswith("--"):
                options.setdefault(name, row if name in row.names() else Row(name, row.text))
    for name in NAME.findall(" ".join(said.usage)):
        options.setdefault(name, Row(name))
    described = {row.term: row.text for row in said.subcommands}
    return [Row(word, described.get(word, "")) for word in said.next_words()], options


def commands(said):
    """What follows each: by its words, as 'rocemu link set', the subcommands and options."""
    result = {}
    for one in said.everything():
        words, options = next_words(one)
        name = " ".join(one.words)
        result[name] = (words, options)
        for word in words:
            result.setdefault(f"{name} {word.term}", ([], options))
    return result


def kinds(said):
    """By option: what its value is, file, folder, nic or other."""
    result = {}
    for one in said.everything():
        for row in one.options:
            if row.value():
                kind = {"FILE": "file", "PATH": "file", "DIR": "folder"}.get(row.value(), "other")
                result[row.names()[-1]] = "nic" if row.names()[-1] == "--name" else kind
    return result


# The folders that NICs of this user are in: docs/configuration.md, "Names and state directories".
NICS = '{"${XDG_RUNTIME_DIR:-/run}",/run,/dev/shm}/rocemu{,-$UID}/*/nic.sock /tmp/rocemu-$UID/*/nic.sock'

BASH = r'''
_rocemu_nics() {
  local socket
  for socket in %(nics)s; do
    [[ -S $socket ]] && basename "${socket%%/nic.sock}"
  done
}

_rocemu() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=rocemu i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      if declare -F _command_offset > /dev/null; then
        _command_offset $((i + 1))
      else
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
      fi
      return
    fi
    [[ -n ${_rocemu_words["$command ${COMP_WORDS[i]}"]} ]] && command+=" ${COMP_WORDS[i]}"
  done
  case ${_rocemu_kinds["$before"]} in
    file) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    folder) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    nic) mapfile -t COMPREPLY < <(compgen -W "$(_rocemu_nics)" -- "$word") ;;
    other) COMPREPLY=() ;;
    *) mapfile -t COMPREPLY < <(compgen -W "${_rocemu_words["$command"]}" -- "$word") ;;
  esac
}
complete -o default -F _rocemu rocemu
'''


def bash(said):
    result = ["# rocemu's completion for bash. " + FROM_HELP, "declare -gA _rocemu_words=("]
    for name, (words, options) in commands(said).items():
        result.append(f'  ["{name}"]="{" ".join([row.term for row in words] + list(options))}"')
    result += [")", "declare -gA _rocemu_kinds=("]
    result += [f"  [{option}]={kind}" for option, kind in kinds(said).items()]
    return [*result, ")", *(BASH % {"nics": NICS}).strip().splitlines()]


ZSH = r'''
local command=rocemu word
local -a rows
for word in ${words[2,CURRENT-1]}; do
  if [[ $word == -- ]]; then
    while [[ ${words[1]} != -- ]]; do shift words; ((CURRENT--)); done
    shift words
    ((CURRENT--))
    _normal
    return
  fi
  [[ -n ${after[$command $word]} ]] && command+=" $word"
done
case ${kinds[${words[CURRENT-1]}]} in
  file) _files ;;
  folder) _files -/ ;;
  nic) rows=(${(f)"$(for word in %(nics)s(N); do print ${word:h:t}; done)"}); compadd -a rows ;;
  other) _message value ;;
  *) rows=("${(@f)after[$command]}"); _describe "$command" rows || _files ;;
esac
'''


def zsh(said):
    result = ["#compdef rocemu", "# rocemu's completion for zsh. " + FROM_HELP, "local -A after kinds", "after=("]
    for name, (words, options) in commands(said).items():
        rows = [(row.term, row.text) for row in words] + [(option, row.text) for option, row in options.items()]
        result.append(f"'{name}' '" + "\n".join(f"{term}:{short(text)}" for term, text in rows) + "'")
    result += [")", "kinds=("] + [f"{option} {kind}" for option, kind in kinds(said).items()]
    return [*result, ")", *(ZSH % {"nics": NICS.replace(" /tmp", "(N) /tmp")}).strip().splitlines()]


def fish(said):
    result = ["# rocemu's completion for fish. " + FROM_HELP,
              "complete -c rocemu -n 'not contains -- -- (commandline -opc)' -f",
              "complete -c rocemu -n 'contains -- -- (commandline -opc)' -a '(__fish_complete_command)'"]
    values = kinds(said)
    for name, (words, options) in commands(said).items():
        before = name.split()[1:]
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in before) or "__fish_use_subcommand"
        where = f"complete -c rocemu -n '{seen}; and not contains -- -- (commandline -opc)'"
        if before and words:
            seen += f"; and not __fish_seen_subcommand_from {' '.join(row.term for row in words)}"
        for row in words:
            result.append(f"complete -c rocemu -n '{seen}' -a {row.term} -d '{short(row.text)}'")
        for option, row in options.items():
            value = {"file": " -r -F", "folder": " -r -F", "nic": " -x", "other": " -x"}.get(values.get(option), "")
            result.append(f"{where} -l {option[2:]}{value} -d '{short(row.text)}'")
    return result

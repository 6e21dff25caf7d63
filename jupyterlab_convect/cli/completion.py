"""`convect completion`: have a shell complete the words of `convect`."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from typing import Any

from ..errors import ConvectError
from . import output
from .arguments import LATEST, RUN, open_workspace

MOST_IDS = 50
SCRIPTS = {
    "bash": """\
_convect() {
  local IFS=$'\\n'
  COMPREPLY=($(convect completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _convect convect
""",
    "zsh": """\
_convect() {
  local -a found
  found=(${(f)"$(convect completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -a found; else _files; fi
}
compdef _convect convect
""",
    "fish": """\
complete -c convect -a '(convect completion words -- (commandline -opc)[2..] (commandline -ct) \
2>/dev/null)'
""",
}
"""What each shell reads. Where `convect` knows nothing, it completes the names of files."""


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "completion",
        help="have a shell complete what you type",
        description='In bash: eval "$(convect completion bash)". In zsh the same with zsh. '
        "In fish: convect completion fish | source.",
    )
    parser.add_argument("shell", choices=[*SCRIPTS, "words"], metavar="|".join(SCRIPTS))
    parser.add_argument("word", nargs="*", help=argparse.SUPPRESS)
    parser.set_defaults(handler=_complete)


def _complete(options: argparse.Namespace) -> int:
    if options.shell == "words":
        for word in candidates(options.word or [""]):
            output.say(word)
    else:
        output.say(SCRIPTS[options.shell].rstrip("\n"))
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    """What the last word, which has only been begun, may become."""
    from . import parser_for

    *before, begun = words
    parser = parser_for(before)
    awaited: argparse.Action | None = None
    """The option whose value comes next."""
    given = 0
    """How many arguments without a name came before."""
    for word in before:
        named = parser._option_string_actions.get(word)
        verbs = _verbs(parser)
        if awaited is not None:
            awaited = None
        elif named is not None:
            awaited = named if named.nargs != 0 else None
        elif verbs is not None and word in verbs.choices:
            parser, given = verbs.choices[word], 0
        elif not word.startswith("-"):
            given += 1
    found = _choices(parser, awaited, given, begun.startswith("-"))
    return [each for each in found if each.startswith(begun)]


def _choices(
    parser: argparse.ArgumentParser, awaited: argparse.Action | None, given: int, is_option: bool
) -> list[str]:
    if awaited is not None:
        return [str(each) for each in awaited.choices or ()]
    if is_option:
        actions = parser._option_string_actions.items()
        return [name for name, action in actions if action.help != argparse.SUPPRESS]
    if (verbs := _verbs(parser)) is not None:
        return list(verbs.choices)
    positional = [each for each in parser._actions if not each.option_strings]
    if not positional:
        return []
    action = positional[min(given, len(positional) - 1)]
    if action.choices:
        return [str(each) for each in action.choices]
    with contextlib.suppress(ConvectError, OSError):
        if (action.help or "").startswith(RUN):
            return [LATEST, *_run_ids()]
        if action.dest == "sweep":
            return [LATEST, *(each["id"] for each in open_workspace().sweeps.all()[:MOST_IDS])]
    return []


def _verbs(parser: argparse.ArgumentParser) -> Any:
    """The verbs that come next, if the parser has any."""
    return next(
        (each for each in parser._actions if isinstance(each, argparse._SubParsersAction)), None
    )


def _run_ids() -> list[str]:
    from ..runs.index import Query

    page = open_workspace().store.find(Query(limit=MOST_IDS))
    return [run["id"] for run in page.runs]

"""``tui-probe completion SHELL``: what a shell needs to complete commands, options, probes, pages and traces.

The shell asks ``tui-probe`` itself at each press of its key, with the line so far in the environment; argcomplete reads
that and answers. So a word is looked up where it is known, and nothing has to be made anew after an update.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .output import ExitStatus, write_stdout

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping

COMPLETION_VARIABLE: Final = "_ARGCOMPLETE"
"""The environment variable that a shell sets for a question."""
_SHELLS: Final = ("bash", "zsh", "fish")
_MAX_TRACES: Final = 20
"""Traces that are offered: reading more of them would delay the shell."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.epilog = (
        'bash: add to ~/.bashrc: eval "$(tui-probe completion bash)". zsh: the same in ~/.zshrc, after compinit.'
        " fish: tui-probe completion fish > ~/.config/fish/completions/tui-probe.fish"
    )
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS, help=", ".join(_SHELLS))


def run(arguments: argparse.Namespace) -> int:
    """Write the shell's code to stdout."""
    from argcomplete.shell_integration import shellcode

    write_stdout(shellcode(["tui-probe"], shell=arguments.shell).strip())
    return ExitStatus.OK


def words_so_far() -> list[str]:
    """Return the words of the line to complete, without the program's name; open quotes do not matter."""
    line = os.environ.get("COMP_LINE", "")
    try:
        return shlex.split(line)[1:]
    except ValueError:
        return line.split()[1:]


def answer(
    parser: argparse.ArgumentParser, command_parser: argparse.ArgumentParser | None, command: str | None
) -> None:
    """Answer the shell, and end the process. ``command_parser`` is the parser of the ``command`` in the line."""
    import argcomplete

    for action in command_parser._actions if command_parser else ():
        names = _evaluations if (command, action.dest) == ("eval", "name") else _COMPLETIONS_BY_DEST.get(action.dest)
        if names is not None:
            action.completer = _completer(names)  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options=False)


def _completer(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    def complete(prefix: str, **_: Any) -> list[str]:
        from argcomplete.completers import FilesCompleter

        matches = [name for name in names() if name.startswith(prefix)]
        return matches or list(FilesCompleter()(prefix))

    return complete


def _probes() -> Iterable[str]:
    from tui_probe.probe_files.catalogue import built_in_sets
    from tui_probe.probe_files.loading import built_in_files, installed_files

    return sorted({*installed_files(), *built_in_files(), *built_in_sets()})


def _pages() -> Iterable[str]:
    from tui_probe.pages.page_registry import all_pages

    return [page.name for page in all_pages()]


def _topics() -> Iterable[str]:
    from tui_probe.help import topics

    return [topic.name for topic in topics()]


def _evaluations() -> Iterable[str]:
    from tui_probe.evals.evaluation import evaluation_names

    return evaluation_names()


def _traces() -> Iterable[str]:
    """The newest of the folder where traces are made, and of those looked at lately."""
    from tui_probe.trace.recent import recent_traces

    from .arguments import trace_dir

    directory = Path.cwd()
    for trace in recent_traces({trace_dir()}, _MAX_TRACES):
        path = trace.directory
        yield str(path.relative_to(directory) if path.is_absolute() and path.is_relative_to(directory) else path)


_COMPLETIONS_BY_DEST: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "probe": _probes,
    "probe_folders": _probes,
    "page": _pages,
    "topic": _topics,
    "trace": _traces,
    "baseline": _traces,
    "candidate": _traces,
}
"""Completers by name of the parser's destination."""

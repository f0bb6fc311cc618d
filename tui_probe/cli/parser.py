"""Parsers of the command line: help in two levels, suggestions for typos, and options anywhere in the line."""

from __future__ import annotations

import argparse
import shutil
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from tui_probe.draw.printable import printable_lines
from tui_probe.errors import did_you_mean

from .commands import COMMANDS, GROUPS


class Parser(argparse.ArgumentParser):
    """Accept options between and after the other words, and escape control characters in errors.

    With ``main_options``, ``--help`` shows these only, and ``--help-all`` all options.
    """

    main_options: tuple[str, ...] = ()

    def format_help(self) -> str:
        if not self.main_options:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        formatter.start_section("main options")
        formatter.add_arguments([self._option_string_actions[option] for option in self.main_options])
        formatter.end_section()
        return f"{formatter.format_help()}\n{self.prog} --help-all lists all options.\n"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        return super().parse_known_args(self.options_first(list(args or ())), namespace)

    def options_first(self, words: list[str]) -> list[str]:
        """Return the words with the options first, each with its value.

        argparse ignores an optional word once an option was in its place. Words of another command stay in place.
        """
        if any(action.nargs in (argparse.PARSER, argparse.REMAINDER) for action in self._get_positional_actions()):
            return words
        end = words.index("--") if "--" in words else len(words)
        if end and self._takes_value(words[end - 1]):  # its value is missing: it must not take another word for it
            end -= 1
        options: list[str] = []
        others: list[str] = []
        remaining = iter(words[:end])
        for word in remaining:
            if self._takes_value(word):
                options += [word, *islice(remaining, 1)]
            else:
                (options if word.startswith("-") and word != "-" else others).append(word)
        return [*options, *others, *words[end:]]

    def _takes_value(self, word: str) -> bool:
        action = self._option_string_actions.get(word)
        return action is not None and action.nargs is None

    def error(self, message: str) -> NoReturn:
        super().error(printable_lines(message))

    def refuse(self, unknown: list[str]) -> NoReturn:
        """Report unknown arguments, with an option that is similar to the first."""
        first = next((word for word in unknown if word.startswith("-")), unknown[0])
        if not first.startswith("-"):
            self.error(f"unexpected argument {first!r}")
        word = first.partition("=")[0]
        options = [option for option in self._option_string_actions if option.startswith("--")]
        similar = did_you_mean("--" + word.lstrip("-"), options)
        self.error(f"unknown option {word!r}{similar}")


class HelpAllAction(argparse.Action):
    """Print the help with all options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        if isinstance(parser, Parser):
            parser.main_options = ()
        parser.print_help()
        parser.exit()


def show_options_first(parser: argparse.ArgumentParser, options: tuple[str, ...]) -> None:
    """Let ``--help`` show these options only, and add ``--help-all``."""
    parser.add_argument("--help-all", action=HelpAllAction, nargs=0, help="show all options and exit")
    if isinstance(parser, Parser):
        parser.main_options = options


class FrontParser(Parser):
    """The parser of ``tui-probe`` itself: its help describes the main commands, and names the others by group."""

    def format_help(self) -> str:
        main = [f"  {name:<9} {entry.help}" for name, entry in COMMANDS.items() if not entry.group]
        others = [
            f"  {group:<9} {', '.join(name for name, entry in COMMANDS.items() if entry.group == group)}"
            for group in GROUPS
        ]
        return "\n".join(
            [
                "usage: tui-probe [-h] [--version] COMMAND ...",
                "",
                str(self.description),
                "",
                "Commands:",
                *main,
                "",
                "More commands:",
                *others,
                "",
                "tui-probe COMMAND --help  options of a command",
                "tui-probe help tour       a tour by task",
                "",
            ]
        )


def unknown_command(word: str) -> str:
    """Return the error for a word that is not a command; a program is one to profile."""
    similar = did_you_mean(word, COMMANDS)
    problem = f"unknown command {word!r}{similar}"
    if shutil.which(word) or Path(word).is_file():
        return f"{problem}{' T' if similar else '; t'}o profile it: tui-probe run -- {word} ..."
    return problem if similar else f"{problem}; commands: {', '.join(COMMANDS)}"

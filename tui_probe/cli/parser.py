"""Subcommands by name, and their parsers: help in two levels, suggestions for typos, options anywhere in the line."""

from __future__ import annotations

import argparse
import shutil
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from tui_probe.draw.printable import printable_lines
from tui_probe.errors import did_you_mean, suggestion

GROUPS = ("runs", "pages", "probes", "agents", "start")
"""Groups of commands that ``tui-probe --help`` only names."""
READS_RESULTS = ("list", "watch", "open", "report", "show", "explain", "import", "compare", "eval", "roofline")
"""Commands that show results of probes, so they take ``--probe`` for one that is not installed."""


class Command(Protocol):
    """Functions of a subcommand: of its module, or of a class there."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, arguments: argparse.Namespace) -> int: ...


class Entry(NamedTuple):
    """A command: its module, imported only when it is used, its line in the help, and its group; "" for a main one."""

    module: str
    """The module, or ``MODULE:CLASS`` for one of several commands of a module."""
    help: str
    group: str = ""
    needs_hook: bool = False
    """True if the command needs the hook; the viewer wheel does not import its module, whose imports may be missing
    there.
    """


COMMANDS = {
    "run": Entry("run", "profile a program: live screen on a terminal, then a report", needs_hook=True),
    "open": Entry("open", "explore a trace, or files of Nsight Compute and Nsight Systems"),
    "report": Entry("report", "print the report of a run, or one page, as text, JSON or CSV"),
    "compare": Entry("compare", "compare two runs, kernels or launches"),
    "import": Entry("import_command", "print tables of Nsight Compute and Nsight Systems files"),
    "check": Entry("check", "verify a probe and try to insert it into kernels; needs no GPU"),
    "doctor": Entry("doctor", "check driver, tools and terminal, and suggest fixes"),
    "help": Entry("help", "show help pages: a tour, concepts, formats, a glossary"),
    "home": Entry("home", "show recent traces and a form to start a program (default on a terminal)", "runs"),
    "list": Entry("list_runs", "list recent runs by command, with findings and changes", "runs"),
    "watch": Entry("watch", "attach to an active run from another terminal", "runs"),
    "ctl": Entry("ctl", "switch an active run's recording on or off; change its budgets", "runs"),
    "show": Entry("show", "print one page of a kernel or trace as text, JSON, CSV or a picture", "pages"),
    "schema": Entry("documents:Schema", "print the JSON Schema of a JSON output", "pages"),
    "explain": Entry("documents:Explain", "walk through a trace: files, log, one kernel, one result", "pages"),
    "extract": Entry("extract", "write a saved launch as a standalone program", "pages"),
    "roofline": Entry("roofline", "place kernels on the roofline of the GPU", "pages"),
    "eval": Entry("evaluation", "answer questions that need several traces", "pages"),
    "bandwidth": Entry("bandwidth", "measure the memory bandwidths of this machine", "pages"),
    "probes": Entry("probes", "list the built-in probes with their metrics, cost and source", "probes"),
    "new-probe": Entry("documents:NewProbe", "write a commented probe template in Python or TOML", "probes"),
    "gate": Entry("gate", "compare a program with its baseline; fail if it is worse", "agents", needs_hook=True),
    "mcp": Entry("mcp", "serve tools for agents over the Model Context Protocol", "agents"),
    "skill": Entry("documents:Skill", "print a skill file that teaches an agent to profile and compare", "agents"),
    "demo": Entry("demo", "profile a bundled example on the GPU or the simulated GPU", "start", needs_hook=True),
    "completion": Entry("completion", "print the completion code for bash, zsh or fish", "start"),
}


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
        operands: list[str] = []
        remaining = iter(words[:end])
        for word in remaining:
            if self._takes_value(word):
                options += [word, *islice(remaining, 1)]
            elif word.startswith("-") and word != "-":
                options.append(word)
            else:
                operands.append(word)
        return [*options, *operands, *words[end:]]

    def _takes_value(self, word: str) -> bool:
        action = self._option_string_actions.get(word)
        return action is not None and action.nargs is None

    def error(self, message: str) -> NoReturn:
        super().error(printable_lines(message))

    def refuse(self, unknown: list[str]) -> NoReturn:
        """Report unknown arguments, with an option that is similar to the first."""
        argument = next((word for word in unknown if word.startswith("-")), unknown[0])
        if not argument.startswith("-"):
            self.error(f"unexpected argument {argument!r}")
        word = argument.partition("=")[0]
        options = [option for option in self._option_string_actions if option.startswith("--")]
        form = word.lstrip("-")
        formats = next((action.choices or () for action in self._actions if action.dest == "format"), ())
        if form in formats:
            hint = f": did you mean --format {form}?"
        elif len(form) == 1:  # a letter of another command, such as -p of run
            hint = suggestion([option for option in options if option.startswith(f"--{form}")])
        else:
            hint = did_you_mean(f"--{form}", options)
        self.error(f"unknown option {word!r}{hint}")


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
        main_commands = [f"  {name:<9} {entry.help}" for name, entry in COMMANDS.items() if not entry.group]
        groups = [
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
                *main_commands,
                "",
                "More commands:",
                *groups,
                "",
                "tui-probe COMMAND --help  options of a command",
                "tui-probe help tour       a tour by task",
                "",
            ]
        )


def unknown_command(word: str) -> str:
    """Return the error for a word that is not a command; a program is one to profile."""
    hint = did_you_mean(word, COMMANDS)
    problem = f"unknown command {word!r}{hint}"
    if shutil.which(word) or Path(word).is_file():
        return f"{problem}{' T' if hint else '; t'}o profile it: tui-probe run -- {word} ..."
    return problem if hint else f"{problem}; commands: {', '.join(COMMANDS)}"

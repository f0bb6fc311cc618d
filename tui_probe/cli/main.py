"""``tui-probe``: finds the subcommand and turns errors into exit statuses."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import (
    SCARCE,
    ImportFileError,
    NoDriverError,
    ProbeError,
    TargetError,
    TraceError,
    UsageError,
)
from tui_probe.launcher.driver import require_hook
from tui_probe.version import __version__

from . import completion
from .output import ExitStatus, complain, discard_output, on_terminal, warn
from .parser import COMMANDS, READS_RESULTS, FrontParser, Parser, unknown_command

if TYPE_CHECKING:
    import argparse

    from tui_probe.ui.session import SameKernel

    from .parser import Command

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of writing to a full disk."""
OWN_OPTIONS = ("-h", "--help", "--version")
"""A command line that begins with any other option is one of ``run``."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    argv = sys.argv[1:] if arguments is None else arguments
    open_standard_streams()
    try:
        return dispatch_and_flush(argv)
    except KeyboardInterrupt:
        warn("interrupted")
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return ExitStatus.OK
    except OSError as error:
        if error.errno in NO_ROOM:
            discard_output()
            complain(f"{error.filename or 'stdout'}: {error.strerror}")
        elif error.errno in SCARCE:
            complain(f"{error.strerror}: raise the limit with ulimit")
        elif not has_directory():
            complain("the current directory was deleted; change to another directory")
        else:
            raise
        return ExitStatus.FAILED
    except ProbeError as error:
        complain(str(error))
        return status_of(error)


def dispatch_and_flush(argv: list[str]) -> int:
    """Run a command and write out what it printed, while errors of that are still handled.

    Raises SystemExit for ``--help``, ``--version`` and usage errors, as argparse does.
    """
    try:
        status = dispatch(argv)
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def has_directory() -> bool:
    """Return whether the current directory exists, so that relative paths can be made absolute."""
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def dispatch(argv: list[str], begin: SameKernel | None = None) -> int:
    """Parse the command line, with only the module that it names, and run it; its screen begins at a kernel."""
    if completion.COMPLETION_VARIABLE in os.environ:
        complete()
    if argv and argv[0].startswith("-") and argv[0] not in OWN_OPTIONS:
        argv = ["run", *argv]
    if argv and argv[0] == "import":
        from .import_command import with_tool

        argv = ["import", *with_tool(argv[1:])]
    parser, subparser = build_parsers(next((word for word in argv if word in COMMANDS), None))
    if argv and not argv[0].startswith("-") and argv[0] not in COMMANDS:
        parser.error(unknown_command(argv[0]))
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        (subparser or parser).refuse(unknown)
    if options.command_name is None and not argv and on_terminal():
        return dispatch(["home"])
    if options.command_name is None:
        parser.print_help()
        return ExitStatus.OK
    options.begin, options.argv = begin, argv
    register_probes(getattr(options, "probe_folders", []))
    status = load_command(options.command_name).run(options)
    return status if getattr(options, "next_request", None) is None else run_again(options, argv)


def run_again(options: argparse.Namespace, argv: list[str]) -> int:
    """Run what was asked for on the screen of a command; behind that the home screen, if it was on that."""
    from .screen import requested_command

    status = dispatch(requested_command(options.next_request, options), options.next_request.begin)
    return dispatch(argv) if options.command_name == "home" else status


def complete() -> None:
    """Answer a shell that asks how its line may continue, and end."""
    typed_words = completion.words_so_far()
    command_name = next((word for word in typed_words if word in COMMANDS), None)
    completion.answer(*build_parsers(command_name), command_name)


def add_probe_folders(parser: argparse.ArgumentParser) -> None:
    """Add the option for probes that are not installed."""
    parser.add_argument(
        "--probe", action="append", default=[], metavar="DIRECTORY|NAME", dest="probe_folders",
        help="directory of a probe that is not installed, if the trace was recorded with it. If the trace does not name"
             " its probe: name of a built-in probe. May be repeated",
    )  # fmt: skip


def register_probes(folders: list[str]) -> None:
    """Load the code of these folders, which the user named, or take a trace that names no probe for one of this name.

    Raises ProbeFileError for one that is broken, or that is none.
    """
    if folders:
        from tui_probe.probekit.recognised import set_assumed_probe
        from tui_probe.probekit.registry import add_folder, probe_named

        for folder in folders:
            if not Path(folder).exists() and probe_named(folder) is not None:
                set_assumed_probe(folder)
            else:
                add_folder(Path(folder))


def build_parsers(command_name: str | None) -> tuple[Parser, Parser | None]:
    """Return the parser of the command line and that of one command, the only one it then has; None: it has all.

    The others would take twice as long to build as all else before a command begins.
    """
    parser = FrontParser(
        prog="tui-probe", description="A terminal profiler for CUDA kernels: which kernels, lines and warps cost time.",
        allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"tui-probe {__version__}")
    subcommands = parser.add_subparsers(dest="command_name", metavar="COMMAND", parser_class=Parser)
    command_parser = None
    for name, entry in COMMANDS.items() if command_name is None else [(command_name, COMMANDS[command_name])]:
        subparser = subcommands.add_parser(name, help=entry.help, description=sentence(entry.help), allow_abbrev=False)
        if name == command_name:
            command_parser = subparser
            load_command(name).add_arguments(subparser)
            if name in READS_RESULTS:
                add_probe_folders(subparser)
    return parser, command_parser


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def load_command(name: str) -> Command:
    """Import the module of a command. Raises LaunchError for one that profiles if the C parts are not installed."""
    if COMMANDS[name].needs_hook:
        require_hook()
    module_name, _, class_name = COMMANDS[name].module.partition(":")
    module = importlib.import_module(f"tui_probe.cli.{module_name}")
    command: Command = getattr(module, class_name) if class_name else module
    return command


def status_of(error: ProbeError) -> int:
    """The exit status of an error that ends a command."""
    match error:
        case NoDriverError():
            return ExitStatus.NO_DRIVER
        case TargetError(status=status):
            return status
        case UsageError():
            return ExitStatus.USAGE
        case TraceError() | ImportFileError():
            return ExitStatus.UNREADABLE_TRACE
        case _:
            return ExitStatus.FAILED


def open_standard_streams() -> None:
    """A closed standard stream becomes /dev/null, so that no file that we open takes its number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a locale without the characters that we use

"""``tui-probe extract``: write a directory that runs one saved launch without tui-probe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import ChoiceError
from tui_probe.trace.locate import kernel_filter

from .arguments import ADDRESS, address_of, trace_folder_of
from .output import ExitStatus, inform, shell_word, write_stdout

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the launch and the directory."""
    parser.add_argument("launch", metavar="TRACE:KERNEL@N", help=f"a launch saved by `run --keep-launch`: {ADDRESS}")
    parser.add_argument("directory", type=Path, metavar="DIR", help="the directory to create")


def run(arguments: argparse.Namespace) -> int:
    """Write the directory and print its files."""
    from tui_probe.reproducer.extraction import differences, extract
    from tui_probe.reproducer.kept_launch import choose_kept, kept_launches, kept_options, why_not_kept

    address = address_of(arguments.launch)
    trace = trace_folder_of(address)
    launches = kept_launches(trace)
    try:
        launch = choose_kept(launches, kernel_filter(address.kernel), address.launch, kept_options(trace))
    except ChoiceError as error:
        raise ChoiceError(f"{trace}: {error}{why_not_kept(trace)}") from error
    extract(launch, arguments.directory)
    for sentence in differences(launch):
        inform(sentence)
    folder = shell_word(arguments.directory)
    write_stdout(
        (
            f"launch {launch.number} of {launch.demangled} is in {folder}; run it:",
            f"  python3 {folder}/launch.py",
            f"  cd {folder} && cc -O2 -o launch launch.c -ldl && ./launch",
        )
    )
    return ExitStatus.OK

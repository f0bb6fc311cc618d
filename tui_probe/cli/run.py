"""``tui-probe run``: a command under the hook."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tui_probe.launcher.own_command import why_not_itself
from tui_probe.probe_files.between import between

from .again import take_again
from .profiling import profile
from .run_arguments import add_arguments
from .run_ncu import profile_with_ncu
from .run_options import options_of

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status, 128 + n if signal n ended it."""
    if arguments.between:
        arguments.probe = [*(arguments.probe or ()), *map(between, arguments.between)]
    if arguments.again is not None:
        os.chdir(folder_of_former(arguments))
    return start(arguments)


def folder_of_former(arguments: argparse.Namespace) -> Path:
    """Take the command and the options of a former run; the folder where that ran."""
    if arguments.command:
        arguments.refuse("--again runs the command of a trace: leave out COMMAND, or --again")
    if arguments.ncu:
        arguments.refuse("--ncu is for a command: tui-probe run --ncu -- COMMAND...")
    return take_again(arguments)


def start(arguments: argparse.Namespace) -> int:
    """Run the command in the current folder."""
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        arguments.refuse("which command? tui-probe run [options] -- COMMAND..., or --again")
    if words := why_not_itself(command):
        arguments.refuse(words)
    if arguments.all_kernels and (arguments.kernel or arguments.exclude):
        arguments.refuse("--all-kernels cannot be combined with -k or --exclude")
    if arguments.memusage and arguments.benchmark:
        arguments.refuse("--memusage probes nothing that --benchmark could time: choose one of them")
    if arguments.save_results and not arguments.benchmark:
        arguments.refuse("--save-results is for --benchmark: other runs save results anyway")
    if arguments.sim_arch and arguments.driver:
        arguments.refuse("--sim-arch is for the simulated GPU, --driver names another one: choose one of them")
    if arguments.ncu:
        return profile_with_ncu(arguments, command)
    return profile(options_of(arguments, command), arguments)

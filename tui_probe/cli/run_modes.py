"""Runs of a command without a probe: ``--ncu`` under Nsight Compute, and ``--shake N`` with random delays."""

from __future__ import annotations

import os
import shlex
import sys
import time
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.errors import ImportFileError, LaunchError
from tui_probe.integrations.shake import Shaker
from tui_probe.launcher.ncu import BYTE_METRICS, find_ncu, needs_root, run_ncu
from tui_probe.launcher.signals import tidy_end
from tui_probe.launcher.target import exit_status

from .output import ExitStatus, inform, put, shell_word, warn

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.integrations.shake import Race

HOOK_OPTIONS: Final = (
    "benchmark", "replay", "wait", "memusage", "detail", "machine_code", "kernel", "exclude", "launches",
    "max_trace_bytes", "max_result_files", "max_log_bytes", "max_write_rate", "min_free_disk", "max_probe_memory",
    "max_host_memory", "keep_launch", "max_kept_bytes",
    "after", "duration", "watchdog", "nvtx", "tensors", "driver", "sim", "sim_arch", "no_check", "name",
)  # fmt: skip
"""Options that need the hook, by their names in the arguments."""


def profile_with_ncu(arguments: argparse.Namespace, command: Sequence[str]) -> int:
    """Run the command under ncu and report. Returns the exit status of ncu, which passes on the command's."""
    refuse_hook_options(arguments)
    wanted = arguments.ncu
    ncu = find_ncu(os.environ)
    if needs_root():
        warn("only root may read performance counters on this machine, so ncu will run the command without measuring")
    log = log_path(arguments.tracedir)
    inform(f"ncu writes {log}")
    with tidy_end():
        status = exit_status(run_ncu(ncu, log, wanted, command, capture_range=arguments.capture_range))
    if not arguments.no_report:
        report_ncu_log(log, wanted, arguments)
    return status


def refuse_hook_options(arguments: argparse.Namespace) -> None:
    """Refuse options of the hook with --ncu, under which there is no hook and they have no effect."""
    values = {name: getattr(arguments, name) for name in HOOK_OPTIONS}
    given = [name for name, value in values.items() if value is not None and value is not False]
    if given:
        arguments.refuse(f"--ncu runs the command without the hook; omit {', '.join(map(option_name, given))}")


def option_name(name: str) -> str:
    """Return the option of a setting, as a user writes it."""
    return f"--{name.replace('_', '-')}"


def log_path(folder: Path) -> Path:
    """A new file for the table."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"{folder}: {error.strerror}; choose another directory with --tracedir") from error
    return (folder / f"{time.strftime('%b%d_%H%M%S')}_{os.getpid()}.ncu.csv").absolute()


def report_ncu_log(log: Path, wanted: Sequence[str], arguments: argparse.Namespace) -> None:
    """Write the page of what ncu measured; its failures do not change the exit status."""
    from tui_probe.nsight.importers.ncu import read_ncu
    from tui_probe.nsight.pages.opening import NcuSources, ncu_page
    from tui_probe.pages.table_page import page_lines

    from .import_command import text_width
    from .output import speaks_utf8

    try:
        table = read_ncu([log])
    except ImportFileError as error:
        warn(f"no report: {error}")
        return
    page = ncu_page("traffic" if wanted == BYTE_METRICS else "metrics", NcuSources(table))
    plain = arguments.ascii or not speaks_utf8(sys.stdout)
    put(("", *page_lines(page, "table", width=text_width(), ascii_only=plain)))
    inform(f"other pages: tui-probe import ncu {shell_word(log)} --page kernels")


def shake(arguments: argparse.Namespace, command: Sequence[str]) -> int:
    """Run the command with each seed, and print what was found. Returns 1 if a race was found."""
    if arguments.probe or arguments.benchmark or arguments.memusage or arguments.replay or arguments.watchdog:
        arguments.refuse("--shake cannot be combined with -p, --benchmark, --memusage, --replay or --watchdog")
    shaker = Shaker(_shake_options(arguments), command, arguments.compare_file or (), arguments.compare_memory or ())
    seeds = range(arguments.seed, arguments.seed + arguments.shake)
    race = shaker.find(seeds, inform)
    put(_race_lines(race) if race else [f"no difference in {units.counted(len(seeds), 'run')} with delays"])
    put(f"{kernel} is not delayed: {reason}" for kernel, reason in shaker.unprobed.items())
    if arguments.sim and not race:
        inform("delays seldom change the order of warps on the simulated GPU; run --sim finds races without --shake")
    if race:
        again = f"tui-probe run --shake 1 --seed {race.seed} -- {shlex.join(command)}"
        put(f"{shaker.runs} runs in all; to repeat the difference: {again}")
    return ExitStatus.FAILED if race else ExitStatus.OK


def _shake_options(arguments: argparse.Namespace) -> list[str]:
    """Return the options of each run with delays."""
    given = {
        "-k": arguments.kernel, "--exclude": arguments.exclude, "--machine-code": arguments.machine_code,
        "--sim-arch": arguments.sim_arch, "--driver": arguments.driver,
    }  # fmt: skip
    return [*(["--sim"] if arguments.sim else []), *(f"{name}={value}" for name, value in given.items() if value)]


def _race_lines(race: Race) -> Iterator[str]:
    yield f"seed {race.seed} changes the results of the program: {race.difference}"
    yield f"{race.shown} of {race.tried} runs that delay only these instructions had different results, too:"
    for site in race.sites:
        yield f"  {site.kernel}: PTX line {site.line} {site.text}"

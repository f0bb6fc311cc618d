"""``tui-probe run``: a command under the hook."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError, BooleanOptionalAction
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tui_probe.errors import ProbeFileError
from tui_probe.launcher.options import MAX_TRACE_BYTES, RunOptions
from tui_probe.launcher.passing import run_passing_on
from tui_probe.launcher.screened import ScreenedTarget
from tui_probe.launcher.session import Session
from tui_probe.launcher.signals import tidy_end
from tui_probe.launcher.target import exit_status
from tui_probe.probe_files.folders import DEFAULT, built_in_files, in_folder, installed_files
from tui_probe.probe_files.loading import load_probe
from tui_probe.trace.recent import remember

from .chosen import chosen_settings, tell_problems, trace_dir
from .output import inform, let_go_of_lost_terminal, warn
from .run_ncu import add_ncu_options, profile_with_ncu
from .screen import add_screen_options, show, wants_screen
from .text import report_after_run
from .values import Unsupported, launches, min_free, names, sample, size, size_or_none

if TYPE_CHECKING:
    import argparse

    from tui_probe.engine.model import Probe

USAGE = "tui-probe run [options] [--] COMMAND..."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``run``. COMMAND begins at the first word that is no option."""
    parser.usage = USAGE
    add_probe_options(parser)
    parser.add_argument(
        "--tracedir", "--trace", type=Path, default=trace_dir(), metavar="DIR",
        help="where trace directories are made; default %(default)s",
    )  # fmt: skip
    parser.add_argument("--memusage", action=Unsupported, instead="each report gives probe memory")
    parser.add_argument("--callback", action=Unsupported, instead="a probe file names its callback")
    chosen = parser.add_argument_group("what is probed")
    chosen.add_argument(
        "-k", "--kernel", type=names, metavar="A:B", help="probe only kernels with A or B in their names"
    )
    chosen.add_argument(
        "--exclude", "--filter", type=names, metavar="A:B", help="do not probe kernels with A or B in their names"
    )
    chosen.add_argument("--launches", type=launches, metavar="0-9,20", help="probe only these launches of each kernel")
    chosen.add_argument(
        "--sample", type=sample, metavar="SPEC",
        help="probe only some blocks of each grid: 1/16 (one in 16), 0-131 (a range), 64 (that many, evenly spread)",
    )  # fmt: skip
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-trace-bytes", type=size_or_none, metavar="SIZE",
        help="stop saving results at this size, such as 4G; 0: no limit; default 1G",
    )  # fmt: skip
    limits.add_argument(
        "--min-free-disk", type=min_free, metavar="LEAST",
        help="pause saving results while less than this is free on the trace's disk, such as 10G or 3%%; 0: never;"
             " default 2G,5%%",
    )  # fmt: skip
    limits.add_argument(
        "--max-probe-memory", type=size, metavar="SIZE", help="limit the GPU memory that probes take, such as 512M"
    )
    limits.add_argument(
        "--no-cache", action="store_true", help="ignore the cache: prepare every kernel, and keep none for later runs"
    )
    limits.add_argument("--no-source", action="store_true", help="do not copy the kernels' source files into the trace")
    machine = parser.add_argument_group("driver").add_mutually_exclusive_group()
    machine.add_argument("--driver", type=Path, metavar="PATH", help="the libcuda.so.1 to use")
    machine.add_argument("--sim", action="store_true", help="use the simulated GPU")
    add_ncu_options(parser)
    add_screen_options(parser)
    parser.add_argument("command", nargs="...", metavar="COMMAND...", help="the program to profile, and its arguments")


def add_probe_options(parser: argparse.ArgumentParser) -> None:
    """What ``run`` and ``demo`` have in common."""
    parser.add_argument(
        "-p", "--probe", "-t", default=chosen_settings().probe or DEFAULT, metavar="PROBE",
        help="a built-in probe (see `tui-probe probes`) or a probe file; default %(default)s",
    )  # fmt: skip
    parser.add_argument("--benchmark", action="store_true", help="also time the original kernels, and report slowdowns")
    parser.add_argument(
        "--detail", action=BooleanOptionalAction, default=None,
        help="save all records of a probe; default: what its pages need (sums of the launch, a record per block)",
    )  # fmt: skip
    parser.add_argument("--no-report", action="store_true", help="no text report at the end")
    parser.set_defaults(refuse=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status, 128 + n if signal n ended it."""
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        arguments.refuse("which command? tui-probe run [options] -- COMMAND...")
    if arguments.ncu:
        return profile_with_ncu(arguments, command)
    options = RunOptions(
        command=tuple(command),
        probe=arguments.probe,
        trace_root=arguments.tracedir,
        kernels=arguments.kernel,
        excluded=arguments.exclude,
        launches=arguments.launches,
        sample=arguments.sample,
        benchmark=arguments.benchmark,
        detail=wants_detail(arguments),
        driver=arguments.driver,
        simulated=arguments.sim,
        max_trace_bytes=MAX_TRACE_BYTES if arguments.max_trace_bytes is None else arguments.max_trace_bytes,
        min_free_disk=least_free(arguments),
        max_probe_memory=arguments.max_probe_memory,
        cache=not arguments.no_cache,
        sources=not arguments.no_source,
    )
    return profile(options, arguments)


def known_probe(name: str) -> Probe:
    """The probe to run; what it means is known then, too, though no package brings it. Raises ProbeFileError."""
    own = load_probe(name)
    if in_folder(own.path) and own.name not in {**installed_files(), **built_in_files()}:
        from tui_probe.probekit.registry import add_folder

        add_folder(own.path.parent)
    return own


def wants_detail(arguments: argparse.Namespace) -> bool:
    """Whether all records are to be saved, as the command line or else the settings say."""
    return bool(chosen_settings().detail if arguments.detail is None else arguments.detail)


def least_free(arguments: argparse.Namespace) -> str | None:
    """What is to stay free of the trace's disk; None if neither the command line nor the environment says."""
    told = os.environ.get("TUI_PROBE_MIN_FREE_DISK")
    if arguments.min_free_disk or not told:
        return cast("str | None", arguments.min_free_disk)
    try:
        return min_free(told)
    except ArgumentTypeError as error:
        arguments.refuse(f"TUI_PROBE_MIN_FREE_DISK: {error}")
        raise  # not reached: refusing ends the process


def profile(options: RunOptions, arguments: argparse.Namespace) -> int:
    """Run a target, on the screen or without, and report. Returns the target's exit status."""
    try:
        own = known_probe(options.probe)
    except ProbeFileError as error:
        arguments.refuse(str(error))
    if options.sample and own.about.every_block:
        arguments.refuse(
            f"--sample: {own.name} needs every block, so it cannot be sampled; leave out --sample, or choose another"
            " probe with -p"
        )
    probe = own.path.absolute()
    with tidy_end():
        if wants_screen(arguments):
            status, traces = run_on_screen(options, probe, arguments)
        else:
            status, traces = run_plainly(options, probe)
            tell_problems()  # not before: scripts take the first line of stderr for the trace
    for trace in traces:
        remember(trace)
    if not arguments.no_report:
        report_after_run(traces, arguments.ascii)
    return status


def run_plainly(options: RunOptions, probe: Path) -> tuple[int, list[Path]]:
    """Without a screen: streams passed on. Returns the exit status and the trace directories."""
    # The first line is written by the new process, where descriptor 2 is the target's already.
    stderr = os.dup(2)
    with Session(options, probe, announce=lambda trace: inform(f"trace in {trace}", stderr)) as session:
        returncode = run_passing_on(session)
        tell_cache_hits(session)
        tell_what_failed(session)
        traces = session.trace_paths()
    return exit_status(returncode), traces


def run_on_screen(options: RunOptions, probe: Path, arguments: argparse.Namespace) -> tuple[int, list[Path]]:
    """Under the live screen. Returns the exit status and the trace directories."""
    with Session(options, probe, announce=lambda _: None) as session:
        target = ScreenedTarget(session)
        shown = show(arguments, target=target)
        if target.poll() is None:
            warn(f"waiting for {options.command[0]} (process {target.pid}) to end")
        returncode = target.wait(received=shown - 128 if shown > 128 else 0)
        let_go_of_lost_terminal()
        for trace in session.trace_paths():
            inform(f"trace in {trace}")
        tell_cache_hits(session)
        tell_what_failed(session)
        traces = session.trace_paths()
    return exit_status(returncode), traces


def tell_cache_hits(session: Session) -> None:
    """A line on stderr if kernels did not have to be prepared."""
    counts = session.cache_counts
    if counts and counts["hits"]:
        inform(f"{counts['hits']} of {sum(counts.values())} kernels reused from the cache")


def tell_what_failed(session: Session) -> None:
    """Lines on stderr for what a person must know; none after an ordinary run."""
    if failure := session.engine_failure():
        warn(failure)
    for trace, problem in session.incomplete.items():
        warn(f"the trace is incomplete ({problem}): {trace}")
    traces = session.trace_paths()
    if session.first_trace is None or session.first_trace in traces:
        return
    if traces:  # last, since scripts take the last word for the trace
        others = " ".join(map(str, traces))
        warn(f"there is no {session.first_trace}: the command itself launched no kernel; its children did: {others}")
    else:
        warn(f"the command launched no kernel: there is no {session.first_trace}")

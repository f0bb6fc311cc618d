"""``tui-probe run``: a command under the hook."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError, BooleanOptionalAction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.launcher.held_target import HeldTarget
from tui_probe.launcher.options import ARCHITECTURES, AUTO, MACHINE_CODE, RunOptions
from tui_probe.launcher.outcome import Outcome
from tui_probe.launcher.own_command import why_not_itself
from tui_probe.launcher.passing import run_passing_on
from tui_probe.launcher.session import Session
from tui_probe.launcher.signals import tidy_end
from tui_probe.launcher.target import exit_status
from tui_probe.probe_files.choices import ChosenProbe, choose
from tui_probe.probe_files.folders import DEFAULT, built_in_files, in_folder, installed_files
from tui_probe.trace.recent import remember

from .again import take_again
from .chosen import chosen_settings, default_launches, tell_problems, trace_dir
from .messages import on_person, tell_what_failed
from .output import inform, let_go_of_lost_terminal, warn
from .processes import TOLD, TraceTeller, reported
from .run_callback import callback_of, run_callback
from .run_ncu import add_ncu_options, profile_with_ncu
from .run_pictures import write_pictures
from .screen import add_screen_options, show, wants_screen
from .status import ExitStatus
from .text import get_ready_to_report, report_after_run
from .values import count, launches, limit, min_free, names, sample, seconds, size

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence


HURRIED_REPORT = 0.3
"""Seconds in which the report of a run that was asked to end reads results."""
USAGE = "tui-probe run [options] [--] COMMAND..."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``run``. COMMAND begins at the first word that is no option."""
    parser.usage = USAGE
    add_probe_options(parser)
    parser.add_argument(
        "--tracedir", "--trace", type=Path, default=trace_dir(), metavar="DIR",
        help="where trace directories are made; default %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--png", action="store_true",
        help="write a picture of what the probe recorded into the trace, and its path to stdout, in place of a report",
    )  # fmt: skip
    parser.add_argument(
        "--memusage", action="store_true",
        help="probe nothing: compute from each launch's shape what memory its records would take; where only the kernel"
             " can tell how many there are, it counts them and keeps none; several probes take turns over the launches",
    )  # fmt: skip
    parser.add_argument(
        "--callback", type=Path, metavar="FILE.py",
        help="run this on each saved result, as python FILE.py RESULT, after the program's end; default: the callback"
             " of a probe file that -p names by its path",
    )  # fmt: skip
    parser.add_argument(
        "--again", nargs="?", const="", metavar="TRACE",
        help="run the program of a trace once more, in place of COMMAND: in the same folder with the same options, but"
             " for those that are given; traces lie beside it. Default the newest trace",
    )  # fmt: skip
    chosen = parser.add_argument_group("what is probed")
    chosen.add_argument(
        "-k", "--kernel", type=names, metavar="A:B", help="probe only kernels with A or B in their names"
    )
    chosen.add_argument(
        "--exclude", "--filter", type=names, metavar="A:B", help="do not probe kernels with A or B in their names"
    )
    chosen.add_argument(
        "--launches", type=launches, metavar="WHICH",
        help="launches of each kernel that are probed: auto (the first of each shape, then ever fewer), all, or a list"
             " such as 0-9,20; default auto, with --benchmark all",
    )  # fmt: skip
    chosen.add_argument(
        "--sample", type=sample, metavar="SPEC",
        help="probe only some blocks of each grid: 1/16 (one in 16), 0-131 (a range), 64 (that many, evenly spread)",
    )  # fmt: skip
    chosen.add_argument(
        "--machine-code", choices=MACHINE_CODE,
        help="kernels without PTX: auto probes their machine code, but not that of NVIDIA's closed libraries (cuBLAS,"
             " cuDNN, ...), whose licence is yours to read; all: theirs too; off: none. Default auto",
    )  # fmt: skip
    chosen.add_argument(
        "--no-times", action="store_true", help="do not take the GPU time of some launches of every kernel"
    )
    chosen.add_argument(
        "--tensors", action="store_true",
        help="name the tensors of PyTorch, CuPy and JAX programs, for pages of accesses; see `tui-probe help tensors`",
    )  # fmt: skip
    add_window_options(parser.add_argument_group("when"))
    limits = parser.add_argument_group("limits")
    add_limits(limits)
    limits.add_argument(
        "--no-cache", action="store_true", help="ignore the cache: prepare every kernel, and keep none for later runs"
    )
    limits.add_argument(
        "--keep-secrets", action="store_true", help="do not mask passwords and tokens of the command line in the trace"
    )
    limits.add_argument("--no-source", action="store_true", help="do not copy the kernels' source files into the trace")
    drivers = parser.add_argument_group("driver")
    machine = drivers.add_mutually_exclusive_group()
    machine.add_argument("--driver", type=Path, metavar="PATH", help="the libcuda.so.1 to use")
    machine.add_argument("--sim", action="store_true", help="use the simulated GPU")
    drivers.add_argument(
        "--sim-arch", choices=ARCHITECTURES,
        help="use the simulated GPU, as one of this architecture: sm_90 has clusters; default sm_80",
    )  # fmt: skip
    add_ncu_options(parser)
    add_screen_options(parser)
    parser.add_argument("command", nargs="...", metavar="COMMAND...", help="the program to profile, and its arguments")


def add_window_options(when: argparse._ArgumentGroup) -> None:
    """When launches are recorded; `tui-probe ctl` and the live screen change it while the program runs."""
    when.add_argument("--after", type=seconds, metavar="TIME", help="record from then on, such as 30s")
    when.add_argument("--for", type=seconds, dest="duration", metavar="TIME", help="record for so long, such as 10s")
    when.add_argument(
        "--capture-range", action="store_true", help="record between cudaProfilerStart and cudaProfilerStop only"
    )
    when.add_argument("--nvtx", metavar="RANGE", help="record launches in NVTX ranges of this text only")


def add_limits(limits: argparse._ArgumentGroup) -> None:
    """What a run, with all its processes, may take; the settings file knows the same."""
    limits.add_argument(
        "--max-trace-bytes", type=limit, metavar="SIZE",
        help="leave no more than this on disk, such as 4G; 0: logs alone; none: no limit; default 1G",
    )  # fmt: skip
    limits.add_argument(
        "--max-result-files", type=count, metavar="N",
        help="save the records of so many launches at most; 0: of none; none: no limit; default 2000",
    )  # fmt: skip
    limits.add_argument(
        "--max-log-bytes", type=limit, metavar="SIZE",
        help="list launches in event.log up to this size, then count them; none: no limit; default 128M",
    )  # fmt: skip
    limits.add_argument(
        "--max-write-rate", type=limit, metavar="SIZE",
        help="leave launches out while results come faster than SIZE per second, or half as fast as the disk takes"
             " them; none: any rate; default 256M",
    )  # fmt: skip
    limits.add_argument(
        "--min-free-disk", type=min_free, metavar="LEAST",
        help="pause saving results while less than this is free on the trace's disk, such as 10G or 3%%; 0: never;"
             " default 2G,5%%",
    )  # fmt: skip
    limits.add_argument(
        "--max-probe-memory", type=size, metavar="SIZE",
        help="limit the GPU memory that probes take, such as 512M; default a tenth of what is free",
    )  # fmt: skip
    limits.add_argument(
        "--max-host-memory", type=size, metavar="SIZE",
        help="limit the memory for records on their way to files and for copies of PTX; default 256M",
    )  # fmt: skip


def add_probe_options(parser: argparse.ArgumentParser) -> None:
    """What ``run`` and ``demo`` have in common."""
    parser.add_argument(
        "-p", "--probe", "-t", action="append", metavar="PROBE",
        help="a probe or a set of them (see `tui-probe probes`), or a file; NAME:1/16: only of such a sample of blocks."
             " Given several times: the probes take turns over the launches."
             f" Default {chosen_settings().probe or DEFAULT}",
    )  # fmt: skip
    parser.add_argument(
        "--benchmark", action="store_true",
        help="time the original kernels beside the probed ones, and report slowdowns; saves no results",
    )  # fmt: skip
    parser.add_argument("--save-results", action="store_true", help="with --benchmark: save results all the same")
    parser.add_argument(
        "--detail", action=BooleanOptionalAction, default=None,
        help="save all records of a probe; default: what its pages need (sums of the launch, a record per block)",
    )  # fmt: skip
    parser.add_argument("--no-report", action="store_true", help="no text report at the end")
    parser.set_defaults(refuse=parser.error, png=False, callback=None)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status, 128 + n if signal n ended it."""
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
    if arguments.memusage and arguments.benchmark:
        arguments.refuse("--memusage probes nothing that --benchmark could time: choose one of them")
    if arguments.save_results and not arguments.benchmark:
        arguments.refuse("--save-results is for --benchmark: other runs save results anyway")
    if arguments.sim_arch and arguments.driver:
        arguments.refuse("--sim-arch is for the simulated GPU, --driver names another one: choose one of them")
    if arguments.ncu:
        return profile_with_ncu(arguments, command)
    return profile(options_of(arguments, command), arguments)


def options_of(arguments: argparse.Namespace, command: Sequence[str]) -> RunOptions:
    """What the run is asked to do."""
    return RunOptions(
        command=tuple(command),
        probes=probes_of(arguments),
        trace_root=arguments.tracedir,
        kernels=arguments.kernel,
        excluded=arguments.exclude,
        launches=arguments.launches or default_launches(every=arguments.benchmark or arguments.memusage),
        sample=arguments.sample,
        benchmark=arguments.benchmark,
        save_results=arguments.save_results,
        memusage=arguments.memusage,
        detail=wants_detail(arguments),
        machine_code=arguments.machine_code or chosen_settings().machine_code or AUTO,
        times=not arguments.no_times,
        driver=arguments.driver,
        simulated=arguments.sim or arguments.sim_arch is not None,
        simulated_architecture=arguments.sim_arch,
        **limits_of(arguments),
        min_free_disk=least_free(arguments),
        after=arguments.after or 0.0,
        duration=arguments.duration,
        capture_range=arguments.capture_range,
        nvtx=arguments.nvtx,
        tensors=arguments.tensors,
        cache=not arguments.no_cache,
        sources=not arguments.no_source,
        keep_secrets=arguments.keep_secrets,
    )


def probes_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """What was written behind ``-p``, or is run where nothing was."""
    return tuple(arguments.probe or (chosen_settings().probe or DEFAULT,))


def limits_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The limits of RunOptions: what the command line says, else the settings, else what holds anyway."""
    readers: dict[str, Callable[[str], int]] = {
        "max_trace_bytes": limit, "max_result_files": count, "max_log_bytes": limit, "max_write_rate": limit,
        "max_probe_memory": size, "max_host_memory": size,
    }  # fmt: skip
    found = {}
    for name, reader in readers.items():
        told = getattr(arguments, name)
        if told is None and (setting := getattr(chosen_settings(), name)) is not None:
            told = reader(setting)
        if told is not None:
            found[name] = told
    return found | {"shares": "max_trace_bytes" not in found}


def known_probes(options: RunOptions) -> tuple[ChosenProbe, ...]:
    """The probes to run; what they mean is known then, too, though no package brings them. Raises ProbeFileError."""
    chosen = choose(options.probes, options.sample or "")
    if options.benchmark and len(chosen) > 1:
        raise ProbeFileError(f"--benchmark times one probe, not {len(chosen)}: choose one with -p")
    for own in chosen:
        if in_folder(own.path) and own.path not in {**installed_files(), **built_in_files()}.values():
            from tui_probe.probekit.registry import add_folder

            add_folder(own.path.parent)
    return chosen


def wants_detail(arguments: argparse.Namespace) -> bool:
    """Whether all records are to be saved, as the command line or else the settings say."""
    return bool(chosen_settings().detail if arguments.detail is None else arguments.detail)


def least_free(arguments: argparse.Namespace) -> str | None:
    """What is to stay free of the trace's disk; None if neither the command line nor the environment says."""
    told = os.environ.get("TUI_PROBE_MIN_FREE_DISK")
    if arguments.min_free_disk:
        return cast("str", arguments.min_free_disk)
    if not told:
        setting = chosen_settings().min_free_disk
        return None if setting is None else min_free(setting)
    try:
        return min_free(told)
    except ArgumentTypeError as error:
        arguments.refuse(f"TUI_PROBE_MIN_FREE_DISK: {error}")
        raise  # not reached: refusing ends the process


def profile(options: RunOptions, arguments: argparse.Namespace) -> int:
    """Run a target, on the screen or without, and report. Returns the target's exit status."""
    try:
        probes = known_probes(options)
        callback = callback_of(arguments.callback, options.probes)
    except (ProbeFileError, UsageError) as error:
        arguments.refuse(str(error))
    with tidy_end():
        if wants_screen(arguments):
            status, outcome = run_on_screen(options, probes, arguments)
        else:
            status, outcome = run_plainly(options, probes, report=not (arguments.no_report or arguments.png))
            if on_person():  # doctor tells them, too
                tell_problems()
    for trace in reported(outcome.traces):
        remember(trace)
    if callback is not None and not outcome.asked_to_end:
        run_callback(callback, outcome.traces)
    if arguments.png:
        write_pictures(reported(outcome.traces), [each.name for each in probes])
    elif not arguments.no_report:
        report_after_run(outcome.traces, arguments.ascii, HURRIED_REPORT if outcome.asked_to_end else None)
    return status


def run_plainly(options: RunOptions, probes: Sequence[ChosenProbe], *, report: bool) -> tuple[int, Outcome]:
    """Without a screen: streams passed on. Returns the exit status and what the run left, for a ``report``."""
    # On a terminal the first line is written by the new process, where descriptor 2 is the target's already.
    stderr = os.dup(2)
    with Session(options, probes, announce=TraceTeller(stderr), early=os.isatty(stderr)) as session:
        tell_no_trace(session.spool.problem)
        returncode = run_passing_on(session, get_ready_to_report) if report else run_passing_on(session)
        outcome = session.outcome()
    tell_outcome(outcome)
    return exit_status(returncode), outcome


def run_on_screen(
    options: RunOptions, probes: Sequence[ChosenProbe], arguments: argparse.Namespace
) -> tuple[int, Outcome]:
    """Under the live screen. Returns the exit status and what the run left; nothing, and 0, if it goes on."""
    target = HeldTarget(options, probes)
    tell_no_trace(target.no_trace)
    received = 0
    try:
        shown = show(arguments, target=target)
        received = shown - 128 if shown > 128 else 0
        if leave_running(target):
            return ExitStatus.OK, Outcome()
    except SystemExit as end:  # a signal before the screen, or after it
        received = signal_of(end)
    wait_for_end(target, received)
    return exit_status(target.returncode), target.outcome


def leave_running(target: HeldTarget) -> bool:
    """Let go of a target that the user has left, if it still runs, and say how to look at it again."""
    if not target.is_left or target.poll() is not None:
        return False
    traces = target.trace_paths()
    for trace in traces:
        remember(trace)
    target.detach()
    inform(f"trace in {target.first_trace}")
    shown = traces[0] if traces else target.root
    inform(f"{target.command[0]} (process {target.pid}) goes on; to look at it again: tui-probe watch {shown}")
    return True


def wait_for_end(target: HeldTarget, received: int) -> None:
    """Wait for a target that no screen shows any more, after forwarding a signal that was ``received``; tell of it."""
    if target.runs:  # asking would take time in which a signal could end us
        warn(f"waiting for {target.command[0]} (process {target.pid}) to end")
    wait_and_forward(target, received)
    let_go_of_lost_terminal()
    tell_trace = TraceTeller()
    for trace in target.outcome.traces:
        tell_trace(trace)
    tell_outcome(target.outcome)


def wait_and_forward(target: HeldTarget, received: int) -> None:
    """Wait for the end. The target gets those signals, too, that come before we hold them back."""
    while not target.is_complete:
        try:
            target.wait(received)
        except SystemExit as end:
            received = signal_of(end)


def signal_of(end: SystemExit) -> int:
    """The signal that ``tidy_end`` made an exit of."""
    return int(end.code or 0) - 128


def tell_outcome(outcome: Outcome) -> None:
    """Lines on stderr for what a person must know; at most one after an ordinary run."""
    tell_cache_hits(outcome)
    tell_what_failed(outcome, TOLD)


def tell_cache_hits(outcome: Outcome) -> None:
    """A line on a terminal if kernels did not have to be prepared; run.json has the counts for scripts."""
    counts = outcome.cache_counts
    if counts and counts["hits"] and on_person():
        inform(f"{counts['hits']} of {sum(counts.values())} kernels reused from the cache")


def tell_no_trace(problem: str | None) -> None:
    """A line on stderr, before the program starts, if nothing of it can be recorded."""
    if problem:
        warn(f"nothing is recorded: {problem}")

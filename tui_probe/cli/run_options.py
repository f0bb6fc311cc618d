"""Options of ``tui-probe run``: their definition, and the values that a run gets from them."""

from __future__ import annotations

import argparse
import os
import re
from argparse import ArgumentTypeError, BooleanOptionalAction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tui_probe.errors import ProbeFileError
from tui_probe.launcher.ncu import BYTE_METRICS
from tui_probe.launcher.options import ARCHITECTURES, AUTO, MACHINE_CODE, RunOptions
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.probe_files.catalogue import default_choice, watchdog_probe
from tui_probe.probe_files.choices import ChosenProbe, choose_probes
from tui_probe.probe_files.loading import built_in_files, installed_files, is_in_probe_folder

from .arguments import (
    JoinNames,
    count,
    default_launches,
    kept_launch,
    launches,
    limit,
    min_free,
    names,
    positive,
    run_name,
    sample,
    seconds,
    size,
    trace_dir,
    user_settings,
)
from .parser import show_options_first
from .screen import add_screen_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

METRIC = re.compile(r"\w+__[\w.]+|(?:group|regex|breakdown|pmsampling):\S+")
USAGE = "tui-probe run [options] [--] COMMAND..."
MAIN_OPTIONS = (
    "-p", "-k", "--name", "--launches", "--machine-code", "--benchmark", "--between", "--phase", "--after", "--for",
    "--no-ui", "--watchdog", "--sim",
)  # fmt: skip
"""The options that ``run --help`` shows."""


def add_ncu_options(parser: argparse.ArgumentParser) -> None:
    """The option of ``run`` that takes ncu."""
    parser.add_argument_group("Nsight Compute").add_argument(
        "--ncu", nargs="?", const=BYTE_METRICS, type=metric_names, metavar="A,B",
        help="run COMMAND under ncu, without a probe, and import these metrics; needs permission to read counters;"
             " default: bytes of DRAM, L2 and L1; without A,B write --ncu -- COMMAND",
    )  # fmt: skip


def metric_names(text: str) -> tuple[str, ...]:
    """``a__b.sum,c__d.sum``: names of metrics, or what ncu knows as ``group:…`` and ``regex:…``."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(METRIC.fullmatch(name) for name in names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of metrics; write metrics such as dram__bytes.sum, or only --ncu -- COMMAND"
        )
    return names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``run``. COMMAND begins at the first word that is not an option."""
    parser.usage = USAGE
    add_probe_options(parser)
    add_run_options(parser)
    add_choice_options(parser.add_argument_group("selection"))
    add_window_options(parser.add_argument_group("recording window"))
    limits = parser.add_argument_group("limits")
    add_limits(limits)
    add_kept_options(limits)
    add_driver_options(parser.add_argument_group("driver"))
    add_shake_options(parser.add_argument_group("races"))
    add_ncu_options(parser)
    add_screen_options(parser)
    show_options_first(parser, MAIN_OPTIONS)
    parser.add_argument("command", nargs="...", metavar="COMMAND...", help="the program to profile, and its arguments")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the output options: trace directory, report."""
    parser.add_argument(
        "--tracedir", "--trace", type=Path, default=trace_dir(), metavar="DIR",
        help="create trace directories in DIR; default %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--name", type=run_name, metavar="NAME",
        help="name the run, e.g. before; compare, open, show, list and report accept this name instead of a path",
    )  # fmt: skip
    parser.add_argument(
        "--png", action="store_true",
        help="save results as a PNG in the trace; print its path instead of a report",
    )  # fmt: skip
    parser.add_argument(
        "--memusage", action="store_true",
        help="record nothing; report the probe memory of each launch, computed from its shape"
             " or from a count of its records",
    )  # fmt: skip
    parser.add_argument(
        "--between", action="append", metavar="FILE:A-B",
        help="measure time per warp in source lines, e.g. attn.py:22-26 (needs -lineinfo); adds a probe",
    )  # fmt: skip
    parser.add_argument(
        "--phase", action="append", metavar="NAME=FILE:A-B",
        help="show when each warp is in source lines, e.g. load=attn.py:88-96; repeat for more phases; phases may be"
             " nested (needs -lineinfo); adds a probe",
    )  # fmt: skip
    parser.add_argument(
        "--phase-records", metavar="{first,last,every:K}",
        help="first: keep the first 2048 phase starts of each warp (default); last: keep the last 2048 phase starts;"
             " every:K: record every K-th iteration of loops; with last or every:K, -p phases is added",
    )  # fmt: skip
    parser.add_argument(
        "--callback", type=Path, nargs="?", const=True, metavar="FILE.py",
        help="after the program exits, run python FILE.py RESULT for each result; default: the callback named in the"
             " probe file of -p, if the callback is in the directory of that file",
    )  # fmt: skip
    parser.add_argument(
        "--again", nargs="?", const="", metavar="TRACE",
        help="rerun TRACE's command in its directory; options given here override the options of TRACE; default: the"
            " newest trace",
    )  # fmt: skip


def add_choice_options(selection: argparse._ArgumentGroup) -> None:
    """Add the options that select kernels, launches and blocks."""
    selection.add_argument(
        "-k", "--kernel", type=names, action=JoinNames, metavar="A:B",
        help="probe only kernels with A or B in their names",
    )  # fmt: skip
    selection.add_argument(
        "--exclude", "--filter", type=names, action=JoinNames, metavar="A:B",
        help="do not probe kernels with A or B in their names",
    )  # fmt: skip
    selection.add_argument(
        "--all-kernels", action="store_true", help="with --again: ignore -k and --exclude of the earlier run"
    )
    selection.add_argument(
        "--launches", type=launches, metavar="WHICH",
        help="probe these launches of each kernel: all, a list such as 0-9,20, or auto (the first launch of each"
             " shape, then samples); default: auto; with --benchmark: all",
    )  # fmt: skip
    selection.add_argument(
        "--sample", type=sample, metavar="SPEC",
        help="probe only some blocks of each grid: 1/16 for one block in 16, 0-131 for a range, 64 for 64 evenly spread"
             " blocks",
    )  # fmt: skip
    selection.add_argument(
        "--machine-code", choices=MACHINE_CODE,
        help="probe the SASS of kernels without PTX: auto, all or off. auto excludes closed libraries such as cuBLAS;"
             " check their licenses before you use all; default auto",
    )  # fmt: skip
    selection.add_argument(
        "--keep-launch", type=kept_launch, action="append", metavar="KERNEL@N",
        help="save a launch for `tui-probe extract`: the first launch that has number N or higher and belongs to a"
             " kernel with KERNEL in its name; may be repeated; see `help reproducer`",
    )  # fmt: skip
    selection.add_argument("--no-times", action="store_true", help="do not sample GPU times")
    selection.add_argument(
        "--tensors", action="store_true",
        help="record the names of PyTorch, CuPy and JAX tensors; see `tui-probe help tensors`",
    )  # fmt: skip


def add_window_options(window: argparse._ArgumentGroup) -> None:
    """Add the options of the recording window; `tui-probe ctl` and the live screen change it while the program runs."""
    window.add_argument("--after", type=seconds, metavar="TIME", help="start recording after TIME, e.g. 30s")
    window.add_argument("--for", type=seconds, dest="duration", metavar="TIME", help="record for TIME, e.g. 10s")
    window.add_argument(
        "--capture-range", action="store_true", help="record only between cudaProfilerStart and cudaProfilerStop"
    )
    window.add_argument(
        "--watchdog", type=seconds, metavar="TIME",
        help="if a kernel runs longer than TIME, e.g. 10s, report where it is stuck; without a screen, also end its"
             " process; see `tui-probe help watchdog`",
    )  # fmt: skip
    window.add_argument("--nvtx", metavar="RANGE", help="record only launches in NVTX ranges with this text")


def add_limits(limits: argparse._ArgumentGroup) -> None:
    """Add the budgets of a run with all its processes; the settings file has the same."""
    limits.add_argument(
        "--max-trace-bytes", type=limit, metavar="SIZE",
        help="write at most SIZE to disk, e.g. 4G; 0: logs only; none: no limit; default 1G",
    )  # fmt: skip
    limits.add_argument(
        "--max-result-files", type=count, metavar="N",
        help="save at most N result files; none: no limit; default 2000",
    )  # fmt: skip
    limits.add_argument(
        "--max-log-bytes", type=limit, metavar="SIZE",
        help="list launches in event.log until the log reaches SIZE, then only count launches; none: no limit;"
        " default 128M",
    )  # fmt: skip
    limits.add_argument(
        "--max-write-rate", type=limit, metavar="SIZE",
        help="run launches unprobed while results exceed SIZE/s or half of the disk's measured rate; none: no"
             " limit; default 256M",
    )  # fmt: skip
    limits.add_argument(
        "--min-free-disk", type=min_free, metavar="MIN",
        help="pause saving results while less than MIN is free on the disk, e.g. 10G or 3%%; 0: never; default 2G,5%%",
    )  # fmt: skip
    limits.add_argument(
        "--max-probe-memory", type=size, metavar="SIZE",
        help="limit the GPU memory of probes, e.g. 512M; default: a tenth of the free memory",
    )  # fmt: skip
    limits.add_argument(
        "--max-kept-bytes", type=limit, metavar="SIZE",
        help="save at most SIZE of memory per process for --keep-launch; none: no limit; default 1G",
    )  # fmt: skip
    limits.add_argument(
        "--max-host-memory", type=size, metavar="SIZE",
        help="limit host memory for records in flight and copies of PTX; default 256M",
    )  # fmt: skip


def add_kept_options(limits: argparse._ArgumentGroup) -> None:
    """Add the options that switch parts of a run off."""
    limits.add_argument("--no-cache", action="store_true", help="prepare every kernel again; do not cache kernels")
    limits.add_argument(
        "--keep-secrets", action="store_true", help="do not mask passwords and tokens in the recorded command line"
    )
    limits.add_argument("--no-source", action="store_true", help="do not copy source files of kernels into the trace")


def add_driver_options(drivers: argparse._ArgumentGroup) -> None:
    """The driver that the program gets: that of the system, another, or the simulated GPU."""
    machine = drivers.add_mutually_exclusive_group()
    machine.add_argument("--driver", type=Path, metavar="PATH", help="use this libcuda.so.1")
    machine.add_argument("--sim", action="store_true", help="use the simulated GPU")
    drivers.add_argument(
        "--no-check", action="store_true",
        help="on the simulated GPU: do not check accesses of kernels for faults; see tui-probe help sanitizer",
    )  # fmt: skip
    drivers.add_argument(
        "--sim-arch", choices=ARCHITECTURES,
        help="use the simulated GPU with this architecture; sm_90 has clusters; default sm_80",
    )  # fmt: skip


def add_shake_options(races: argparse._ArgumentGroup) -> None:
    """Add the options of runs with random delays."""
    races.add_argument(
        "--shake", type=positive, metavar="N",
        help="run the program N times with random delays in its kernels, and report delays that change its results;"
             " see `tui-probe help races`",
    )  # fmt: skip
    races.add_argument("--seed", type=int, default=1, metavar="N", help="first seed of --shake; default %(default)s")
    races.add_argument(
        "--compare-file", type=Path, action="append", metavar="FILE",
        help="with --shake: also compare FILE, an output of the program; may be repeated",
    )  # fmt: skip

    races.add_argument(
        "--compare-memory", action="append", metavar="KERNEL[@N]",
        help="with --shake: after each launch of a kernel with KERNEL in its name, also compare the memory that its"
             " parameters point to (@N: only parameter N, from 0); may be repeated",
    )  # fmt: skip


def add_probe_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``run`` and ``demo`` share."""
    parser.add_argument(
        "-p", "--probe", "-t", action="append", metavar="PROBE",
        help="use a probe, a set (see `tui-probe probes`) or a probe file; NAME:1/16 samples blocks, NAME@FILE:A-B"
            " probes only instructions of source lines A to B. Repeat -p for more probes: a launch has all"
             " counting probes together, or one other probe; default"
             f" {user_settings().probe or DEFAULT_PROBE}",
    )  # fmt: skip
    parser.add_argument(
        "--benchmark", action="store_true",
        help="time kernels with and without each probe; save no results",
    )  # fmt: skip
    parser.add_argument(
        "--replay", action="store_true",
        help="launch each kernel again for every probe that has not measured the kernel yet; restore memory before"
             " each launch, as --benchmark does",
    )  # fmt: skip
    parser.add_argument(
        "--wait", action="store_true",
        help="let each launch wait until its kernel is prepared; default: wait at most 1 s and 5%% of the run in total,"
             " then run unprobed",
    )  # fmt: skip
    parser.add_argument("--save-results", action="store_true", help="with --benchmark: also save results")
    parser.add_argument(
        "--detail", action=BooleanOptionalAction, default=None,
        help="save all records of a probe; default: only what its pages need, e.g. sums per launch or block",
    )  # fmt: skip
    parser.add_argument("--no-report", action="store_true", help="print no report at the end")
    parser.set_defaults(refuse=parser.error, png=False, callback=None, name=None, watchdog=None, shake=None)


def options_of(arguments: argparse.Namespace, command: Sequence[str]) -> RunOptions:
    """Return the options of the run."""
    return RunOptions(
        command=tuple(command),
        probes=probes_of(arguments),
        trace_root=arguments.tracedir,
        kernels=arguments.kernel,
        excluded=arguments.exclude,
        launches=arguments.launches or default_launches(each_timed=takes_every_launch(arguments)),
        sample=arguments.sample,
        benchmark=arguments.benchmark,
        save_results=arguments.save_results,
        replay=arguments.replay,
        wait=arguments.wait or bool(arguments.watchdog),
        watchdog=arguments.watchdog,
        kept_launches=tuple(arguments.keep_launch or ()),
        memusage=arguments.memusage,
        detail=wants_detail(arguments),
        machine_code=arguments.machine_code or user_settings().machine_code or AUTO,
        times=not arguments.no_times,
        driver=arguments.driver,
        simulated=arguments.sim or arguments.sim_arch is not None,
        simulated_architecture=arguments.sim_arch,
        checked=False if arguments.no_check else None,
        **limits_of(arguments),
        min_free_disk=min_free_option(arguments),
        after=arguments.after or 0.0,
        duration=arguments.duration,
        capture_range=arguments.capture_range,
        nvtx=arguments.nvtx,
        tensors=arguments.tensors,
        cache=not arguments.no_cache,
        sources=not arguments.no_source,
        keep_secrets=arguments.keep_secrets,
        name=arguments.name,
    )


def probes_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the probes of ``-p``, or the default ones. Raises ProbeFileError if the settings name a damaged set."""
    default = user_settings().probe or DEFAULT_PROBE
    if not arguments.watchdog:
        return tuple(arguments.probe or (default_choice(default, benchmark=arguments.benchmark),))
    watch = watchdog_probe()
    return (*(arguments.probe or ()), *(() if watch in (arguments.probe or ()) else (watch,)))


def takes_every_launch(arguments: argparse.Namespace) -> bool:
    """Return whether a run probes every launch by default: those that are timed or sized, or may hang."""
    return bool(arguments.benchmark or arguments.memusage or arguments.watchdog)


def limits_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The limits of RunOptions: what the command line says, else the settings, else what holds anyway."""
    readers: dict[str, Callable[[str], int]] = {
        "max_trace_bytes": limit, "max_result_files": count, "max_log_bytes": limit, "max_write_rate": limit,
        "max_probe_memory": size, "max_host_memory": size, "max_kept_bytes": limit,
    }  # fmt: skip
    budgets = {}
    for name, reader in readers.items():
        budget = getattr(arguments, name)
        if budget is None and (setting := getattr(user_settings(), name)) is not None:
            budget = reader(setting)
        if budget is not None:
            budgets[name] = budget
    return budgets | {"shares": "max_trace_bytes" not in budgets}


def known_probes(options: RunOptions) -> tuple[ChosenProbe, ...]:
    """The probes to run; what they mean is known then, too, though no package brings them. Raises ProbeFileError."""
    probes = choose_probes(options.probes, options.sample or "")
    if options.watchdog and (uncounting_name := next((probe.name for probe in probes if not probe.facts.counts), None)):
        raise ProbeFileError(
            f"--watchdog does not watch launches probed with {uncounting_name}; choose counting probes"
        )
    for probe in probes:
        is_known = probe.path in built_in_files().values() or probe.path in installed_files().values()
        if not is_known and is_in_probe_folder(probe.path):
            from tui_probe.probekit.registry import add_folder

            add_folder(probe.path.parent)
    return probes


def wants_detail(arguments: argparse.Namespace) -> bool:
    """Return whether to save all records, from the command line or else the settings."""
    return bool(user_settings().detail if arguments.detail is None else arguments.detail)


def min_free_option(arguments: argparse.Namespace) -> str | None:
    """Return the free space to leave on the trace's disk; None if neither options, environment nor settings have it."""
    variable = os.environ.get("TUI_PROBE_MIN_FREE_DISK")
    if arguments.min_free_disk:
        return cast("str", arguments.min_free_disk)
    if not variable:
        setting = user_settings().min_free_disk
        return None if setting is None else min_free(setting)
    try:
        return min_free(variable)
    except ArgumentTypeError as error:
        arguments.refuse(f"TUI_PROBE_MIN_FREE_DISK: {error}")
        raise  # not reached: refusing ends the process

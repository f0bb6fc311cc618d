"""The options of ``tui-probe run``, and those that ``demo`` has in common with it."""

from __future__ import annotations

from argparse import BooleanOptionalAction
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.launcher.options import ARCHITECTURES, MACHINE_CODE
from tui_probe.probe_files.folders import DEFAULT

from .chosen import chosen_settings, trace_dir
from .run_ncu import add_ncu_options
from .screen import add_screen_options
from .values import count, launches, limit, min_free, names, sample, seconds, size

if TYPE_CHECKING:
    import argparse

USAGE = "tui-probe run [options] [--] COMMAND..."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``run``. COMMAND begins at the first word that is no option."""
    parser.usage = USAGE
    add_probe_options(parser)
    add_run_options(parser)
    add_choice_options(parser.add_argument_group("what is probed"))
    add_window_options(parser.add_argument_group("when"))
    limits = parser.add_argument_group("limits")
    add_limits(limits)
    add_kept_options(limits)
    add_driver_options(parser.add_argument_group("driver"))
    add_ncu_options(parser)
    add_screen_options(parser)
    parser.add_argument("command", nargs="...", metavar="COMMAND...", help="the program to profile, and its arguments")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """What becomes of the run: where its trace lies, and what is made of it."""
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
        "--between", action="append", metavar="FILE:A-B",
        help="measure how long each warp is between lines of source, attn.py:22-26, by a probe that is written for it"
             " (compile with -lineinfo); counts as a -p of its own",
    )  # fmt: skip
    parser.add_argument(
        "--callback", type=Path, nargs="?", const=True, metavar="FILE.py",
        help="after the program exits, run python FILE.py RESULT per result; without FILE.py: the callback of a probe"
             " file that -p names by its path, if it is in the directory of that file",
    )  # fmt: skip
    parser.add_argument(
        "--again", nargs="?", const="", metavar="TRACE",
        help="run the program of a trace once more, in place of COMMAND: in the same folder with the same options, but"
             " for those that are given; traces lie beside it. Default the newest trace",
    )  # fmt: skip


def add_choice_options(chosen: argparse._ArgumentGroup) -> None:
    """Which kernels, launches and blocks are probed, and what else is asked of them."""
    chosen.add_argument(
        "-k", "--kernel", type=names, metavar="A:B", help="probe only kernels with A or B in their names"
    )
    chosen.add_argument(
        "--exclude", "--filter", type=names, metavar="A:B", help="do not probe kernels with A or B in their names"
    )
    chosen.add_argument(
        "--all-kernels", action="store_true", help="with --again: all kernels, whichever that run was asked to probe"
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


def add_kept_options(limits: argparse._ArgumentGroup) -> None:
    """What is not used or kept of a run, where somebody asks for that."""
    limits.add_argument(
        "--no-cache", action="store_true", help="ignore the cache: prepare every kernel, and keep none for later runs"
    )
    limits.add_argument(
        "--keep-secrets", action="store_true", help="do not mask passwords and tokens of the command line in the trace"
    )
    limits.add_argument("--no-source", action="store_true", help="do not copy the kernels' source files into the trace")


def add_driver_options(drivers: argparse._ArgumentGroup) -> None:
    """The driver that the program gets: that of the system, another, or the simulated GPU."""
    machine = drivers.add_mutually_exclusive_group()
    machine.add_argument("--driver", type=Path, metavar="PATH", help="the libcuda.so.1 to use")
    machine.add_argument("--sim", action="store_true", help="use the simulated GPU")
    drivers.add_argument(
        "--sim-arch", choices=ARCHITECTURES,
        help="use the simulated GPU, as one of this architecture: sm_90 has clusters; default sm_80",
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

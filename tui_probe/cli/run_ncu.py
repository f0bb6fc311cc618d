"""``tui-probe run --ncu``: a command under Nsight Compute instead of the hook, and what it measured."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from typing import TYPE_CHECKING

from tui_probe.errors import ImportFileError, LaunchError
from tui_probe.launcher.ncu import BYTE_METRICS, find_ncu, needs_root, run_ncu
from tui_probe.launcher.signals import tidy_end
from tui_probe.launcher.target import exit_status

from .output import inform, put, shell_word, warn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

METRIC = re.compile(r"\w+__[\w.]+|(?:group|regex|breakdown|pmsampling):\S+")
HOOK_OPTIONS = (
    "benchmark", "memusage", "detail", "machine_code", "kernel", "exclude", "launches", "max_trace_bytes",
    "max_result_files", "max_log_bytes", "max_write_rate", "min_free_disk", "max_probe_memory", "max_host_memory",
    "after", "duration", "nvtx", "tensors", "driver", "sim", "sim_arch",
)  # fmt: skip


def add_ncu_options(parser: argparse.ArgumentParser) -> None:
    """The option of ``run`` that takes ncu."""
    parser.add_argument_group("Nsight Compute").add_argument(
        "--ncu", nargs="?", const=BYTE_METRICS, type=metrics, metavar="A,B",
        help="run under ncu instead of with a probe, and import these metrics (default: bytes of DRAM, L2 and L1);"
             " needs permission to read counters; write --ncu -- COMMAND",
    )  # fmt: skip


def metrics(text: str) -> tuple[str, ...]:
    """``a__b.sum,c__d.sum``: names of metrics, or what ncu knows as ``group:…`` and ``regex:…``."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(METRIC.fullmatch(name) for name in names):
        raise argparse.ArgumentTypeError(
            f"{text!r} does not name metrics, as dram__bytes.sum; before a command write --ncu -- COMMAND"
        )
    return names


def profile_with_ncu(arguments: argparse.Namespace, command: Sequence[str]) -> int:
    """Run the command under ncu and report. Returns the exit status of ncu, which passes on the command's."""
    refuse_hook_options(arguments)
    wanted = arguments.ncu
    ncu = find_ncu(os.environ)
    if needs_root():
        warn("only an administrator may read performance counters here: ncu will run the command and measure nothing")
    log = log_path(arguments.tracedir)
    inform(f"ncu writes {log}")
    with tidy_end():
        status = exit_status(run_ncu(ncu, log, wanted, command, capture_range=arguments.capture_range))
    if not arguments.no_report:
        report(log, wanted, arguments)
    return status


def refuse_hook_options(arguments: argparse.Namespace) -> None:
    """Under ncu there is no hook: its options would do nothing, so they are refused."""
    values = {name: getattr(arguments, name) for name in HOOK_OPTIONS}
    given = [name for name, value in values.items() if value is not None and value is not False]
    if given:
        arguments.refuse(f"--ncu runs the command without the hook: leave out {', '.join(map(option, given))}")


def option(name: str) -> str:
    """How a person writes it."""
    return f"--{name.replace('_', '-')}"


def log_path(folder: Path) -> Path:
    """A new file for the table."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"{folder}: {error.strerror}: name another with --tracedir") from error
    return (folder / f"{time.strftime('%b%d_%H%M%S')}_{os.getpid()}.ncu.csv").absolute()


def report(log: Path, wanted: Sequence[str], arguments: argparse.Namespace) -> None:
    """What was measured; trouble with it does not change the command's exit status."""
    from tui_probe.nsight.importers.ncu import read_ncu
    from tui_probe.nsight.pages.ncu_report import Sources, ncu_page
    from tui_probe.pages.table_page import page_lines

    from .import_command import text_width
    from .sizes import speaks_utf8

    try:
        table = read_ncu([log])
    except ImportFileError as error:
        warn(f"no report: {error}")
        return
    page = ncu_page("traffic" if wanted == BYTE_METRICS else "metrics", Sources(table))
    plain = arguments.ascii or not speaks_utf8(sys.stdout)
    put(("", *page_lines(page, "table", width=text_width(), ascii_only=plain)))
    inform(f"other pages: tui-probe import ncu {shell_word(log)} --page kernels")

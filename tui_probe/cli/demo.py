"""``tui-probe demo``: the whole pipeline on the bundled example, on a GPU or on the simulated one."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import TraceError
from tui_probe.launcher.options import RunOptions
from tui_probe.trace.recent import running_traces

from .arguments import default_launches
from .machine_checks import driver_items
from .output import inform, shell_word
from .profiling import profile
from .run_options import add_probe_options, probes_of, wants_detail
from .screen import add_screen_options, wants_screen

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

EXAMPLES = "tui_probe.simgpu.examples"
TIMED_LAUNCHES = 6
"""Launches per kernel on a GPU: some run unprobed and are timed; a screen has something to show."""
SIMULATED_SIZE = 96 * 96
"""Elements of the arrays: as few as give the same findings, since a report waits for the simulated launches."""
SIMULATED_LAUNCHES = 2
"""Launches per kernel: one for the fused counting probes of the default set, and one that is timed."""
MIN_FREE_DISK = "32M"
"""The trace of all kernels has 1 MB; the temporary directory of a container may be smaller than a run's default."""
_PREFIX = "tui-probe-demo-"
_KEPT_SECONDS = 24 * 3600
SLOWLY = "--slow"  # so that there is something to watch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``run`` that make sense for a program that is known."""
    add_probe_options(parser)
    parser.add_argument(
        "--kernel", action="append", default=[], metavar="NAME", help="example to run, e.g. saxpy; default: all"
    )
    parser.add_argument("--tracedir", type=Path, metavar="DIR", help="create the trace in DIR")
    parser.add_argument("--sim", action="store_true", help="use the simulated GPU even if this machine has a GPU")
    add_screen_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the example under the hook. Returns its exit status: 0 if every kernel's result was right."""
    simulated = arguments.sim or not has_gpu()
    inform(f"demo on {'the simulated GPU' if simulated else 'the GPU'}")
    slow = wants_screen(arguments)
    command = example(arguments.kernel, brief=simulated and not slow, slow=slow)
    root = arguments.tracedir or temporary_root()
    options = RunOptions(
        command=tuple(command),
        probes=probes_of(arguments),
        trace_root=root,
        launches=default_launches(each_timed=arguments.benchmark),
        benchmark=arguments.benchmark,
        save_results=True,
        detail=wants_detail(arguments),
        simulated=simulated,
        checked=False,  # tests check the accesses of these kernels; here that would take a third of the time
        min_free_disk=MIN_FREE_DISK,
    )
    status = profile(options, arguments)
    removal = "" if arguments.tracedir else " (a demo removes it after a day; --tracedir DIR keeps it)"
    inform(f"to open the trace again: tui-probe open {shell_word(root)}{removal}")
    return status


def temporary_root() -> Path:
    """Make a temporary directory for the trace, and remove those of the user's demos before that are a day old.

    A younger one, or one with a process that runs, may be open on another terminal.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, TraceError):
            status = path.lstat()
            is_old = time.time() - status.st_mtime > _KEPT_SECONDS
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and is_old and not running_traces(path):
                shutil.rmtree(path)
    return Path(tempfile.mkdtemp(prefix=_PREFIX))


def example(kernels: Sequence[str], *, brief: bool, slow: bool) -> list[str]:
    """Return the command line of the example, with these of its kernels or with all; ``slow`` enough to watch it."""
    command = [sys.executable, str(files(EXAMPLES) / "demo.py")]
    command += [word for name in kernels for word in ("--kernel", name)]
    command += ["--repeat", str(SIMULATED_LAUNCHES if brief else TIMED_LAUNCHES)]
    return [*command, *(("--size", str(SIMULATED_SIZE)) if brief else ()), *((SLOWLY,) if slow else ())]


def has_gpu() -> bool:
    """Return whether there is a driver with a device that works."""
    return all(item.state == "ok" for item in driver_items())

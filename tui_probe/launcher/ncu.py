"""Nsight Compute as a launcher: where it is, and how it is asked to write what we import."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BYTE_METRICS: Final = ("dram__bytes.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum", "gpu__time_duration.sum")
"""Totals of DRAM, L2 and L1, and the time."""
_PLACES: Final = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute")
_DRIVER_SETTINGS: Final = Path("/proc/driver/nvidia/params")


def find_ncu(environment: Mapping[str, str]) -> str:
    """The ncu of ``PATH``, ``CUDA_HOME``, or the usual places, the newest first. LaunchError if there is none."""
    on_path = shutil.which("ncu", path=environment.get("PATH"))
    if on_path:
        return on_path
    folders = [Path(environment["CUDA_HOME"], "bin")] if environment.get("CUDA_HOME") else []
    folders += [Path(place) for place in _PLACES]
    for folder in folders:
        for candidate in (folder / "ncu", *sorted(folder.glob("*/ncu"), reverse=True)):
            if os.access(candidate, os.X_OK) and candidate.is_file():
                return str(candidate)
    raise LaunchError(
        "ncu not found; install Nsight Compute (part of the CUDA toolkit) and add it to PATH, or set CUDA_HOME."
        " Without ncu and the permission to read counters, use probes of bytes and sectors; to list the probes:"
        " tui-probe probes"
    )


def needs_root(settings: Path = _DRIVER_SETTINGS) -> bool:
    """Return whether the driver restricts performance counters to administrators, and this user is none."""
    try:
        text = settings.read_text(errors="replace")
    except OSError:
        return False
    return "RmProfilingAdminOnly: 1" in text and os.geteuid() != 0


def ncu_command(
    ncu: str, log: Path, metrics: Sequence[str], command: Sequence[str], *, capture_range: bool = False
) -> list[str]:
    """``command`` under ncu: every process, only these metrics, a CSV table in ``log`` and nothing in its output.

    With ``capture_range`` only launches between cudaProfilerStart and cudaProfilerStop are measured.
    """
    part = ("--profile-from-start", "off") if capture_range else ()
    options = ["--csv", "--log-file", str(log), "--target-processes", "all", *part, "--metrics", ",".join(metrics)]
    return [ncu, *options, *command]


def run_ncu(ncu: str, log: Path, metrics: Sequence[str], command: Sequence[str], *, capture_range: bool = False) -> int:
    """Run a command under ncu to its end, with our standard streams; signals are passed on.

    Returns ``Popen.returncode`` of ncu, which is the command's where ncu has nothing of its own to tell. TargetError
    if the command cannot be executed.
    """
    # Read here: the help of ``run`` names the metrics of this module, and starts nothing.
    from . import signals
    from .target import SignalScope, StandardStreams, check_command, start_target

    check_command(command, os.environ.get("PATH"))
    with signals.held_back() as mask, closing(signals.Witness()) as witness:
        argv = ncu_command(ncu, log, metrics, command, capture_range=capture_range)
        target = start_target(
            argv, os.environ, StandardStreams(None, None, None), SignalScope.SHARED, mask, lambda _: None
        )
        return signals.wait(target, lambda: None, was_delivered=witness.has_seen)

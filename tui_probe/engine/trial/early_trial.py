"""Self-test of grafts that starts with the engine, next to the program's own start, not at the first graft.

It takes 2 to 3 s, once per driver, architecture and version of ptxas. The engine starts a process for it, which keeps
the outcome; kernels that need it wait. After a program that ends sooner the engine waits, too, within its usual limit:
otherwise each run of short programs would repeat the test.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from ctypes import byref, c_int, c_uint
from typing import TYPE_CHECKING, Final

from tui_probe.cuda_driver import DRIVER_LIBRARY
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.cache import default_cache_directory
from tui_probe.engine.grafting.graft_gate import GraftGate, TrialPart, has_any_outcome
from tui_probe.own_python import own_environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.toolchain import Tool

_ATTRIBUTES: Final = {"major": 75, "minor": 76, "mode": 20}
"""CUdevice_attribute of the compute capability and the compute mode."""


def start_early_trial(tools: Sequence[Tool]) -> subprocess.Popen[bytes] | None:
    """Start the self-test in a process of its own; None if this machine has an outcome."""
    folder = default_cache_directory("grafts")
    if folder is None or not tools or has_any_outcome(folder, tools):
        return None
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "tui_probe.engine.trial.early_trial"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=own_environment(),
        )
    except OSError:  # then the first graft tries
        return None


def shared_architecture(library: str = DRIVER_LIBRARY) -> int | None:
    """Return the architecture (90) of the first device; None without one, and if it is for one process at a time.

    Such a device would refuse the program while the self-test runs. Makes no context.
    """
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return None
    values = {}
    if driver.cuInit(c_uint(0)):
        return None
    for name, code in _ATTRIBUTES.items():
        value = c_int()
        if driver.cuDeviceGetAttribute(byref(value), c_int(code), c_int(0)):
            return None
        values[name] = value.value
    return None if values["mode"] else 10 * values["major"] + values["minor"]


def keep_outcome(folder: Path | None, library: str = DRIVER_LIBRARY) -> bool:
    """Run the self-test for the first device and keep its outcome. False if that is not possible now."""
    arch = shared_architecture(library)
    if arch is None:
        return False
    GraftGate(folder, Assembler().tools()).closed(arch, TrialPart.ENTRIES)
    return True


if __name__ == "__main__":
    keep_outcome(default_cache_directory("grafts"))

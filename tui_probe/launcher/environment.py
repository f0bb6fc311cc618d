"""The environment of a target: the hook in front of the driver, and frameworks told to keep their PTX."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import LaunchError

from .natives import package_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .driver import Driver
    from .options import RunOptions

NVTX_INJECTION = "NVTX_INJECTION64_PATH"
XLA_LINE_INFO = "--xla_gpu_generate_line_info"


@dataclass(frozen=True)
class Setting:
    """A variable of a framework that was set for the target, and why."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True)
class Places:
    """The paths that the hook is told of, all absolute."""

    hook: Path
    trace_root: Path
    socket: Path
    probe: Path
    cupy_cache: Path


def target_environment(
    base: Mapping[str, str], options: RunOptions, driver: Driver, places: Places, stamp: str
) -> dict[str, str]:
    """``base`` with all that the hook needs. Raises LaunchError where the loader could not take the hook's path."""
    if set(str(places.hook)) & set(": "):
        reason = "LD_PRELOAD takes no path with a space or a colon; install tui-probe elsewhere"
        raise LaunchError(f"{places.hook}: {reason}")
    environment = dict(base)
    environment["LD_PRELOAD"] = prepend(str(places.hook), base.get("LD_PRELOAD"))
    environment["LD_LIBRARY_PATH"] = prepend(str(places.hook.parent), base.get("LD_LIBRARY_PATH"))
    environment |= {
        "TUI_PROBE_DRIVER": str(driver.path),
        "TUI_PROBE_TRACE_ROOT": str(places.trace_root),
        "TUI_PROBE_STAMP": stamp,
        "TUI_PROBE_LAUNCHER": str(os.getpid()),
        "TUI_PROBE_ENGINE": str(places.socket),
        "TUI_PROBE_PROBE": str(places.probe),
    }
    for name, value in choices(options).items():
        environment.pop(name, None)  # of a run around this one
        if value:
            environment[name] = value
    if options.min_free_disk:
        environment["TUI_PROBE_MIN_FREE_DISK"] = options.min_free_disk
    environment |= {setting.name: setting.value for setting in framework_settings(base, places.hook, places.cupy_cache)}
    if driver.simulated:
        environment |= {"TUI_PROBE_SIM_PYTHON": sys.executable, "TUI_PROBE_SIM_PYTHONPATH": package_path()}
    return environment


def prepend(entry: str, rest: str | None) -> str:
    """``entry`` before a colon-separated list, which may be missing or empty."""
    return f"{entry}:{rest}" if rest else entry


def choices(options: RunOptions) -> dict[str, str]:
    """The hook's variables that follow from options; "" where the hook's default holds."""
    return {
        "TUI_PROBE_KERNELS": options.kernels or "",
        "TUI_PROBE_FILTER": options.excluded or "",
        "TUI_PROBE_LAUNCHES": options.launches or "",
        "TUI_PROBE_SAMPLE": options.sample or "",
        "TUI_PROBE_BENCHMARK": "1" if options.benchmark else "",
        "TUI_PROBE_DETAIL": "1" if options.detail else "",
        "TUI_PROBE_MAX_TRACE_BYTES": str(options.max_trace_bytes),
        "TUI_PROBE_MAX_PROBE_MEMORY": str(options.max_probe_memory or ""),
    }


def framework_settings(base: Mapping[str, str], hook: Path, cupy_cache: Path) -> list[Setting]:
    """What makes frameworks keep the PTX of their kernels, and tell their ranges. What the user set stays as it is."""
    settings = []
    if NVTX_INJECTION not in base:
        settings.append(Setting(NVTX_INJECTION, str(hook), "NVTX then tells the hook the program's ranges"))
    flags = base.get("XLA_FLAGS", "")
    if XLA_LINE_INFO not in flags:
        settings.append(
            Setting("XLA_FLAGS", f"{flags} {XLA_LINE_INFO}=true".strip(), "JAX keeps PTX in its cubins only with this")
        )
    if "CUPY_COMPILE_WITH_PTX" not in base:
        settings.append(Setting("CUPY_COMPILE_WITH_PTX", "1", "CuPy then loads PTX instead of cubins without PTX"))
        if "CUPY_CACHE_DIR" not in base:
            reason = "CuPy's usual cache holds cubins without PTX, this one only PTX"
            settings.append(Setting("CUPY_CACHE_DIR", str(cupy_cache), reason))
    return settings

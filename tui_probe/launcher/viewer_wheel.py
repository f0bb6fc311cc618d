"""The reason why an installation has no C parts, and the wheel to install in its place.

The viewer wheel has no C parts. pip selects it where no other wheel fits: on another system or processor, on Linux
with a C library other than glibc, or with an older glibc than the wheels for Linux need.
"""

from __future__ import annotations

import os
import re
from typing import Final

from tui_probe.errors import LaunchError
from tui_probe.version import __version__, package_folders

PROCESSORS: Final = ("x86_64", "aarch64")
MIN_GLIBC: Final = (2, 17)
"""Version in the names of the wheels that ``.ci/wheels`` builds."""
VIEWER_COMMANDS: Final = "open, show, report, compare, import and eval work without it"


def require_hook() -> None:
    """Raise LaunchError with what to install if this is the viewer wheel. ``TUI_PROBE_NATIVE`` replaces C parts."""
    if os.environ.get("TUI_PROBE_NATIVE") or any((folder / "_native").is_dir() for folder in package_folders()):
        return
    raise LaunchError(f"this is the viewer wheel, which has no hook driver: {_obstacle()}; {VIEWER_COMMANDS}")


def _obstacle() -> str:
    import platform  # the command line imports this module for each command

    system, machine = platform.system(), platform.machine()
    oldest = ".".join(map(str, MIN_GLIBC))
    if system != "Linux":
        return f"programs are profiled on Linux only, and this is {system}"
    if machine not in PROCESSORS:
        return f"the hook driver runs on x86-64 and aarch64 only, and this is {machine}"
    glibc = glibc_version()
    if glibc is None:
        return f"the hook driver needs glibc {oldest} or later, and this system has another C library"
    if glibc < MIN_GLIBC:
        return f"the hook driver needs glibc {oldest} or later, and this system has {'.'.join(map(str, glibc))}"
    wheel = f"tui_probe-{__version__}-py3-none-manylinux_2_17_{machine}.whl"
    return f"install {wheel} with pip install --force-reinstall"


def glibc_version() -> tuple[int, int] | None:
    """Return the version of the C library of this process; None if it is not glibc."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):  # another system; a C library that has no such value
        return None
    match = re.fullmatch(r"glibc (\d+)\.(\d+)\b.*", text)
    return None if match is None else (int(match[1]), int(match[2]))

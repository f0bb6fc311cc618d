"""Where the package's own shared libraries and Python modules are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import tui_probe
from tui_probe.errors import LaunchError

LIBRARY = "libcuda.so.1"


def native_library(kind: Literal["hook", "sim"]) -> Path:
    """The absolute path of the hook driver or of the simulated driver.

    ``TUI_PROBE_NATIVE`` names another directory with ``hook/`` and ``sim/`` (a source checkout's build).
    Raises LaunchError where the library is missing.
    """
    chosen = os.environ.get("TUI_PROBE_NATIVE")
    # An editable install has two entries in __path__: the sources, and the folder with what was compiled.
    folders = [Path(chosen)] if chosen else [Path(entry) / "_native" for entry in tui_probe.__path__]
    places = [(folder / kind / LIBRARY).absolute() for folder in folders]
    for place in places:
        if place.is_file():
            return place
    what = "hook driver" if kind == "hook" else "simulated driver"
    advice = "build it there (cmake -S hook)" if chosen else "reinstall: pip install ."
    raise LaunchError(f"the {what} is missing: no {' nor '.join(map(str, places))}; {advice}")


def package_path() -> str:
    """What a fresh Python needs in PYTHONPATH to import this package, entries joined by ":"."""
    entries = [Path(entry).absolute() for entry in tui_probe.__path__]
    # An editable install's loader also lists the folder that holds the checkout's package, which is none itself.
    return os.pathsep.join(dict.fromkeys(str(entry.parent) for entry in entries if entry.name == tui_probe.__name__))

"""What the user's settings file says, read once per process."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.launcher.options import ALL, AUTO
from tui_probe.settings import read_settings

from .output import warn

if TYPE_CHECKING:
    from tui_probe.settings import Settings


@cache
def chosen_settings() -> Settings:
    """The settings of this user."""
    return read_settings()


def trace_dir() -> Path:
    """Where traces are made and looked for: as the environment says, else the settings."""
    told = os.environ.get("NEUTRINO_TRACEDIR")
    return Path(told) if told else chosen_settings().trace_dir or Path("trace")


def default_launches(*, every: bool) -> str:
    """Which launches are probed where the command line does not say: ``every`` one where each is timed or sized."""
    return ALL if every else chosen_settings().launches or AUTO


def setting_problems() -> list[str]:
    """All that is wrong with the settings, the keys included."""
    from tui_probe.ui import keys

    settings = chosen_settings()
    return [*settings.problems, *(f"{settings.path}: {problem}" for problem in keys.remap(settings.keys))]


def tell_problems() -> None:
    """A line on stderr for each."""
    for problem in setting_problems():
        warn(problem)

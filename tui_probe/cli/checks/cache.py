"""The cache of prepared kernels: where it is, what it holds, and whether it can be written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tui_probe.draw.units import size
from tui_probe.engine.cache import Cache, Usage
from tui_probe.engine.cache_folder import default_folder
from tui_probe.errors import ProbeError

from . import Item

if TYPE_CHECKING:
    from pathlib import Path

NO_HOME = "there is no home directory, and XDG_CACHE_HOME is not set"
WITHOUT = "every run prepares its kernels anew; set XDG_CACHE_HOME to a directory of your own"


def cache_items() -> list[Item]:
    """The cache that ``tui-probe run`` uses."""
    folder = default_folder()
    if folder is None:
        return [Item("cache", "warn", NO_HOME, WITHOUT)]
    if not can_write(folder):
        return [Item("cache", "warn", f"{folder} cannot be written", WITHOUT)]
    cache = Cache(folder)
    usage = cache.usage()
    held = f"{described(usage)} of at most {size(cache.limit)}"
    advice = "to empty it: tui-probe doctor --clear-cache" if usage.entries else ""
    return [Item("cache", "ok", f"{held}, {folder}", advice)]


def can_write(folder: Path) -> bool:
    """Whether entries can be put there, or the folder be made: its nearest parent that exists decides."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def clear_cache() -> str:
    """Empty the cache. Returns a line that tells what was removed. Raises ProbeError where that is not possible."""
    folder = default_folder()
    if folder is None:
        return f"nothing to remove: {NO_HOME}"
    try:
        removed = Cache(folder).clear()
    except OSError as error:
        raise ProbeError(f"{error.filename} cannot be removed: {error.strerror}") from error
    return f"removed {described(removed)}, from {folder}"


def described(usage: Usage) -> str:
    """``12 entries, 3.4 MB``."""
    return f"{usage.entries} {'entry' if usage.entries == 1 else 'entries'}, {size(usage.size)}"

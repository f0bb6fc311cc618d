"""Checks of what runs leave for later ones: the cache of prepared kernels, and trials of probes in SASS."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from tui_probe.draw.units import budget, counted, size
from tui_probe.engine.cache import Cache, CacheUsage, default_cache_directory
from tui_probe.engine.grafting.graft_gate import stored_outcome
from tui_probe.errors import ProbeError
from tui_probe.launcher.environment import faulted_kernels, graft_faults_file

from . import Item

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.engine.grafting.graft_gate import TrialOutcome

NO_HOME = "no home directory, and XDG_CACHE_HOME is not set"
WITHOUT_CACHE = "without a cache, every run prepares its kernels again; set XDG_CACHE_HOME to a writable directory"
SASS_ITEM: Final = "machine code"
_MAX_NAMED: Final = 3
_OUTCOME: Final = re.compile(r"(?P<driver>[\d.]+)-(?P<arch>sm_\d+)-\w+\.json")
_NOT_YET: Final = "SASS self-test not run yet; it runs on first use"


def cache_items() -> list[Item]:
    """The cache that ``tui-probe run`` uses."""
    folder = default_cache_directory()
    if folder is None:
        return [Item("cache", "warn", NO_HOME, WITHOUT_CACHE)]
    if not can_write(folder):
        return [Item("cache", "warn", f"{folder} is not writable", WITHOUT_CACHE)]
    cache = Cache(folder)
    usage = cache.usage()
    held = f"{usage_text(usage)} of at most {budget(cache.limit)}"
    advice = "to empty the cache: tui-probe doctor --clear-cache" if usage.entries else ""
    return [Item("cache", "ok", f"{held}, {folder}", advice)]


def can_write(folder: Path) -> bool:
    """Return whether the folder, or its nearest existing parent, is writable."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def clear_cache() -> str:
    """Empty the cache. Returns a line that tells what was removed. Raises ProbeError where that is not possible."""
    folder = default_cache_directory()
    if folder is None:
        return f"nothing to remove: {NO_HOME}"
    try:
        removed = Cache(folder).clear()
    except OSError as error:
        raise ProbeError(f"{error.filename} cannot be removed: {error.strerror}") from error
    return f"removed {usage_text(removed)}, from {folder}"


def usage_text(usage: CacheUsage) -> str:
    """``12 entries, 3.4 MB``."""
    return f"{usage.entries} {'entry' if usage.entries == 1 else 'entries'}, {size(usage.size)}"


def machine_code_items() -> list[Item]:
    """The newest trial of each driver and architecture, and an item for kernels that are left unchanged."""
    folder = default_cache_directory("grafts")
    trials = [] if folder is None or not folder.is_dir() else list(_trials(folder))
    return [*(trials or [Item(SASS_ITEM, "ok", _NOT_YET)]), *_faulted_items()]


def _trials(folder: Path) -> Iterator[Item]:
    newest: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime):
        if match := _OUTCOME.fullmatch(path.name):
            newest[match["driver"], match["arch"]] = path
    for (driver, arch), path in sorted(newest.items()):
        where = f"on {arch}, driver {driver}"
        limitation = _limitation(stored_outcome(path), where)
        if limitation:
            yield Item(SASS_ITEM, "warn", limitation, f"to try again, remove {path}")
        else:
            yield Item(SASS_ITEM, "ok", f"kernels without PTX can be probed {where}")


def _limitation(trial: TrialOutcome | None, where: str) -> str:
    """Return what cannot be probed after a trial, None for one that cannot be read; "" if it passed."""
    if trial is None:
        return f"not probed {where}: the saved self-test result cannot be read"
    if trial.outcome != "passed":
        return f"not probed {where}: {trial.words or trial.outcome}"
    parts = (
        ("only entry/exit probes work", "instructions", trial.instructions),
        ("probes that record single accesses do not work", "records", trial.records),
        ("probes that count basic blocks do not work", "blocks", trial.blocks),
    )
    for remainder, name, result in parts:
        if result != "passed":
            return f"{remainder} {where}: {result or f'{name} were not tried'}"
    return ""


def _faulted_items() -> Iterator[Item]:
    path = graft_faults_file()
    names = [] if path is None else faulted_kernels(path)
    if names:
        named = ", ".join(names[:_MAX_NAMED]) + (", ..." if len(names) > _MAX_NAMED else "")
        finding = f"{counted(len(names), 'kernel')} not probed in SASS because a GPU context failed: {named}"
        yield Item(SASS_ITEM, "warn", finding, f"to probe a kernel again, remove its line from {path}")

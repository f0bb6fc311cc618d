"""Probes in machine code: how their trial went here, and which kernels are left alone since a GPU context failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.draw.units import counted
from tui_probe.engine.cache_folder import default_folder
from tui_probe.json_data import parse_json
from tui_probe.launcher.graft_faults import faulted_kernels, graft_faults_file

from . import Item

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = "machine code"
_NAMED: Final = 3
_OUTCOME: Final = re.compile(r"(?P<driver>[\d.]+)-(?P<arch>sm_\d+)-\w+\.json")
_NOT_YET: Final = "kernels without PTX: no trial of probes in machine code yet; the first run that needs them makes one"


def machine_code_items() -> list[Item]:
    """The newest trial of each driver and architecture, and an item for kernels that are left alone."""
    folder = default_folder("grafts")
    trials = [] if folder is None or not folder.is_dir() else list(_trials(folder))
    return [*(trials or [Item(NAME, "ok", _NOT_YET)]), *_faulted()]


def _trials(folder: Path) -> Iterator[Item]:
    newest: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.glob("*.json"), key=lambda each: each.stat().st_mtime):
        if match := _OUTCOME.fullmatch(path.name):
            newest[match["driver"], match["arch"]] = path
    for (driver, arch), path in sorted(newest.items()):
        outcome, words, instructions, records, blocks = _read(path)
        where, again = f"on {arch}, driver {driver}", f"to try again, remove {path}"
        if outcome != "passed":
            yield Item(NAME, "warn", f"not probed {where}: {words or outcome}", again)
        elif instructions != "passed":
            yield Item(NAME, "warn", f"probed at entries and exits alone {where}: {instructions}", again)
        elif records != "passed":
            yield Item(NAME, "warn", f"probed but for records of single accesses {where}: {records}", again)
        elif blocks != "passed":
            yield Item(NAME, "warn", f"probed but for counts of basic blocks {where}: {blocks}", again)
        else:
            yield Item(NAME, "ok", f"kernels without PTX can be probed {where}")


def _read(path: Path) -> tuple[str, str, str, str, str]:
    """The outcome, the words of one that failed, how it went at instructions, with records there, and at blocks."""
    try:
        told = parse_json(path.read_bytes())
        later = [str(told.get(name, f"{name} were not tried")) for name in ("instructions", "records", "blocks")]
        return str(told["outcome"]), str(told.get("words", "")), later[0], later[1], later[2]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "unreadable", "what the trial found cannot be read", "", "", ""


def _faulted() -> Iterator[Item]:
    path = graft_faults_file()
    names = [] if path is None else faulted_kernels(path)
    if names:
        named = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        found = f"{counted(len(names), 'kernel')} left alone since a GPU context failed: {named}"
        yield Item(NAME, "warn", found, f"remove lines from {path} to probe them again")

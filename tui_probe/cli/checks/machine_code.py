"""Probes in machine code: which kernels are left alone, since a GPU context failed while they had one."""

from __future__ import annotations

from tui_probe.draw.units import counted
from tui_probe.launcher.graft_faults import faulted_kernels, graft_faults_file

from . import Item

_NAMED = 3


def faulted_items() -> list[Item]:
    """Nothing where there are no such kernels."""
    path = graft_faults_file()
    names = [] if path is None else faulted_kernels(path)
    if not names:
        return []
    named = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    found = f"{counted(len(names), 'kernel')} left alone since a GPU context failed: {named}"
    return [Item("machine code", "warn", found, f"remove lines from {path} to probe them again")]

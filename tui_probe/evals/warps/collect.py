"""What is run: one kernel in three configurations of its blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

from .configurations import LIFETIMES, PROGRESS

if TYPE_CHECKING:
    from tui_probe.evals.evaluation import Setting

_OPTIONS: Final = ("-k", "accumulate", "--launches", "all", "--no-times", "--no-source", "--max-trace-bytes", "64M")


def collect(setting: Setting) -> list[Collection]:
    """Exclusive and shared with a record per block; shared once more with one per warp and iteration."""
    small = ("--per-sm", "3", "--iterations", "12") if setting.simulated else ()
    program = (PYTHON, f"{PROGRAMS}/blocks.py", *small)
    return [
        Collection("exclusive_sched", (*program, "exclusive"), ("-p", LIFETIMES, *_OPTIONS)),
        Collection("shared_sched", (*program, "shared"), ("-p", LIFETIMES, *_OPTIONS)),
        Collection("shared_acc", (*program, "shared"), ("-p", PROGRESS, *_OPTIONS)),
    ]

"""Runs of a basic block: instructions in a row of one kind of work.

A block is cut at waits, and between them where the kind of work changes. Runs that are too light for a record of their
own join the heavier run next to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.phase_names import BARRIER, WAITS, work_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.ptx.control_flow import Block

_MIN_SHARE: Final = 0.1
"""Share of the weight between two waits from which on a run is a phase of its own."""
_MAX_RUNS: Final = 6
"""Phases that a stretch between two waits has at most."""
SHORT: Final = 8
"""Instructions without a kind of work that may join the phase before them."""


@dataclass(slots=True)
class Run:
    """Instructions of a basic block in a row. ``work`` is None while nothing names it."""

    work: str | None
    code: Block
    weight: int = 0
    moved: int = 0
    has_wait: bool = False
    """True for a run of a name that the user gave and that has a wait: it is never joined with another name."""

    @property
    def waits(self) -> bool:
        return self.work in WAITS

    def rank(self) -> tuple[bool, int]:
        """Return the key by which runs are joined, the least first."""
        return self.has_wait, self.weight


def runs_of(block: Block, works: Sequence[str | None], weight: Callable[[str], int], min_weight: int) -> list[Run]:
    """Cut a block at waits, and code between them where the kind of work changes for long enough."""
    runs: list[Run] = []
    for waits, group in groupby(_raw_runs(block, works, weight), key=lambda run: run.waits):
        stretch = list(group)
        runs += stretch if waits else _merged(stretch, min_weight)
    joined: list[Run] = []
    for run in runs:
        if joined and (run.work == joined[-1].work or (run.work is None and len(run.code) < SHORT)):
            joined[-1].code += run.code
        elif joined and joined[-1].work is None and len(joined[-1].code) < SHORT:
            joined[-1] = Run(run.work, [*joined[-1].code, *run.code], run.weight, run.moved)
        elif joined and joined[-1].waits and run.work == BARRIER:
            joined[-1].code += run.code
        else:
            joined.append(run)
    return joined


def _raw_runs(block: Block, works: Sequence[str | None], weight: Callable[[str], int]) -> Iterator[Run]:
    """Runs of equal work, waits apart. Instructions of no kind join the work around them.

    Nothing is cut between the fence and the commit of wgmma, where other code makes ptxas serialize the products.
    """
    run: Run | None = None
    is_open = False
    for instruction, own in zip(block, works, strict=True):
        work = run.work if is_open and run is not None and own not in WAITS else own
        if instruction.opcode == "wgmma":
            is_open = "fence" in instruction.modifiers or ("mma_async" in instruction.modifiers and is_open)
        if run is None or run.waits != (work in WAITS) or _differ(work, run.work):
            if run is not None:
                yield run
            run = Run(work, [])
        run.work = work if run.work is None else run.work
        run.code.append(instruction)
        run.weight += weight(own) if own is not None else 0
        run.has_wait |= bool(own) and work_of(instruction) in WAITS
    if run is not None:
        yield run


def _differ(first: str | None, second: str | None) -> bool:
    """Return whether both kinds of work are known and differ."""
    return first is not None and second is not None and first != second


def _merged(runs: list[Run], min_weight: int) -> list[Run]:
    """Join runs that are too light with the heavier run next to them."""
    total = sum(run.weight for run in runs)
    while len(runs) > 1:
        lightest = min(runs, key=Run.rank)
        if lightest.has_wait or (lightest.weight >= max(min_weight, _MIN_SHARE * total) and len(runs) <= _MAX_RUNS):
            break
        place = runs.index(lightest)
        around = [index for index in (place - 1, place + 1) if 0 <= index < len(runs)]
        other = max(around, key=lambda index: runs[index].weight)
        first, last = sorted((place, other))
        runs[first : last + 1] = [_joined(runs[first], runs[last])]
        runs = _equals_joined(runs)
    return runs


def _joined(first: Run, second: Run) -> Run:
    heavy, light = (first, second) if first.rank() >= second.rank() else (second, first)
    moved = first.moved + second.moved + (len(light.code) if light.work not in ("", heavy.work) else 0)
    has_wait = first.has_wait or second.has_wait
    return Run(heavy.work, [*first.code, *second.code], first.weight + second.weight, moved, has_wait)


def _equals_joined(runs: list[Run]) -> list[Run]:
    joined: list[Run] = []
    for run in runs:
        if joined and joined[-1].work == run.work:
            joined[-1] = _joined(joined[-1], run)
        else:
            joined.append(run)
    return joined

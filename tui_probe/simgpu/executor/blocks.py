"""From bound steps to basic blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.simgpu.executor.binding import Mark, Part, Step
from tui_probe.simgpu.executor.control import Branch, Control, End, FallThrough, IndexedBranch
from tui_probe.simgpu.executor.program import Block

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class _Draft:
    """A basic block whose branch targets are not known yet."""

    steps: list[Step] = field(default_factory=list)
    control: Control = field(default_factory=FallThrough)
    results: frozenset[int] = frozenset()


def assemble(functions: Sequence[tuple[Sequence[Part], frozenset[int]]]) -> tuple[list[Block], list[int]]:
    """The blocks of all functions, and the index of each one's first block.

    With the parts of a function come the registers of its results, which live until it returns.
    """
    drafts: list[_Draft] = []
    labels: dict[int, int] = {}
    entries = []
    for parts, results in functions:
        entries.append(len(drafts))
        _cut(parts, drafts, labels)
        for draft in drafts[entries[-1] :]:
            draft.results = results
    polling = [any(step.effects.polls for step in draft.steps) for draft in drafts]
    return [_block(index, draft, labels, polling) for index, draft in enumerate(drafts)], entries


def _cut(parts: Sequence[Part], drafts: list[_Draft], labels: dict[int, int]) -> None:
    """Appends the blocks of one function to ``drafts``."""
    current = _Draft()
    drafts.append(current)
    for part in parts:
        if isinstance(part, Mark):
            if current.steps:
                current = _Draft()
                drafts.append(current)
            labels[part.key] = len(drafts) - 1
            continue
        begins = part.effects.starts_block or part.effects.members is not None
        if begins and current.steps:
            current = _Draft()
            drafts.append(current)
        current.steps.append(part)
        if part.control is not None:
            current.control = part.control
            current = _Draft()
            drafts.append(current)
    # What falls off the end of a function returns; nothing is after the last `ret`.
    current.control = End(returns=True)


def _block(index: int, draft: _Draft, labels: dict[int, int], polling: Sequence[bool]) -> Block:
    reads: set[int] = set()
    writes: set[int] = set()
    for step in draft.steps:
        reads |= step.effects.reads - writes
        writes |= step.effects.writes
    if isinstance(draft.control, End) and draft.control.returns:
        reads |= draft.results - writes
    polls = _loop_polls(index, draft.control, labels, polling)
    return Block(
        line=draft.steps[0].line if draft.steps else 0,
        operations=tuple(step.operation for step in draft.steps if step.operation is not None),
        cycles=sum(step.cycles for step in draft.steps),
        length=sum(step.length for step in draft.steps),
        finish=draft.control.finish(labels, index + 1, polls),
        members=draft.steps[0].effects.members if draft.steps else None,
        may_end=draft.control.may_end,
        successors=tuple(draft.control.successors(labels, index + 1)),
        reads=frozenset(reads),
        writes=frozenset(writes),
    )


def _loop_polls(index: int, control: Control, labels: dict[int, int], polling: Sequence[bool]) -> bool:
    """Whether ``control`` jumps back over an instruction that may be asking for another thread's progress."""
    if isinstance(control, Branch):
        first = labels[control.label]
    elif isinstance(control, IndexedBranch):
        first = min(labels[label] for label in control.labels)
    else:
        return False
    return any(polling[first : index + 1])

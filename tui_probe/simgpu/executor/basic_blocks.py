"""Split functions into basic blocks: straight code that all threads of a group execute, up to a branch or label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.simgpu.executor.binding import BoundItem, BoundStep, LabelMark
from tui_probe.simgpu.executor.program import BasicBlock, Branch, Control, FallThrough, FunctionEnd, IndexedBranch

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class _BlockDraft:
    """A basic block whose branch targets are not known yet."""

    steps: list[BoundStep] = field(default_factory=list)
    control: Control = field(default_factory=FallThrough)
    results: frozenset[int] = frozenset()


def split_blocks(functions: Sequence[tuple[Sequence[BoundItem], frozenset[int]]]) -> tuple[list[BasicBlock], list[int]]:
    """The blocks of all functions, and the index of each one's first block.

    With the parts of a function come the registers of its results, which live until it returns.
    """
    drafts: list[_BlockDraft] = []
    labels: dict[int, int] = {}
    entries = []
    for parts, results in functions:
        entries.append(len(drafts))
        _split_at_controls(parts, drafts, labels)
        for draft in drafts[entries[-1] :]:
            draft.results = results
    polling = [any(step.effects.polls for step in draft.steps) for draft in drafts]
    return [_block(index, draft, labels, polling) for index, draft in enumerate(drafts)], entries


def _split_at_controls(parts: Sequence[BoundItem], drafts: list[_BlockDraft], labels: dict[int, int]) -> None:
    """Appends the blocks of one function to ``drafts``."""
    current = _BlockDraft()
    drafts.append(current)
    for part in parts:
        if isinstance(part, LabelMark):
            if current.steps:
                current = _BlockDraft()
                drafts.append(current)
            labels[part.key] = len(drafts) - 1
            continue
        begins = part.effects.starts_block or part.effects.members is not None
        if begins and current.steps:
            current = _BlockDraft()
            drafts.append(current)
        current.steps.append(part)
        if part.control is not None:
            current.control = part.control
            current = _BlockDraft()
            drafts.append(current)
    # What falls off the end of a function returns; nothing is after the last `ret`.
    current.control = FunctionEnd(returns=True)


def _block(index: int, draft: _BlockDraft, labels: dict[int, int], polling: Sequence[bool]) -> BasicBlock:
    reads: set[int] = set()
    writes: set[int] = set()
    for step in draft.steps:
        reads |= step.effects.reads - writes
        writes |= step.effects.writes
    if isinstance(draft.control, FunctionEnd) and draft.control.returns:
        reads |= draft.results - writes
    polls = _loop_polls(index, draft.control, labels, polling)
    return BasicBlock(
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
    """Return True if ``control`` jumps back over an instruction that may poll the progress of another thread."""
    if isinstance(control, Branch):
        first = labels[control.label]
    elif isinstance(control, IndexedBranch):
        first = min(labels[label] for label in control.labels)
    else:
        return False
    return any(polling[first : index + 1])

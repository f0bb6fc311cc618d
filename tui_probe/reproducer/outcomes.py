"""Outcomes of ``run --keep-launch``: launches that were saved, and the reasons why others were not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.reasons import advice_on
from tui_probe.trace.events import parse_line
from tui_probe.trace.launch_events import LaunchKept, LaunchNotKept
from tui_probe.trace.locate import LOG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_MARKS: Final = (b"[probe] kept ", b"[probe] not-kept ")


def keep_outcomes(trace: Path) -> Iterator[LaunchKept | LaunchNotKept]:
    """Yield the launches that event.log reports as saved or not saved."""
    with (trace / LOG).open("rb") as log:
        for line in log:
            event = parse_line(line) if line.startswith(_MARKS) else None
            if isinstance(event, (LaunchKept, LaunchNotKept)):
                yield event


def outcome_text(event: LaunchKept | LaunchNotKept) -> str:
    """Return a sentence about a launch, with advice if it was not saved."""
    launch = f"{event.index}@{event.number}"
    if isinstance(event, LaunchKept):
        unknown = f"; {units.counted(event.unknown, 'pointer')} to memory that is not saved" if event.unknown else ""
        return f"launch {launch} is saved ({units.size(event.size)}{unknown})"
    if event.reason is None:
        return f"launch {launch} is not saved"
    advice = advice_on(event.reason.code, event.reason.parameters)
    return f"launch {launch} is not saved: {event.reason.text}. {advice}".rstrip(" .")


def why_not_kept(trace: Path) -> str:
    """Return what happened to launches that were not saved, for the end of a message; "" if there are none."""
    return "".join(f"; {outcome_text(event)}" for event in keep_outcomes(trace) if isinstance(event, LaunchNotKept))


def saved_launches(traces: Sequence[Path]) -> Iterator[tuple[Path, LaunchKept]]:
    """Yield the saved launches of a run, each with its trace."""
    for trace in traces:
        yield from ((trace, event) for event in keep_outcomes(trace) if isinstance(event, LaunchKept))


def keep_problems(traces: Sequence[Path], wanted: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield messages about ``wanted`` launches that were not saved, each with the trace that it is about."""
    outcomes = [(trace, event) for trace in traces for event in keep_outcomes(trace)]
    for trace, event in outcomes:
        if isinstance(event, LaunchNotKept):
            yield trace, outcome_text(event)
    if traces and wanted and not outcomes:
        yield (
            traces[0],
            f"--keep-launch {', '.join(wanted)}: no such launch; --keep-launch KERNEL@0 saves the first one",
        )

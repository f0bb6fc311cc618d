"""What there is to say of a run besides its traces.

On a terminal a person reads it on stderr. Elsewhere stderr is read by scripts, which take the last word of its first
line, of its last or of each for a trace: there it has one line for each trace that is there, and nothing else of ours;
the rest stands in ``run.json`` and in the report.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tui_probe.launcher.record import add_message

from .output import warn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.launcher.outcome import Outcome


def on_person() -> bool:
    """Whether stderr is a terminal."""
    return os.isatty(2)


def tell_of(trace: Path, text: str) -> None:
    """Say something of one trace. What ``run.json`` cannot take is said on stderr all the same."""
    if not on_person():
        try:
            add_message(trace, text)
        except OSError:
            pass
        else:
            return
    warn(f"{text}: {trace}")


def tell_what_failed(outcome: Outcome, told: int) -> None:
    """What went wrong in a run; of more than ``told`` traces not all are named.

    A script is told on stderr only of what no file can tell: that a trace could not be written, or changes the status.
    """
    for trace, problem in outcome.incomplete.items():
        warn(f"the trace is incomplete ({problem}): {trace}")
    if not on_person():
        for text in [*outcome.lost_output, *([] if outcome.traces else outcome.untraced)]:
            warn(text)
        return
    if outcome.engine_failure:
        warn(outcome.engine_failure)
    for text in outcome.messages:
        warn(text)
    if not outcome.no_trace and outcome.first_trace is not None and outcome.first_trace not in outcome.traces:
        warn(_not_there(outcome, outcome.first_trace, told))


def _not_there(outcome: Outcome, first: Path, told: int) -> str:
    traces: Sequence[Path] = outcome.traces
    if outcome.untraced:
        return f"there is no {first}"
    if not traces:
        return f"the command launched no kernel: there is no {first}"
    others = " ".join(map(str, traces)) if len(traces) <= told else f"{len(traces)} traces, one is {traces[-1]}"
    return f"there is no {first}: the command itself launched no kernel; its children did: {others}"

"""An evaluation of what was named, or of the traces that come with the package."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.draw.view import no_progress
from tui_probe.errors import ChoiceError, TraceError
from tui_probe.evals.given import given
from tui_probe.evals.registry import FOLDER, evaluation_named

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.evals.answer import Answer
    from tui_probe.evals.evaluation import Evaluation

PROGRAMS: Final = FOLDER / "programs"


def bundled(evaluation: Evaluation) -> Path | None:
    """The folder of the traces of an evaluation that come with the package; None if there are none."""
    folder = FOLDER / "traces" / evaluation.name
    return folder if folder.is_dir() else None


def evaluate(
    name: str, traces: str | PathLike[str] | Sequence[str | PathLike[str]] = (), progress: Progress = no_progress
) -> Answer:
    """Answer an evaluation from traces: directories, folders of them, ``TRACE:KERNEL@LAUNCH``, results, other files.

    Without any the traces that come with the package are used. Raises UsageError for a name that there is not,
    TraceError or ChoiceError where something is missing, with the command that collects it.
    """
    from os import PathLike

    evaluation = evaluation_named(name)
    words = [traces] if isinstance(traces, str | PathLike) else list(traces)
    folder = None if words else bundled(evaluation)
    if folder is not None:
        words = [folder]
    if not words:
        raise ChoiceError(f"no traces for {name} come with this package: name some, or collect: {evaluation.command}")
    found, notes = given(words)
    answer = evaluation.open(found, progress)
    sources = [*(["traces that come with tui-probe"] if folder else []), *(each.words for each in found)]
    return replace(
        answer,
        name=evaluation.name,
        question=evaluation.question,
        sources=sources,
        notes=[*answer.notes, *notes],
        reading=evaluation.reading,
        hardware=answer.hardware or ", ".join(dict.fromkeys(each.hardware for each in found if each.hardware)),
    )


def nothing_measured(evaluation: str, reasons: Sequence[str]) -> TraceError:
    """The error for what was given and holds nothing of the evaluation: why, and what to run."""
    return TraceError(f"{'; '.join(reasons)}. To collect all of it: tui-probe eval {evaluation} --run")

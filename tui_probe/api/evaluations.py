"""Evaluations for scripts and notebooks: their answers as NumPy arrays and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.evals.opening import evaluate as answer_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from tui_probe.evals.answer import Answer


def evaluate(name: str, traces: str | PathLike[str] | Sequence[str | PathLike[str]] = ()) -> Answer:
    """Answer the evaluation ``name`` from traces; without any from those that come with the package.

    ``answer.tables["NAME"]["COLUMN"]`` is an array, ``answer.tables["NAME"].records()`` are plain rows,
    ``answer.arrays`` larger data. Names are those of ``tui-probe eval``.

    Raises UsageError for a name that there is not, TraceError or ChoiceError where something is missing: their texts
    say what to run.
    """
    return answer_of(name, traces)

"""Evaluations: their declaration, their registry, and answering one from traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.draw.view import no_progress
from tui_probe.errors import ChoiceError, TraceError, UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from tui_probe.draw.view import Progress
    from tui_probe.evals.answer import Answer
    from tui_probe.evals.inputs import EvaluationInput

PYTHON_PLACEHOLDER: Final = "{python}"
"""Placeholder in ``Collection.argv`` for the interpreter that programs run with."""
PROGRAMS_PLACEHOLDER: Final = "{programs}"
"""Placeholder in ``Collection.argv`` for the directory of the programs."""
FOLDER: Final = Path(__file__).parent
PROGRAMS_FOLDER: Final = FOLDER / "programs"


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings of a collection: ``files`` are those that the user named, such as a study."""

    simulated: bool = False
    """True on the simulated GPU, where sizes must be small."""
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Collection:
    """One run of a program: ``name`` is that of the trace, ``argv`` the program, ``options`` those of ``run``.

    The options say everything that matters, launches and budgets above all: defaults of ``run`` may change.
    """

    name: str
    argv: tuple[str, ...]
    options: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """Python modules that the program needs; where one is missing the run is left out, with a word."""
    tools: tuple[str, ...] = ()
    """Commands that must be on the path, in the same way."""
    gpu: bool = False
    """True if its values have no meaning on the simulated GPU."""
    output_kind: Literal["trace", "output", "ncu"] = "trace"
    """Result of the run: the trace; output of the program, as NAME.txt; or the table of ``run --ncu``, as NAME.csv."""

    @property
    def output_name(self) -> str:
        """The name of the folder or file that is kept."""
        return self.name + {"trace": "", "output": ".txt", "ncu": ".csv"}[self.output_kind]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation. ``question`` is one line; ``probes`` those whose results it reads; ``reading`` how to read the
    answer, a paragraph each.

    ``open`` makes the answer from the arguments, at least one; it raises TraceError or ChoiceError
    with the command that collects what is missing. ``collect`` says the runs, in the order of the answer.
    """

    name: str
    question: str
    probes: tuple[str, ...]
    reading: tuple[str, ...]
    open: Callable[[Sequence[EvaluationInput], Progress], Answer]
    collect: Callable[[Setting], list[Collection]]

    @property
    def command(self) -> str:
        """The command that collects it."""
        return f"tui-probe eval {self.name} --run"


@cache
def evaluation_names() -> tuple[str, ...]:
    """The names of all, sorted; nothing is imported."""
    return tuple(sorted(module.parent.name for module in FOLDER.glob("*/__init__.py")))


def evaluation_named(name: str) -> Evaluation:
    """The evaluation of a name. Raises UsageError with the names that there are."""
    if name not in evaluation_names():
        names = evaluation_names()
        raise UsageError(
            f"there is no evaluation {name!r}{did_you_mean(name, names) or '.'} Evaluations: {', '.join(names)}"
        )
    evaluation: Evaluation = import_module(f"tui_probe.evals.{name}").EVALUATION
    return evaluation


def evaluations() -> list[Evaluation]:
    """All of them, by name."""
    return [evaluation_named(name) for name in evaluation_names()]


def bundled_traces(evaluation: Evaluation) -> Path | None:
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

    from tui_probe.evals.inputs import read_inputs  # brings NumPy

    evaluation = evaluation_named(name)
    paths = [traces] if isinstance(traces, str | PathLike) else list(traces)
    folder = None if paths else bundled_traces(evaluation)
    if folder is not None:
        paths = [folder]
    if not paths:
        raise ChoiceError(
            f"this package contains no traces for {name}: pass traces, or collect them with {evaluation.command}"
        )
    inputs, notes = read_inputs(paths)
    answer = evaluation.open(inputs, progress)
    sources = [*(["traces included in tui-probe"] if folder else []), *(entry.text for entry in inputs)]
    return replace(
        answer,
        name=evaluation.name,
        question=evaluation.question,
        sources=sources,
        notes=[*answer.notes, *notes],
        reading=evaluation.reading,
        hardware=answer.hardware or ", ".join(dict.fromkeys(entry.hardware for entry in inputs if entry.hardware)),
    )


def nothing_measured_error(evaluation: str, reasons: Sequence[str]) -> TraceError:
    """The error for what was given and holds nothing of the evaluation: why, and what to run."""
    return TraceError(f"{'; '.join(reasons)}. To collect everything: tui-probe eval {evaluation} --run")

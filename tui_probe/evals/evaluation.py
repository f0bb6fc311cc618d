"""What an evaluation is, and what it collects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.evals.answer import Answer
    from tui_probe.evals.given import Given

PYTHON: Final = "{python}"
"""In ``Collection.argv``: the interpreter that programs run with."""
PROGRAMS: Final = "{programs}"
"""In ``Collection.argv``: the folder of the programs."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where an evaluation is collected: ``files`` are those that the user named, such as a study."""

    simulated: bool = False
    """On the simulated GPU, where sizes must be small."""
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
    """Whether it says nothing on the simulated GPU."""
    keeps: Literal["trace", "output", "ncu"] = "trace"
    """What is kept: the trace; what the program wrote, as NAME.txt; or the table of ``run --ncu``, as NAME.csv."""

    @property
    def kept_as(self) -> str:
        """The name of the folder or file that is kept."""
        return self.name + {"trace": "", "output": ".txt", "ncu": ".csv"}[self.keeps]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation. ``question`` is one line; ``probes`` those whose results it reads; ``reading`` how to read the
    answer, a paragraph each.

    ``open`` makes the answer of what was given, of which there is at least one; it raises TraceError or ChoiceError
    with the command that collects what is missing. ``collect`` says the runs, in the order of the answer.
    """

    name: str
    question: str
    probes: tuple[str, ...]
    reading: tuple[str, ...]
    open: Callable[[Sequence[Given], Progress], Answer]
    collect: Callable[[Setting], list[Collection]]

    @property
    def command(self) -> str:
        """The command that collects it."""
        return f"tui-probe eval {self.name} --run"

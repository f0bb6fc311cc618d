"""Running the program of a trace again: what may be asked is chosen here, and who shows the screen starts the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UsageError
from tui_probe.pages.findings.questions import open_questions, questions
from tui_probe.trace.former_run import former_run
from tui_probe.ui.asked import Again
from tui_probe.ui.between import WAY, between_choice
from tui_probe.ui.screens.picker import Choice

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Kernel

AS_BEFORE: Final = Choice("as before", "the same probes and options", value="")
BETWEEN: Final = "between"
"""Stands for no options: what was chosen takes a probe that is still to be written."""


@dataclass(frozen=True)
class Offer:
    """What may be chosen, or why nothing can."""

    trace: Path
    choices: tuple[Choice, ...] = ()
    problem: str = ""

    def take(self, option: str) -> Again | str:
        """What was chosen; or what is to be done before that can run."""
        return WAY if option == BETWEEN else Again(self.trace, tuple(option.split()))


def offer(trace: Path, kernel: Kernel | None, first: str = "") -> Offer:
    """What can be asked of a program whose trace this is: what the kernel's results leave open, probe ``first`` first.

    Reads the kernel's PTX.
    """
    try:
        former_run(trace.absolute())
    except UsageError as error:
        return Offer(trace, problem=str(error).removeprefix(f"{trace.absolute()}: "))  # the screen names it
    asked = [] if kernel is None else open_questions(kernel, ())
    found = [Choice(each.option, each.words, _opened(each.pages), value=each.option, also=each.also) for each in asked]
    option = f"-p {first}"
    if first and all(each.value != option for each in found):
        words = next((each.words for each in questions() if each.option == option), "what this page shows")
        found.append(Choice(option, words, value=option))
    found.sort(key=lambda each: each.value != option)  # the others stay as they are
    return Offer(trace.absolute(), (*found, between_choice(BETWEEN), AS_BEFORE))


def _opened(pages: tuple[str, ...]) -> str:
    return f"opens {', '.join(pages)}" if pages else ""

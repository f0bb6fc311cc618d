"""Running the program of a trace again: what may be asked is chosen here, and who shows the screen starts the run.

Where the command ran before, what changed since is what many ask first, and nothing has to run for that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UsageError
from tui_probe.pages.findings.questions import open_questions, questions
from tui_probe.trace.former_run import FolderGoneError, former_run
from tui_probe.trace.recent import brief, run_before
from tui_probe.ui.asked import Again, Against, ToPaste
from tui_probe.ui.between import WAY, between_choice
from tui_probe.ui.screens.picker import Choice
from tui_probe.ui.views.recent import when

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Kernel

AS_BEFORE: Final = Choice("as before", "the same probes and options", value="")
BETWEEN: Final = "between"
"""Stands for no options: what was chosen takes a probe that is still to be written."""
COMPARE: Final = "compare"
"""Stands for no options: the run is to be shown against the one before it."""
COMMAND: Final = "command"
"""Stands for no options: the command is to be shown, for where the program is."""
_GONE: Final = "its folder is not on this machine: run this where the program is"


@dataclass(frozen=True)
class Offer:
    """What may be chosen, or why nothing can."""

    trace: Path
    choices: tuple[Choice, ...] = ()
    problem: str = ""
    command: str = ""
    """What a person may paste where the program is, where it cannot be run from here."""
    before: Path | None = None
    """The run of the same command before this one."""

    def take(self, option: str) -> Again | Against | ToPaste | str:
        """What was chosen; or what is to be done before that can run."""
        if option == COMPARE and self.before is not None:
            return Against(self.before, self.trace)
        if option == COMMAND:
            return ToPaste(self.command)
        return WAY if option == BETWEEN else Again(self.trace, tuple(option.split()))


def offer(trace: Path, kernel: Kernel | None, first: str = "") -> Offer:
    """What can be asked of a program whose trace this is: probe ``first`` first, then what changed since the run before
    if there was one, then what the kernel's results leave open.

    Reads the kernel's PTX.
    """
    trace = trace.absolute()
    before = run_before(trace)
    try:
        former_run(trace, (first,) if first else ())
    except UsageError as error:
        return _refused(trace, error, before)
    compare = () if before is None else (_compare_choice(before),)
    asked = [] if kernel is None else open_questions(kernel, ())
    found = [Choice(each.option, each.words, _opened(each.pages), value=each.option, also=each.also) for each in asked]
    option = f"-p {first}"
    if first and all(each.value != option for each in found):
        words = next((each.words for each in questions() if each.option == option), "what this page shows")
        found.append(Choice(option, words, value=option))
    found.sort(key=lambda each: each.value != option)  # the others stay as they are
    lacking = sum(each.value == option for each in found)
    choices = (*found[:lacking], *compare, *found[lacking:], between_choice(BETWEEN), AS_BEFORE)
    return Offer(trace, choices, before=before)


def _refused(trace: Path, error: UsageError, before: Path | None) -> Offer:
    """It cannot run from here: what can be done all the same."""
    command = error.command if isinstance(error, FolderGoneError) else ""
    problem = _GONE if command else str(error).removeprefix(f"{trace}: ")  # the screen names it
    if before is None:
        return Offer(trace, problem=problem, command=command)
    compare = _compare_choice(before, "" if command else f"; it cannot run again: {problem}")
    paste = (
        (Choice("run again", "the command to run elsewhere: its folder is not here", value=COMMAND),) if command else ()
    )
    return Offer(trace, (compare, *paste), before=before, command=command)


def _compare_choice(before: Path, problem: str = "") -> Choice:
    known = brief(before)
    ago = "" if known is None else f", {when(known.when, time.time())}"
    detail = f"with {before.name}{ago}; nothing has to run for that{problem}"
    words = "what changed since the run before?"
    return Choice("compare", words, detail, value=COMPARE, also="difference against earlier")


def _opened(pages: tuple[str, ...]) -> str:
    return f"opens {', '.join(pages)}" if pages else ""

"""Choices for rerunning the program of a trace; the screen returns the chosen one, and its caller starts the run."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

from tui_probe.errors import UsageError
from tui_probe.launcher.options import again_command
from tui_probe.pages.findings_page import all_questions, open_questions
from tui_probe.pages.views import kind_of
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.probe_files.sets import built_in_sets, set_within
from tui_probe.probekit.registry import probe_names_where
from tui_probe.trace.recent import brief, run_before
from tui_probe.trace.run_info import MissingDirectoryError, recorded_run
from tui_probe.ui.screens.lists import PickerItem
from tui_probe.ui.session import BETWEEN_HINT, CommandToPaste, ComparisonRequest, OpenTrace, RerunRequest
from tui_probe.ui.views.recent import age_text
from tui_probe.verdicts.limiter import kernel_limiter
from tui_probe.verdicts.run_outcome import measuring_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.trace.run_info import RunInfo

OPTION_QUESTIONS: Final = {
    "--between": "how much time does each warp spend in the marked lines?",
    "--watchdog": "where is a kernel stuck?",
}
"""Questions that options answer; of lines once they are marked."""


def survey_choice(value: str | Callable[[], object]) -> PickerItem:
    """A line of a list for the set of probes that answers what is slow."""
    title = built_in_sets()[DEFAULT_PROBE].title
    return PickerItem(SURVEY_OPTION, title, value=value, also="ask run again all first look overview default")


def between_choice(value: str | Callable[[], None]) -> PickerItem:
    """A line of a list that leads to these words."""
    return PickerItem(
        "time between lines",
        "--between",
        value=value,
        also="ask measure two source from to mark",
    )


# Running the program of a trace again: what may be asked is chosen here, and who shows the screen starts the run.
#
# Where the command ran before, what changed since is what many ask first, and nothing has to run for that.

SURVEY_OPTION: Final = f"-p {DEFAULT_PROBE}"
AS_BEFORE: Final = PickerItem("as before", "the same probes and options", value="")
BETWEEN: Final = "between"
"""Stands for no options: between which lines is still to be marked."""
COMPARE: Final = "compare"
"""Stands for no options: the run is to be shown against the one before it."""
PREVIOUS: Final = "previous"
"""Stands for no options: the previous run is to be opened."""
COMMAND: Final = "command"
"""Stands for no options: the command is to be shown, for where the program is."""
_FOLDER_GONE: Final = "the program is not on this machine: run this command on its machine"


@dataclass(frozen=True)
class RerunOffer:
    """Choices, or the problem that prevents all of them."""

    trace: Path
    choices: tuple[PickerItem, ...] = ()
    problem: str = ""
    command: str = ""
    """Command to paste on the machine of the program, if it cannot be run here."""
    before: Path | None = None
    """The previous run of the same command with the same probe."""
    previous: Path | None = None
    """The previous run of the same command with any probe."""

    def take(self, option: str) -> RerunRequest | OpenTrace | ComparisonRequest | CommandToPaste | str:
        """Return the request of a choice, or what must be done before it."""
        if option == PREVIOUS and self.previous is not None:
            return OpenTrace(self.previous)
        if option == COMPARE and self.before is not None:
            return ComparisonRequest(self.before, self.trace)
        if option == COMMAND:
            return CommandToPaste(self.command)
        return BETWEEN_HINT if option == BETWEEN else RerunRequest(self.trace, tuple(shlex.split(option)))


def offer(trace: Path, kernel: Kernel | None, first: str = "") -> RerunOffer:
    """Return the questions for the program of a trace: option ``first`` first, then the changes since the
    previous run if there was one, the survey, and what the kernel's results leave open.

    Reads the kernel's PTX.
    """
    trace = trace.absolute()
    before, previous = run_before(trace), run_before(trace, any_probe=True)
    try:
        info, _ = recorded_run(trace, lambda info: again_command(info, shlex.split(first)))
    except UsageError as error:
        return _offer_without_rerun(trace, error, before, previous)
    first = first or _cause_option(kernel)
    compare = () if before is None else (_compare_choice(before),)
    back = () if previous is None else (_previous_choice(previous),)
    survey = survey_choice(SURVEY_OPTION)
    every = () if kernel is None else tuple(_every_probe(kernel))
    questions = _questions(kernel, first, survey)
    lacking = sum(item.value == first for item in questions)
    others = tuple(_of_other_kernels(info, kernel))
    if kernel is not None and kernel.status == "excluded":
        return RerunOffer(
            trace, (*others, survey, *questions, *compare, *back, AS_BEFORE), before=before, previous=previous
        )
    other_choices = (*questions[lacking:], between_choice(BETWEEN), *others, *back, AS_BEFORE)
    choices = (*questions[:lacking], *compare, *every, survey, *other_choices)
    return RerunOffer(trace, choices, before=before, previous=previous)


def _questions(kernel: Kernel | None, first: str, survey: PickerItem) -> list[PickerItem]:
    """Return what the kernel's results leave open, with option ``first`` before the others unless ``survey`` has it."""
    asked = [] if kernel is None else open_questions(kernel, (), of_program=True)
    questions = [
        PickerItem(
            question.option, question.words, _opened_pages(question.pages), value=question.option, also=question.also
        )
        for question in asked
    ]
    if first and all(item.value != first for item in (survey, *questions)):
        questions.append(PickerItem(first, _option_label(first), value=first))
    return sorted(questions, key=lambda item: item.value != first)  # the others stay as they are


def _option_label(option: str) -> str:
    """Return the question that an option of run answers."""
    known = {question.option: question.words for question in all_questions()}
    known |= {f"-p {name}": probe_set.title for name, probe_set in built_in_sets().items()}
    fixed = (text for start, text in OPTION_QUESTIONS.items() if option.startswith(start))
    return next(fixed, known.get(option, "what this page shows"))


def _every_probe(kernel: Kernel) -> Iterator[PickerItem]:
    """Yield the choice to launch kernels again for the probes of the run that no launch had."""
    if options := measuring_options(cast("Trace", kernel.trace)):
        question, detail = "what did the other probes of the run measure?", "each kernel with each probe of the run"
        yield PickerItem(options[0], question, detail, value=shlex.join(options), also="missing not measured unknown")


def _cause_option(kernel: Kernel | None) -> str:
    """Return the option of the set of probes that shows why a latency bound kernel waits; "" if that is known, if
    another unit limits the kernel, and on the simulated GPU, which runs PTX.
    """
    if kernel is None or kernel.trace.state.simulated:
        return ""
    limiter = kernel_limiter(kernel)
    if limiter is None or limiter.verdict.limit != "latency" or limiter.cause:
        return ""
    name = set_within(probe_names_where(lambda probe: probe.latency_cause))
    return f"-p {name}" if name else ""


def _of_other_kernels(info: RunInfo, kernel: Kernel | None) -> Iterator[PickerItem]:
    """Yield, for a run that excluded kernels, the choices to probe this kernel, if it was one of these, and all."""
    if any(isinstance(info.options.get(key), str) for key in ("kernels", "filter")):
        if kernel is not None and kernel.status == "excluded":
            yield PickerItem("this kernel", "the same probes, this kernel only", value=f"-k {kernel.name}")
        yield PickerItem("all kernels", "the same probes, all kernels", value="--all-kernels")


def _offer_without_rerun(trace: Path, error: UsageError, before: Path | None, previous: Path | None) -> RerunOffer:
    """Return what the user can do if the command cannot run again from here."""
    command = error.command if isinstance(error, MissingDirectoryError) else ""
    problem = _FOLDER_GONE if command else str(error).removeprefix(f"{trace}: ")  # the screen names it
    if before is None and previous is None:
        return RerunOffer(trace, problem=problem, command=command)
    compare = (
        () if before is None else (_compare_choice(before, "" if command else f"; it cannot run again: {problem}"),)
    )
    back = () if previous is None else (_previous_choice(previous),)
    paste = (
        (PickerItem("run again", "show the command; its directory is on another machine", value=COMMAND),)
        if command
        else ()
    )
    return RerunOffer(trace, (*compare, *back, *paste), before=before, command=command, previous=previous)


def _compare_choice(before: Path, problem: str = "") -> PickerItem:
    known = brief(before)
    ago = "" if known is None else f", {age_text(known.when, time.time())}"
    detail = f"with {before.name}{ago}; does not run the program{problem}"
    label = "what changed since the previous run?"
    return PickerItem("compare", label, detail, value=COMPARE, also="difference against earlier")


def _previous_choice(before: Path) -> PickerItem:
    detail = f"{before.name}; does not run the program"
    return PickerItem("previous run", "open the previous run", detail, value=PREVIOUS, also="back earlier")


def page_after(page: str, options: Sequence[str]) -> str:
    """Return the page to open after a run with these options: the one asked from, if they name a probe of it."""
    probes = {probe for option, probe in pairwise(options) if option == "-p"}
    return page if page and probes & {*kind_of(page).probes} else ""


def _opened_pages(pages: tuple[str, ...]) -> str:
    return f"opens {', '.join(pages)}" if pages else ""

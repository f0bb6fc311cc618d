"""Choices for rerunning the program of a trace; the screen returns the chosen one, and its caller starts the run."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

from tui_probe.errors import UsageError
from tui_probe.launcher.options import again_command
from tui_probe.pages.findings_page import all_questions, open_questions
from tui_probe.pages.views import kind_of
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.probe_files.catalogue import built_in_sets, set_within
from tui_probe.probekit.registry import probe_names_where
from tui_probe.trace.recent import find_previous_run, summarize_trace
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

SURVEY_OPTION: Final = f"-p {DEFAULT_PROBE}"
AS_BEFORE: Final = PickerItem("as before", "the same probes and options", value="")
OPTION_QUESTIONS: Final = {
    "--between": "how much time does each warp spend in the marked lines?",
    "--watchdog": "where is a kernel stuck?",
}
"""Questions that options answer; of lines once they are marked."""


def survey_choice(value: str | Callable[[], object]) -> PickerItem:
    """A line of a list for the set of probes that answers what is slow."""
    title = built_in_sets()[DEFAULT_PROBE].title
    return PickerItem(SURVEY_OPTION, title, value=value, search_words="ask run again all first look overview default")


def between_choice(value: WithoutRun | Callable[[], None]) -> PickerItem:
    """A line of a list that leads to the measurement of time between two lines of source."""
    return PickerItem(
        "time between lines",
        "--between",
        value=value,
        search_words="ask measure two source from to mark",
    )


class WithoutRun(Enum):
    """Choices for which the program does not run; the value of any other choice is options of ``run``."""

    MARK_LINES = auto()
    """Tell how to mark the lines of ``--between``."""
    COMPARE = auto()
    """Show the run against the previous one: many ask first what changed since."""
    OPEN_PREVIOUS = auto()
    """Open the previous run."""
    SHOW_COMMAND = auto()
    """Show the command, to be run on the machine of the program."""


_FOLDER_GONE: Final = "the program is not on this machine: run this command on its machine"


@dataclass(frozen=True)
class RerunOffer:
    """Choices, or the problem that prevents all of them."""

    trace: Path
    choices: tuple[PickerItem, ...] = ()
    problem: str = ""
    command: str = ""
    """Command to paste on the machine of the program, if it cannot be run here."""
    comparable_run: Path | None = None
    """The previous run of the same command with the same probe."""
    previous_run: Path | None = None
    """The previous run of the same command with any probe."""

    def request_of(
        self, choice: str | WithoutRun
    ) -> RerunRequest | OpenTrace | ComparisonRequest | CommandToPaste | str:
        """Return the request of a choice, or the hint what to do before it."""
        if isinstance(choice, str):
            return RerunRequest(self.trace, tuple(shlex.split(choice)))
        if choice is WithoutRun.OPEN_PREVIOUS and self.previous_run is not None:
            return OpenTrace(self.previous_run)
        if choice is WithoutRun.COMPARE and self.comparable_run is not None:
            return ComparisonRequest(self.comparable_run, self.trace)
        if choice is WithoutRun.SHOW_COMMAND:
            return CommandToPaste(self.command)
        return BETWEEN_HINT


def offer(trace: Path, kernel: Kernel | None, first_option: str = "") -> RerunOffer:
    """Return the questions for the program of a trace: option ``first_option`` first, then the changes since the
    previous run if there was one, the survey, and what the kernel's results leave open.

    Reads the kernel's PTX.
    """
    trace = trace.absolute()
    comparable_run, previous_run = find_previous_run(trace), find_previous_run(trace, any_probe=True)
    try:
        info, _ = recorded_run(trace, lambda info: again_command(info, shlex.split(first_option)))
    except UsageError as error:
        return _offer_without_rerun(trace, error, comparable_run, previous_run)
    first_option = first_option or _cause_option(kernel)
    compare_choices = () if comparable_run is None else (_compare_choice(comparable_run),)
    previous_choices = () if previous_run is None else (_previous_choice(previous_run),)
    survey = survey_choice(SURVEY_OPTION)
    all_probes = () if kernel is None else tuple(_all_probes_choice(kernel))
    first_questions, questions = _questions(kernel, first_option, survey)
    kernels = tuple(_other_kernel_choices(info, kernel))
    if kernel is not None and kernel.status == "excluded":
        choices = (*kernels, survey, *first_questions, *questions, *compare_choices, *previous_choices, AS_BEFORE)
    else:
        between_lines = between_choice(WithoutRun.MARK_LINES)
        main_choices = (*first_questions, *compare_choices, *all_probes, survey)
        choices = (*main_choices, *questions, between_lines, *kernels, *previous_choices, AS_BEFORE)
    return RerunOffer(trace, choices, comparable_run=comparable_run, previous_run=previous_run)


def _questions(
    kernel: Kernel | None, first_option: str, survey: PickerItem
) -> tuple[Sequence[PickerItem], Sequence[PickerItem]]:
    """Return the questions with ``first_option``, which none has if ``survey`` has it, then the other open ones."""
    kernel_questions = [] if kernel is None else open_questions(kernel, (), of_program=True)
    questions = [
        PickerItem(
            question.option,
            question.text,
            _opened_pages(question.pages),
            value=question.option,
            search_words=question.search_words,
        )
        for question in kernel_questions
    ]
    if first_option and all(item.value != first_option for item in (survey, *questions)):
        questions.append(PickerItem(first_option, _option_label(first_option), value=first_option))
    return [item for item in questions if item.value == first_option], [
        item for item in questions if item.value != first_option
    ]


def _option_label(option: str) -> str:
    """Return the question that an option of run answers."""
    labels = {question.option: question.text for question in all_questions()}
    labels |= {f"-p {name}": probe_set.title for name, probe_set in built_in_sets().items()}
    fixed = (text for start, text in OPTION_QUESTIONS.items() if option.startswith(start))
    return next(fixed, labels.get(option, "what this page shows"))


def _all_probes_choice(kernel: Kernel) -> Iterator[PickerItem]:
    """Yield the choice to launch kernels again for the probes of the run that no launch had."""
    if options := measuring_options(cast("Trace", kernel.trace)):
        question, detail = "what did the other probes of the run measure?", "each kernel with each probe of the run"
        yield PickerItem(
            options[0], question, detail, value=shlex.join(options), search_words="missing not measured unknown"
        )


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


def _other_kernel_choices(info: RunInfo, kernel: Kernel | None) -> Iterator[PickerItem]:
    """Yield, for a run that excluded kernels, the choices to probe this kernel, if it was one of these, and all."""
    if any(isinstance(info.options.get(key), str) for key in ("kernels", "filter")):
        if kernel is not None and kernel.status == "excluded":
            yield PickerItem("this kernel", "the same probes, this kernel only", value=f"-k {kernel.name}")
        yield PickerItem("all kernels", "the same probes, all kernels", value="--all-kernels")


def _offer_without_rerun(
    trace: Path, error: UsageError, comparable_run: Path | None, previous_run: Path | None
) -> RerunOffer:
    """Return what the user can do if the command cannot run again from here."""
    command = error.command if isinstance(error, MissingDirectoryError) else ""
    problem = _FOLDER_GONE if command else str(error).removeprefix(f"{trace}: ")  # the screen names it
    if comparable_run is None and previous_run is None:
        return RerunOffer(trace, problem=problem, command=command)
    choices = []
    if comparable_run is not None:
        choices.append(_compare_choice(comparable_run, "" if command else f"; it cannot run again: {problem}"))
    if previous_run is not None:
        choices.append(_previous_choice(previous_run))
    if command:
        label = "show the command; its directory is on another machine"
        choices.append(PickerItem("run again", label, value=WithoutRun.SHOW_COMMAND))
    return RerunOffer(trace, tuple(choices), comparable_run=comparable_run, command=command, previous_run=previous_run)


def _compare_choice(previous_run: Path, problem: str = "") -> PickerItem:
    run = summarize_trace(previous_run)
    age = "" if run is None else f", {age_text(run.modified_at, time.time())}"
    detail = f"with {previous_run.name}{age}; does not run the program{problem}"
    label = "what changed since the previous run?"
    return PickerItem("compare", label, detail, value=WithoutRun.COMPARE, search_words="difference against earlier")


def _previous_choice(previous_run: Path) -> PickerItem:
    detail = f"{previous_run.name}; does not run the program"
    return PickerItem(
        "previous run", "open the previous run", detail, value=WithoutRun.OPEN_PREVIOUS, search_words="back earlier"
    )


def page_after_run(page: str, options: Sequence[str]) -> str:
    """Return the page to open after a run with these options: the one asked from, if they name a probe of it."""
    probes = {probe for option, probe in pairwise(options) if option == "-p"}
    return page if page and probes & {*kind_of(page).probes} else ""


def _opened_pages(pages: tuple[str, ...]) -> str:
    return f"opens {', '.join(pages)}" if pages else ""

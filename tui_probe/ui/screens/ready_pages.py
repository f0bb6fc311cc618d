"""Screens whose pages are made from files at the start: an evaluation with its charts, imported files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.evaluation import evaluate, evaluations
from tui_probe.probekit.page_kinds import page_keys
from tui_probe.ui.help_text import PageTopic, topic_of
from tui_probe.ui.screens.further_pages import file_tabs
from tui_probe.ui.screens.lists import PickerItem
from tui_probe.ui.screens.page_opening import PageSpec
from tui_probe.ui.screens.paged import PagedScreen
from tui_probe.ui.widgets.pane import Tab

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.draw.view import View as Drawn
    from tui_probe.evals.answer import Answer
    from tui_probe.probekit.page_kinds import LazyPage, PageSet
    from tui_probe.ui.keys import Key
    from tui_probe.ui.views.view import PaneView

ANSWER_TAB = Tab("answer", "Answer", "Answer", "1")


def evaluation_choices() -> list[PickerItem]:
    """Every evaluation, with its question."""
    return [PickerItem(evaluation.name, evaluation.question, value=evaluation.name) for evaluation in evaluations()]


class EvaluationScreen(PagedScreen):
    """Evaluates traces in the background; of none, those that come with the package."""

    NO_TARGET_TEXT = "no line of this page opens a kernel"

    def __init__(self, evaluation: str, traces: Sequence[Path]) -> None:
        super().__init__([ANSWER_TAB], ANSWER_TAB.id, tabs_known=False, reading="evaluating")
        self.evaluation, self.traces = evaluation, traces
        self._answer: Answer | None = None

    def page(self, name: str) -> PageSpec | None:
        """The answer, or one of its figures."""
        if name == ANSWER_TAB.id:
            return PageSpec(name, ANSWER_TAB.title, self._evaluate)
        if self._answer is None:
            return None
        figure = self._answer.drawings[name]
        return PageSpec(name, figure.title, lambda _: figure)

    def _evaluate(self, progress: Progress) -> Drawn:
        """Evaluate the traces, in the background."""
        self._answer = evaluate(self.evaluation, list(self.traces), progress)
        return AnswerDocument(self._answer, drawn=False)

    def arrive(self, view: PaneView) -> None:
        """Add the tabs of charts, which the answer contains."""
        super().arrive(view)
        if self._answer is not None and not self.tabs_known:
            titles = {ANSWER_TAB.id: ANSWER_TAB.title} | {name: name for name in self._answer.drawings}
            keys = page_keys(titles, reserved=False)
            charts = [Tab(name, f"Figure {name}", name, keys[name]) for name in self._answer.drawings]
            self.take_tabs([ANSWER_TAB, *charts])

    def title_line(self, cells: int) -> tuple[Line, Line]:
        """The evaluation, and what it is of."""
        del cells
        trace_names = ", ".join(trace.name for trace in self.traces) or "traces that come with tui-probe"
        return ((f" {self.evaluation}", "title"), (f"  {trace_names}", "dim")), ()

    def leave(self) -> None:
        """Return to the screen before."""
        self.app.pop_screen()


class ImportedScreen(PagedScreen):
    """``q`` leads home from a file that was opened there. Where there are traces, rows lead to their kernels."""

    NO_TARGET_TEXT = "no line of this page opens a kernel"

    def __init__(self, imported: PageSet) -> None:
        tabs = file_tabs(imported.pages)
        super().__init__(tabs, tabs[0].id, tabs_known=True)
        self.held_back = False  # no screen was before it
        self.imported = imported

    def _page(self, name: str) -> LazyPage:
        return next(page for page in self.imported.pages if page.name == name)

    def page(self, name: str) -> PageSpec:
        """Made when it is first looked at."""
        page = self._page(name)
        return PageSpec(name, page.title, lambda _: page.make())

    def title_line(self, cells: int) -> tuple[Line, Line]:
        """The files."""
        del cells
        return ((f" {self.imported.title}", "title"),), ()

    @property
    def topic(self) -> PageTopic:
        """The topic of the current page: how to read it, and its keys."""
        page = self._page(self.current)
        return PageTopic(page.title, page.explanation, topic_of(self._view, page.title).keys)

    def jump_text(self, page: str) -> str:
        """Rows lead to other pages of the files, or out of them."""
        return "its trace" if page == "kernel" else page

    def is_hinted(self, key: Key) -> bool:
        """Leaving is quitting here, which has a key that works everywhere."""
        return key.id != "leave" and super().is_hinted(key)

    def leave(self) -> None:
        """Home. A press more than there is to go back from ends nothing."""
        if self.probe_app.session.from_home:
            self.app.exit()
        else:
            self.notice("this is the first screen: Ctrl-Q quits")

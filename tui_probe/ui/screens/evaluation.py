"""The screen of an evaluation: its answer, and a page for each of its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.evaluation import evaluate, evaluations
from tui_probe.probekit.page_kinds import page_keys
from tui_probe.ui.screens.lists import PickerItem
from tui_probe.ui.screens.page_opening import PageSpec
from tui_probe.ui.screens.paged import PagedScreen
from tui_probe.ui.widgets.tabs import Tab

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.draw.view import View as Drawn
    from tui_probe.evals.answer import Answer
    from tui_probe.ui.views.view import PaneView

ANSWER = Tab("answer", "Answer", "Answer", "1")


def evaluation_choices() -> list[PickerItem]:
    """Every evaluation, with its question."""
    return [PickerItem(evaluation.name, evaluation.question, value=evaluation.name) for evaluation in evaluations()]


class EvaluationScreen(PagedScreen):
    """Evaluates traces in the background; of none, those that come with the package."""

    NOWHERE = "no line of this page opens a kernel"

    def __init__(self, evaluation: str, traces: Sequence[Path]) -> None:
        super().__init__([ANSWER], ANSWER.id, known=False, reading="evaluating")
        self.evaluation, self.traces = evaluation, traces
        self._answer: Answer | None = None

    def page(self, name: str) -> PageSpec | None:
        """The answer, or one of its figures."""
        if name == ANSWER.id:
            return PageSpec(name, ANSWER.title, self._evaluate)
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
        if self._answer is not None and not self.known:
            titles = {ANSWER.id: ANSWER.title} | {name: name for name in self._answer.drawings}
            keys = page_keys(titles, reserved=False)
            charts = [Tab(name, f"Figure {name}", name, keys[name]) for name in self._answer.drawings]
            self.take_tabs([ANSWER, *charts])

    def title_line(self, cells: int) -> tuple[Line, Line]:
        """The evaluation, and what it is of."""
        del cells
        of = ", ".join(trace.name for trace in self.traces) or "traces that come with tui-probe"
        return ((f" {self.evaluation}", "title"), (f"  {of}", "dim")), ()

    def leave(self) -> None:
        """Return to the screen before."""
        self.app.pop_screen()

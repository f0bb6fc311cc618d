"""Paired drawings: one kind of view of two kernels, side by side, moved by the same commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.spans import clip, fit_line, side_by_side
from tui_probe.draw.view import Document, Drawing
from tui_probe.errors import ChoiceError
from tui_probe.pages.comparison_tables import traces_warning
from tui_probe.pages.views import kind_of, kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.page_kinds import ViewSource

GAP_CELLS: Final = 2


def drawing_names() -> tuple[str, ...]:
    """Return the views that are drawings."""
    return tuple(kind.name for kind in kinds() if kind.is_drawing)


class PairedDrawings(Drawing):
    """``baseline`` in the left half, ``candidate`` in the right one; both have the same scale of time."""

    def __init__(self, baseline: Drawing, candidate: Drawing, warning: str = "") -> None:
        self.baseline, self.candidate = baseline, candidate
        self.warning = warning
        """Say that one program failed where the other did not; "" else."""
        cycles = max((side.cycles or 0.0 for side in (baseline, candidate)), default=0.0)
        if cycles:
            baseline.stretch(cycles)
            candidate.stretch(cycles)
        self.title = f"{baseline.title} | {candidate.title}"
        self._drawn_half = 0

    @staticmethod
    def _half(width: int) -> int:
        return max(1, (width - GAP_CELLS) // 2)

    def prepare(self, width: int, height: int) -> Callable[[], None] | None:
        """Work that both have to do."""
        works = [
            work for side in (self.baseline, self.candidate) if (work := side.prepare(self._half(width), height - 1))
        ]
        if not works:
            return None

        def work_on_both() -> None:
            for work in works:
                work()

        return work_on_both

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        """Draw both titles, then both drawings."""
        half = self._drawn_half = self._half(width)
        baseline_lines, candidate_lines = (
            side.draw(half, height - 1, ascii_only=ascii_only) for side in (self.baseline, self.candidate)
        )
        titles = [((clip(f" {letter}  {drawing.title}", half), "title"),) for letter, drawing in
                  (("A", self.baseline), ("B", self.candidate))]  # fmt: skip
        return side_by_side(
            [titles[0], *baseline_lines],
            [titles[1], *(fit_line(line, half) for line in candidate_lines)],
            half,
            GAP_CELLS,
        )

    def commands(self) -> Mapping[str, str]:
        """Knowledge of either of them."""
        return {**self.candidate.commands(), **self.baseline.commands()}

    def press(self, command: str) -> str | None:
        """Run a command on the drawings that have it."""
        texts = [side.press(command) for side in (self.baseline, self.candidate) if command in side.commands()]
        return next((text for text in texts if text), None)

    def click(self, column: int, row: int) -> None:
        """The cursor of the one that is pointed at."""
        if column < self._drawn_half:
            self.baseline.click(column, row - 1)
        else:
            self.candidate.click(column - self._drawn_half - GAP_CELLS, row - 1)

    def status(self) -> list[str]:
        """Texts about the cursor of each."""
        texts: list[str] = []
        for letter, drawing in (("A", self.baseline), ("B", self.candidate)):
            parts = drawing.status()
            texts += [f"{letter} {parts[0]}", *parts[1:]] if parts else []
        return texts

    def record(self) -> Mapping[str, Any]:
        """Return the JSON record of both, with the warning."""
        return {"before": self.baseline.record(), "after": self.candidate.record(), "warning": self.warning or None}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield the rows of both, with the letter of the side."""
        for letter, drawing in (("A", self.baseline), ("B", self.candidate)):
            for number, row in enumerate(drawing.cells()):
                if number or letter == "A":
                    yield (letter if number else "side", *row)

    def plot(self, axes: Any) -> None:
        """Two pairs of axes instead of one."""
        axes.set_axis_off()
        for start, side in ((0.0, self.baseline), (0.54, self.candidate)):
            inner = axes.inset_axes((start, 0.0, 0.46, 1.0))
            side.plot(inner)
            inner.set_title(side.title)


def open_pair(name: str, baseline: ViewSource, candidate: ViewSource, progress: Progress) -> PairedDrawings:
    """Open a view of both sides. ChoiceError where one has nothing to show, or the view is a text."""
    kind = kind_of(name)
    for letter, source in (("A", baseline), ("B", candidate)):
        reason = kind.missing_reason(source)
        if reason is not None:
            raise ChoiceError(f"{letter} has no data for the page {name}: {reason}")
    views: list[View] = [
        kind.open(baseline, lambda share: progress(share / 2)),
        kind.open(candidate, lambda share: progress(0.5 + share / 2)),
    ]
    drawings = [view for view in views if not isinstance(view, Document)]
    if len(drawings) < len(views):
        raise ChoiceError(f"{name} is a text page; only drawings can be shown side by side")
    return PairedDrawings(drawings[0], drawings[1], traces_warning(baseline.trace, candidate.trace))


def shared_drawings(baseline: ViewSource, candidate: ViewSource) -> list[str]:
    """Return the names of the drawings that both sides have something for."""
    return [
        name
        for name in drawing_names()
        if all(kind_of(name).missing_reason(source) is None for source in (baseline, candidate))
    ]

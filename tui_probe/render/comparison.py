"""Two kernels, two launches or two traces against each other: each figure of both, and its change with a sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.render.figures import figures_of
from tui_probe.render.formats import as_record
from tui_probe.render.shorten import shorten
from tui_probe.render.spans import pad
from tui_probe.render.spans import width as cells_of
from tui_probe.render.table import Column, cell, fitted_cell, in_data, in_tables, layout
from tui_probe.render.views.view import Document, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.render.figures import Figure
    from tui_probe.render.spans import Line
    from tui_probe.render.views.view import Progress
    from tui_probe.trace.model import Trace

_GAP: Final = 2


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of both sides. ``kernel`` names it where several kernels are compared."""

    before: Figure
    after: Figure
    kernel: str = ""

    @property
    def change(self) -> float | None:
        """After minus before; None where one of them was not measured."""
        one, other = self.before.value, self.after.value
        return None if one is None or other is None else other - one

    @property
    def share(self) -> float | None:
        """The change in parts of the first; None where that is 0."""
        return None if self.change is None or not self.before.value else self.change / self.before.value

    @property
    def verdict(self) -> str:
        """``better`` or ``worse``; "" where it did not change or is neither."""
        if not self.change or "neither" in (self.before.better, self.after.better):
            return ""
        return "better" if (self.change < 0) == (self.before.better == "less") else "worse"

    @property
    def change_text(self) -> str:
        """``▼ -512 B``, with a sign and an arrow; ``same``; "" where nothing can be said."""
        if self.change is None:
            return ""
        if not self.change:
            return "same"
        size = self.before.show(abs(self.change))
        return f"▲ +{size}" if self.change > 0 else f"▼ -{size}"

    @property
    def share_text(self) -> str:
        """``-50.0 %``."""
        return "" if not self.share else f"{100 * self.share:+.1f} %"


FIGURE_COLUMNS: Final[tuple[Column[Change], ...]] = (
    Column("kernel", lambda c: c.kernel or None),
    Column("figure", lambda c: c.before.key, "figure", lambda c: c.before.label, False),
    Column("before", lambda c: c.before.value, "A", lambda c: c.before.text),
    Column("after", lambda c: c.after.value, "B", lambda c: c.after.text),
    Column("change", lambda c: c.change, "change", lambda c: c.change_text),
    Column("share", lambda c: c.share, "", lambda c: c.share_text),
    Column("verdict", lambda c: c.verdict or None, "", lambda c: c.verdict, False),
)
"""``share`` is the change in parts of the first; ``verdict`` is null where neither is better."""


def changes(one: Source, other: Source, progress: Progress, kernel: str = "") -> list[Change]:
    """The figures that at least one of the two has, in the order of the first."""
    before = {figure.key: figure for figure in figures_of(one, lambda share: progress(share / 2))}
    after = {figure.key: figure for figure in figures_of(other, lambda share: progress(0.5 + share / 2))}
    found = []
    for key in dict.fromkeys([*before, *after]):
        known = before.get(key) or after[key]
        pair = Change(before.get(key, _unknown(known)), after.get(key, _unknown(known)), kernel)
        if pair.before.value is not None or pair.after.value is not None:
            found.append(pair)
    return found


def _unknown(figure: Figure) -> Figure:
    return type(figure)(figure.key, figure.label, None, figure.show, figure.better)


class Comparison(Document):
    """Two kernels or launches, or the kernels that two traces have in common by name."""

    def __init__(self, heads: tuple[str, str], groups: dict[str, list[Change]], alone: dict[str, list[str]]) -> None:
        self.title = "A and B"
        self.heads = heads
        self.groups = groups
        self.alone = alone
        """Kernels that only one of two traces has, by its letter."""

    @property
    def rows(self) -> list[Change]:
        """Every figure of every kernel."""
        return [change for group in self.groups.values() for change in group]

    def lines(self, width: int) -> Sequence[Line]:
        """What is compared, a table a kernel, what cannot be compared."""
        lines: list[Line] = []
        for letter, head in zip("AB", self.heads, strict=True):
            lines.append(((f" {letter}  ", "head"), (shorten(head, width - 6), "title")))
        for kernel, group in self.groups.items():
            lines.append(())
            if kernel:
                lines.append(((f" {shorten(kernel, width - 2)}", "title"),))
                group = [change for change in group if change.change != 0]
            lines += _table(group, width) if group else [((" no figure changed", "dim"),)]
        for letter, names in self.alone.items():
            if names:
                lines += [(), ((f" only in {letter}", "head"),)]
                lines += [((f"   {shorten(name, width - 4)}", ""),) for name in names]
        return lines

    def record(self) -> dict[str, Any]:
        """Both sides and every figure."""
        before, after = self.heads
        return {
            "before": before,
            "after": after,
            "figures": [as_record(FIGURE_COLUMNS, row) for row in self.rows],
            "only_before": self.alone.get("A", []),
            "only_after": self.alone.get("B", []),
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """A row a figure."""
        data = [column for column in in_data(FIGURE_COLUMNS) if column.value is not None]
        yield [column.key for column in data]
        for row in self.rows:
            yield [column.value(row) for column in data if column.value is not None]


def _table(rows: Sequence[Change], cells: int) -> Iterator[Line]:
    shown = in_tables(FIGURE_COLUMNS)
    natural = [max(cells_of(column.title), *(cells_of(cell(column, row)) for row in rows)) for column in shown]
    columns = layout(shown, natural, cells - 1)
    gap = " " * _GAP
    yield ((" " + gap.join(pad(column.title, size, right=column.right) for column, size in columns), "head"),)
    for row in rows:
        role = {"better": "good", "worse": "warn"}.get(row.verdict, "")
        roles: dict[str, str] = {"figure": "dim", "change": role or "dim", "share": role or "dim", "verdict": role}
        spans = [(" ", "")]
        for column, size in columns:
            spans += [(fitted_cell(column, row, size), roles.get(column.key, "")), (gap, "")]
        yield tuple(spans)


def compare_sources(one: Source, other: Source, progress: Progress) -> Comparison:
    """Two kernels, or two launches."""
    return Comparison((_named(one), _named(other)), {"": changes(one, other, progress)}, {})


def _named(source: Source) -> str:
    launch = "" if source.launch is None else f", launch {source.launch.number}"
    simulated = ", simulated" if source.trace.state.simulated else ""
    return f"#{source.kernel.index} {source.kernel.demangled}{launch} of {source.trace.directory}{simulated}"


def compare_traces(one: Trace, other: Trace, progress: Progress) -> Comparison:
    """The kernels that both have by name, in the order of the first; of several of one name the n-th of each."""
    before, after = _by_name(one), _by_name(other)
    both = [key for key in before if key in after]
    groups: dict[str, list[Change]] = {}
    for place, key in enumerate(both):
        source, target = before[key], after[key]
        name = f"#{source.kernel.index} {source.kernel.demangled}"
        groups[name] = changes(source, target, _part(progress, place, len(both)), source.kernel.demangled)
    alone = {
        "A": [before[key].kernel.demangled for key in before if key not in after],
        "B": [after[key].kernel.demangled for key in after if key not in before],
    }
    return Comparison((str(one.directory), str(other.directory)), groups, alone)


def _part(progress: Progress, place: int, count: int) -> Callable[[float], None]:
    return lambda share: progress((place + share) / count)


def _by_name(trace: Trace) -> dict[tuple[str, int], Source]:
    seen: dict[str, int] = {}
    found = {}
    for kernel in trace.kernels:
        number = seen[kernel.name] = seen.get(kernel.name, -1) + 1
        found[kernel.name, number] = Source(trace, kernel)
    return found

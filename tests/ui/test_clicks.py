"""A click on a window that is scrolled selects what was drawn there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages.measured_example import write_measured
from tests.ui.desk import TestDesk, shown
from tui_probe.draw.view import Document, no_progress
from tui_probe.pages.views import kind_of
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.recent import TraceSummary
from tui_probe.ui.live.kernel_table import KernelTable
from tui_probe.ui.session import StartForm
from tui_probe.ui.views.document_view import DocumentView
from tui_probe.ui.views.form import FIELDS, FormView
from tui_probe.ui.views.recent import RecentView
from tui_probe.verdicts.kernel_snapshot import kernel_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.trace.model import Trace
    from tui_probe.ui.views.view import PaneView

NAME_CELLS = 14
"""Cells of a line that are the same with and without the cursor, and differ between all lines of a view."""


def form() -> FormView:
    view = FormView(TestDesk(), "form", StartForm())
    view.resize(80, 5)
    return view


def recent() -> RecentView:
    view = RecentView(TestDesk(), "recent", clock=20 * 60)
    view.resize(80, 12)
    view.show([TraceSummary(Path(f"/traces/{i}"), 60 * i, f"./program_{i}") for i in range(20)])
    return view


def table(trace: Trace) -> KernelTable:
    view = KernelTable(TestDesk(), "kernels", lambda: None)
    row = kernel_snapshot(trace.kernels[0], trace.state.device)
    view.resize(80, 8)
    view.show(tuple(replace(row, index=i, name=f"k{i}", demangled=f"k{i}") for i in range(40)))
    return view


def document(trace: Trace, filter_text: str = "") -> DocumentView:
    source = ViewSource(trace, trace.kernels[0])
    opened = kind_of("ptx").open(source, no_progress)
    assert isinstance(opened, Document)
    view = DocumentView(TestDesk(), "ptx", opened, source)
    view.resize(80, 9)
    view.set_filter(filter_text)
    return view


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, PaneView]:
    trace = write_measured(tmp_path_factory.mktemp("traces") / "sectors")
    return {
        "form": form(),
        "recent": recent(),
        "table": table(trace),
        "document": document(trace),
        "filtered document": document(trace, "r"),
    }


@pytest.mark.parametrize("name", ["form", "recent", "table", "document", "filtered document"])
def test_a_click_selects_the_line_that_was_drawn_there(name: str, views: Mapping[str, PaneView]) -> None:
    view = views[name]
    view.focused = True
    selected = set()
    for row in range(view.height):
        view.move_to(0)
        shown(view)
        view.move_to(-1)
        before = shown(view)
        view.click(row)
        after = cursor_text(shown(view))
        if after != cursor_text(before):
            assert after == name_in(before[row])
            selected.add(after)
    assert len(selected) >= 3


def cursor_text(lines: list[str]) -> str:
    (line,) = [line for line in lines if line.startswith("▌")]
    return name_in(line)


def name_in(line: str) -> str:
    return line[1:].strip()[:NAME_CELLS]


def test_the_text_below_the_runs_cannot_be_clicked() -> None:
    view = recent()
    directory_row = shown(view).index(" /traces/0")
    view.click(directory_row)
    assert view.place == 0


def test_asking_for_the_next_run_to_read_scrolls_nothing() -> None:
    view = recent()
    view.move_to(-1)
    before = shown(view)
    assert view.unread is not None  # as the bars of the screen do after each change
    view.click(1)
    assert cursor_text(shown(view)) == name_in(before[1])


def test_below_the_form_is_no_field() -> None:
    view = form()
    view.resize(80, 20)
    shown(view)
    view.click(15)
    assert view.field == FIELDS[0]

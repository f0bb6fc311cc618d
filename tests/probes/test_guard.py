"""Bugs of a probe's code stay with the probe: what it raises is reported as a TraceError, with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tui_probe.draw.spans import Line, plain
from tui_probe.draw.table_content import RemadeRows, TableContent
from tui_probe.draw.view import Cancelled, Document, Drawing, no_progress
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import Finding
from tui_probe.probekit.guard import ProbeCodeError, guard_probe
from tui_probe.probekit.lines import LineMeasure, LineSpec
from tui_probe.probekit.metric import Metric
from tui_probe.probekit.page_kinds import TracePage, ViewKind
from tui_probe.probekit.probe import Probe, Question


class BrokenDocument(Document):
    title = "broken"

    def lines(self, width: int) -> Sequence[Line]:  # noqa: ARG002
        raise KeyError("lines")

    def record(self) -> dict[str, Any]:
        raise KeyError("record")

    def cells(self) -> Iterator[Sequence[object]]:
        yield [1]
        raise KeyError("cells")

    def status(self) -> list[str]:
        raise KeyError("status")


class BrokenDrawing(Drawing):
    title = "broken"

    @property
    def cycles(self) -> float | None:
        raise KeyError("cycles")

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:  # noqa: ARG002
        raise KeyError("draw")

    def prepare(self, width: int, height: int) -> Any:  # noqa: ARG002
        return lambda: [][0]

    def record(self) -> dict[str, Any]:
        return {}

    def cells(self) -> Iterator[Sequence[object]]:
        return iter(())

    def plot(self, axes: Any) -> None:
        del axes


ANY: Any = None


def fails(*_: Any) -> Any:
    raise ZeroDivisionError("by zero")


def gives(value: Any) -> Any:
    return lambda *_: value


def opened(view: Any) -> Any:
    kind = ViewKind("broken", "Broken", "", gives(None), gives(view))
    (view_kind,) = guard_probe(Probe(name="p", analyse=gives(None), views=(kind,))).views
    return view_kind.open_view(ANY, no_progress)


def calls_of(probe: Probe) -> Iterator[Any]:
    """Every function that a probe has, called."""
    content = probe.pages[0].open(ANY, no_progress)
    for function in (probe.analyse, probe.launch_line, probe.notes, probe.metric_values_of):
        yield lambda function=function: function(None)
    for function in (probe.findings, probe.timeline, probe.waits, probe.views[0].open_view):
        yield lambda function=function: function(None, None)
    assert probe.lines is not None
    rows, missing, page = probe.lines.rows, probe.views[0].missing_reason, probe.pages[1]
    yield from (lambda: rows(ANY, None), lambda: missing(ANY), lambda: page.open(ANY, no_progress))
    assert content.report is not None
    assert content.slow_extra is not None
    report, slow_extra = content.report, content.slow_extra
    yield from (lambda: list(content.rows), lambda: list(report(80)), slow_extra)


def test_every_function_of_a_probe_is_guarded() -> None:
    metrics, views = (Metric("n", "n", read=fails),), (ViewKind("v", "V", "", fails, fails),)
    content = TableContent("t", "T", (), RemadeRows(fails), report=fails, slow_extra=fails)
    probe = Probe(
        name="p", analyse=fails, findings=fails, lines=LineSpec((), "", fails), timeline=fails, waits=fails,
        launch_line=fails, notes=fails, metrics=metrics, views=views,
        pages=(TracePage("t", gives(content)), TracePage("u", fails))
    )  # fmt: skip
    for call in calls_of(guard_probe(probe)):
        with pytest.raises(ProbeCodeError, match=r"^probe p: ZeroDivisionError: by zero, .*test_guard\.py:\d+$"):
            call()


@pytest.mark.parametrize("raised", [TraceError("result/0: of another probe"), Cancelled()])
def test_deliberate_message_of_a_probe_passes(raised: Exception) -> None:
    def analyse(_: Any) -> Any:
        raise raised

    with pytest.raises(type(raised)) as error:
        guard_probe(Probe(name="p", analyse=analyse)).analyse(None)  # type: ignore[arg-type]
    assert error.value is raised


def test_findings_and_lines_have_to_be_some() -> None:
    probe = guard_probe(Probe(name="p", analyse=fails, findings=gives(["words"]), lines=LineSpec((), "", gives([]))))
    assert probe.findings
    assert probe.lines
    with pytest.raises(ProbeCodeError, match=f"'words', which is not a {Finding.__name__}"):
        probe.findings(None, None)  # type: ignore[arg-type]
    with pytest.raises(ProbeCodeError, match="which is not a LineRows"):
        probe.lines.rows(None, None)  # type: ignore[arg-type]


def test_a_view_shows_its_own_error_and_gives_no_data() -> None:
    view = opened(BrokenDocument())
    assert isinstance(view, BrokenDocument)
    assert " ".join(plain(line).strip() for line in view.lines(200)).startswith("probe p: KeyError: 'lines', ")
    assert view.status() == []
    with pytest.raises(ProbeCodeError, match="'record'"):
        view.record()
    with pytest.raises(ProbeCodeError, match="'cells'"):
        list(view.cells())


def test_drawing_and_its_preparation_pass() -> None:
    view = opened(BrokenDrawing())
    assert view.cycles is None
    assert "KeyError: 'draw'" in plain(view.draw(200, 10, ascii_only=True)[0])
    with pytest.raises(ProbeCodeError, match="IndexError"):
        view.prepare(80, 24)()


def test_other_object_is_an_error() -> None:
    with pytest.raises(ProbeCodeError, match="is not a view"):
        opened(3)


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: Metric("n", "n", better="less"), "`better` of metric n is 'less'; possible values are 'lower'"),
        (lambda: Metric("n", "n", over_launches="average"), "`over_launches` of metric n is 'average'"),
        (lambda: Metric("n", "n", quantity="bytes"), "`quantity` of metric n is 'bytes'"),
        (lambda: LineMeasure("n", "total"), "`rule` of the line measure n is 'total'"),
        (lambda: LineMeasure("n", better="more"), "`better` of the line measure n is 'more'"),
        (lambda: LineSpec((LineMeasure("n"),), "m", fails), "main = 'm' is not a measure; use one of: n"),
        (lambda: Question("q", "what?", 1, "ld("), "question q: 'needs' is not a valid regular expression"),
    ],
)  # fmt: skip
def test_mistakes_in_declarations_are_reported(declare: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        declare()


def test_numbers_of_a_metric_are_numbers_of_python() -> None:
    np = pytest.importorskip("numpy")
    values = [np.int64(3), np.float32(0.5), float("nan"), float("inf"), True, None]
    read_values = [Metric("n", "n", read=gives(value)).value_in(None).value for value in values]
    assert read_values == [3, 0.5, None, None, 1, None]
    assert [type(value) for value in read_values[:2]] == [int, float]
    with pytest.raises(TypeError, match="metric n: 'many' is not a number"):
        Metric("n", "n", read=gives("many")).value_in(None)

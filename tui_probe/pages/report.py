"""The pages about a whole trace in each format, as lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_probe.draw.formats import as_json, as_markdown, as_record, csv_lines
from tui_probe.draw.spans import to_ascii
from tui_probe.draw.table import in_data, table
from tui_probe.draw.view import no_progress
from tui_probe.errors import UsageError
from tui_probe.pages.choices import REPORT_ONCE
from tui_probe.pages.head import head_lines, head_record
from tui_probe.pages.schema import NEWEST, in_schema, rows_in_schema
from tui_probe.pages.trace_pages import trace_pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.pages.choices import Format
    from tui_probe.pages.schema import Schema
    from tui_probe.probekit.kind import TracePage
    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a page, to go through as often as needed."""

    page: TracePage
    trace: Trace
    told: tuple[Progress, ...]

    def __iter__(self) -> Iterator[Any]:
        return self.page.rows(self.trace, *self.told)


def report_lines(
    trace: Trace,
    page: str = "kernels",
    form: Format = "table",
    *,
    width: int = 100,
    ascii_only: bool = False,
    schema: Schema = NEWEST,
    progress: Progress = no_progress,
) -> Iterator[str]:
    """The lines of one page; UsageError for one that there is not. JSON has the name that it was asked for by.

    Only tables are cut to ``width`` cells, and only text is turned into ASCII. ``progress`` is told how far the reading
    of results is.
    """
    content = _page(page)
    rows = _Rows(content, trace, (progress,) if content.tells else ())
    if form == "json":
        records = (in_schema(as_record(content.columns, row), content.name, schema) for row in rows)
        head = {"page": page, **head_record(trace), **(content.head(trace, *rows.told) if content.head else {})}
        return as_json(head, page, records, schema)
    if form == "csv":
        return csv_lines(rows_in_schema(_cells(rows), content.name, schema))
    lines = _markdown(rows) if form == "md" else _text(rows, width)
    return map(to_ascii, lines) if ascii_only else lines


def page_names() -> tuple[str, ...]:
    """The pages of a trace: those of every trace, then those of probes."""
    return tuple(page.name for page in trace_pages())


def _page(name: str) -> TracePage:
    found = next((page for page in trace_pages() if page.name == REPORT_ONCE.get(name, name)), None)
    if found is None:
        raise UsageError(f"a trace has no page {name!r}; it has {', '.join(page_names())}")
    return found


def _cells(rows: _Rows) -> Iterator[Sequence[object]]:
    """The headings, and a row of values each."""
    data = [column for column in in_data(rows.page.columns) if not column.nested]
    yield [column.key for column in data]
    for row in rows:
        yield [column.value(row) for column in data if column.value is not None]


def _markdown(rows: _Rows) -> Iterator[str]:
    trace, page = rows.trace, rows.page
    yield "```text"
    yield from head_lines(trace)
    yield "```"
    yield ""
    columns = page.columns if page.table is None else page.table(trace)
    yield from as_markdown(columns, rows)


def _text(rows: _Rows, width: int) -> Iterator[str]:
    trace, page = rows.trace, rows.page
    if page.headed:
        yield from head_lines(trace, width)
        yield ""
    if page.lines is None:
        yield from table(page.columns, rows, width)
    else:
        yield from page.lines(trace, width, *rows.told)

"""The pages of a report in each format, as lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.formats import as_csv, as_json, as_markdown, as_record
from tui_probe.draw.spans import to_ascii
from tui_probe.draw.table import Column, table
from tui_probe.errors import ChoiceError
from tui_probe.pages.choices import RENAMED
from tui_probe.pages.findings.report import FINDING_COLUMNS, finding_rows, summary_head, summary_lines
from tui_probe.pages.head import head_lines, head_record
from tui_probe.pages.kernel_report import KERNEL_COLUMNS
from tui_probe.pages.launch_report import LAUNCH_COLUMNS, launch_rows
from tui_probe.pages.log_report import LOG_COLUMNS, log_rows
from tui_probe.pages.range_report import RANGE_COLUMNS, range_lines, range_rows
from tui_probe.pages.results_report import FIGURE_COLUMNS, figure_rows, page_lines
from tui_probe.probekit.registry import all_probes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.pages.choices import Format
    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class _Content:
    """What a page shows: its columns, and its rows anew each time. ``lines`` is its text where that is no table."""

    columns: Sequence[Column[Any]]
    rows: Callable[[Trace], Iterator[Any]]
    lines: Callable[[Trace, int], Iterator[str]] | None = None
    headed: bool = True
    head: Callable[[Trace], dict[str, Any]] = lambda _: {}
    """What else the head of its JSON says."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a page, to go through as often as needed."""

    content: _Content
    trace: Trace

    def __iter__(self) -> Iterator[Any]:
        return self.content.rows(self.trace)


_CONTENTS: Final[dict[str, _Content]] = {
    "kernels": _Content(KERNEL_COLUMNS, lambda trace: iter(trace.kernels)),
    "summary": _Content(FINDING_COLUMNS, finding_rows, summary_lines, head=summary_head),
    "launches": _Content(LAUNCH_COLUMNS, launch_rows),
    "results": _Content(FIGURE_COLUMNS, figure_rows, page_lines),
    "ranges": _Content(RANGE_COLUMNS, range_rows, range_lines),
    "events": _Content(LOG_COLUMNS, log_rows, lambda trace, _: (row.text for row in log_rows(trace)), headed=False),
}


def page_names() -> tuple[str, ...]:
    """What ``tui-probe report --page`` can be asked for: the pages of every trace, then those of probes."""
    return (*_CONTENTS, *_of_probes())


def _of_probes() -> dict[str, _Content]:
    pages = [page for probe in all_probes() for page in probe.pages]
    return {page.name: _Content(page.columns, page.rows, page.lines) for page in pages}


def report_lines(
    trace: Trace, page: str = "kernels", form: Format = "table", *, width: int = 100, ascii_only: bool = False
) -> Iterator[str]:
    """The lines of one page; ChoiceError for one that there is not.

    Only tables are cut to ``width`` cells, and only text is turned into ASCII.
    """
    name = RENAMED.get(page, page)
    content = _CONTENTS.get(name) or _of_probes().get(name)
    if content is None:
        raise ChoiceError(f"there is no page {page!r}; there are {', '.join(page_names())}")
    if form == "json":
        records = (as_record(content.columns, row) for row in content.rows(trace))
        return as_json({"page": page, **head_record(trace), **content.head(trace)}, page, records)
    if form == "csv":
        return as_csv(content.columns, content.rows(trace))
    lines = _markdown(trace, content) if form == "md" else _text(trace, content, width)
    return map(to_ascii, lines) if ascii_only else lines


def _markdown(trace: Trace, content: _Content) -> Iterator[str]:
    yield "```text"
    yield from head_lines(trace)
    yield "```"
    yield ""
    yield from as_markdown(content.columns, content.rows(trace))


def _text(trace: Trace, content: _Content, width: int) -> Iterator[str]:
    if content.headed:
        yield from head_lines(trace, width)
        yield ""
    if content.lines is None:
        yield from table(content.columns, _Rows(content, trace), width)
    else:
        yield from content.lines(trace, width)

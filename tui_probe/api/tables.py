"""Sequences that show themselves as tables: text for ``repr``, HTML for notebooks; findings are one."""

from __future__ import annotations

from abc import abstractmethod
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.table import Column, cell, in_tables, table
from tui_probe.verdicts.kernel_findings import KernelFinding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_ROWS: Final = 20
"""Rows that are shown; how many more there are is said below them."""
_CELLS: Final = 88


class TableSequence:
    """A sequence that shows itself as a table. Subclasses say which columns and rows it has."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _columns(self) -> Sequence[Column[Any]]:
        """Return the columns; those with a text are shown."""

    @abstractmethod
    def _shown_rows(self) -> Iterator[Any]:
        """Return all rows, made as they are asked for."""

    def _first_rows(self) -> list[Any]:
        return list(islice(self._shown_rows(), MAX_ROWS))

    def _more_text(self) -> str:
        return f"… and {len(self) - MAX_ROWS} more" if len(self) > MAX_ROWS else ""

    def __repr__(self) -> str:
        if not len(self):
            return f"<no {type(self).__name__.lower()}>"
        return "\n".join(
            [*table(self._columns(), self._first_rows(), _CELLS), *([self._more_text()] if self._more_text() else [])]
        )

    def _repr_html_(self) -> str:
        """Return a table for notebooks; what is in a trace is escaped."""
        columns = in_tables(self._columns())
        head = "".join(f"<th>{escape(column.title)}</th>" for column in columns)
        rows = ("".join(f"<td>{escape(cell(column, row))}</td>" for column in columns) for row in self._first_rows())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        more_html = f"<p>{self._more_text()}</p>" if self._more_text() else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more_html}"


def _source_text(finding: KernelFinding) -> str:
    """Return ``store.cu:7``; "" for a finding about no line."""
    source = finding.source
    return "" if source is None else f"{source.file}:{source.line}"


def _kernel_name(finding: KernelFinding) -> str:
    return finding.kernel.demangled


COLUMNS: Final[Sequence[Column[KernelFinding]]] = (
    Column("severity", lambda finding: finding.severity, "severity", lambda finding: finding.severity, right=False),
    Column("kernel", _kernel_name, "kernel", _kernel_name, right=False, narrow=24),
    Column("claim", lambda finding: finding.claim, "finding", lambda finding: finding.claim, right=False, rank=1),
    Column("location", _source_text, "line", _source_text, right=False),
)


class Findings(list[KernelFinding], TableSequence):
    """Findings, the most valuable first."""

    def _columns(self) -> Sequence[Column[Any]]:
        return COLUMNS

    def _shown_rows(self) -> Iterator[KernelFinding]:
        return iter(self)

    __repr__ = TableSequence.__repr__

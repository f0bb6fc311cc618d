"""Findings of a trace or a kernel: a list that shows itself as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.api.tables import TableSequence
from tui_probe.draw.table import Column
from tui_probe.verdicts.kernel_findings import KernelFinding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def _place(finding: KernelFinding) -> str:
    """``store.cu:7``; "" for a finding about no line."""
    source = finding.source
    return "" if source is None else f"{source.file}:{source.line}"


def _kernel_name(finding: KernelFinding) -> str:
    return finding.kernel.demangled


COLUMNS: Final[Sequence[Column[KernelFinding]]] = (
    Column("severity", lambda finding: finding.severity, "severity", lambda finding: finding.severity, False),
    Column("kernel", _kernel_name, "kernel", _kernel_name, False, 0, 24),
    Column("claim", lambda finding: finding.claim, "finding", lambda finding: finding.claim, False, 1),
    Column("location", _place, "line", _place, False),
)


class Findings(list[KernelFinding], TableSequence):
    """Findings, the most valuable first."""

    def _columns(self) -> Sequence[Column[Any]]:
        return COLUMNS

    def _shown_rows(self) -> Iterator[KernelFinding]:
        return iter(self)

    __repr__ = TableSequence.__repr__

"""The numbers of a launch's accesses: of the table of instructions, or of the mere count where that takes too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.counts import ratio
from tui_probe.probekit.metric import Metric, figures_of, where_known

from .table import AccessTable

if TYPE_CHECKING:
    from tui_probe.probekit.metric import Figure

    from .table import AccessCount


def _sectors_per_request(found: AccessTable) -> float | None:
    return ratio(found.sectors, found.requests)


def _worst_line(found: AccessTable) -> int | None:
    return found.worst.line if found.worst else None


def _worst_value(found: AccessTable) -> float | None:
    return found.worst.sectors_per_request if found.worst else None


def _per_thread(found: AccessCount) -> float | None:
    return None if found.accesses is None else ratio(found.accesses, found.threads)


def _not_all(found: AccessTable, value: Any) -> bool:
    del value
    return found.kept != found.accesses


_TABLE: Final = (
    Metric("accesses", "accesses"),
    Metric("kept", "kept", shown=_not_all),
    Metric("requests", "requests", better="lower"),
    Metric("sectors", "sectors", better="lower"),
    Metric(
        "sectors_per_request", "sectors per request", better="lower", over_launches="mean", read=_sectors_per_request
    ),
    Metric("footprint", "touched", "B", over_launches="mean", quantity="footprint", shown=where_known, page="dmat"),
    Metric(
        "worst_line", "most per request at PTX line", place=True, over_launches="none", read=_worst_line,
        shown=where_known,
    ),
    Metric(
        "worst_sectors_per_request", "with", better="lower", over_launches="largest", read=_worst_value,
        shown=where_known,
    ),
)  # fmt: skip
_COUNT: Final = (
    Metric("accesses", "accesses"),
    Metric("accesses_per_thread", "per thread", over_launches="mean", read=_per_thread),
    Metric("capacity", "records per thread", over_launches="largest"),
)
METRICS: Final = (*_TABLE, *_COUNT[1:])


def figures(found: AccessTable | AccessCount) -> tuple[Figure, ...]:
    """Those that there are."""
    return figures_of(_TABLE if isinstance(found, AccessTable) else _COUNT, found)

"""Which pages there are of imported files. Imports nothing heavy."""

from __future__ import annotations

from typing import Final, Literal

NcuPage = Literal["kernels", "metrics", "traffic", "sectors", "critical", "averages", "lines", "sass"]
NCU_PAGES: Final[tuple[NcuPage, ...]] = (
    "kernels", "metrics", "traffic", "sectors", "critical", "averages", "lines", "sass",
)  # fmt: skip
NsysPage = Literal["totals", "kernels", "ranges", "gaps", "timeline", "sums"]
NSYS_PAGES: Final[tuple[NsysPage, ...]] = ("totals", "kernels", "ranges", "gaps", "timeline", "sums")

"""Names of the pages that are there whatever probes there are. None of a probe's own pages may be called so."""

from __future__ import annotations

from typing import Final

FIXED: Final = ("summary", "ptx", "diff", "sass", "process", "launches")
"""Pages of a kernel whose number is the same for every kernel."""
SHARED: Final = ("lines", "timeline", "latency", "results", "source", "probe", "explain")
"""Pages of a kernel that several probes fill."""
OF_TRACE: Final = ("kernels", "summary", "launches", "results", "ranges", "graphs", "events")
"""Pages of a whole trace."""
TAKEN: Final = frozenset((*FIXED, *SHARED, *OF_TRACE))

"""Names of the pages that are there whatever probes there are. None of a probe's own pages may be called so."""

from __future__ import annotations

from typing import Final

FIXED: Final = ("summary", "ptx", "diff", "sass", "process", "launches")
"""Pages of a kernel whose number is the same for every kernel."""
SHARED: Final = ("lines", "timeline", "latency", "results", "source", "probe", "explain")
"""Pages of a kernel that several probes fill."""
_NUMBERED: Final = (*FIXED, "lines", "timeline", "source")
_UNNUMBERED: Final = ("results", "probe", "explain")
OWN_NUMBER: Final = 10
"""Pages that only some probes have share this number: whatever probe ran, what it alone shows is behind one key."""
OF_TRACE: Final = ("kernels", "summary", "launches", "results", "ranges", "graphs", "events")
"""Pages of a whole trace."""
TAKEN: Final = frozenset((*FIXED, *SHARED, *OF_TRACE))


def number_of(name: str) -> int:
    """The number of a page of a kernel, the same whatever probe ran; 0 for a page without one."""
    if name in _UNNUMBERED:
        return 0
    return _NUMBERED.index(name) + 1 if name in _NUMBERED else OWN_NUMBER

"""What Nsight Compute counted of the kernels of a trace, for the verdict on what limits them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.nsight.analysis.kernel_names import function_of
from tui_probe.nsight.analysis.traffic import bytes_of
from tui_probe.pages.limits import Counters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.ncu_table import NcuTable
    from tui_probe.trace.model import Kernel


def counters_of(table: NcuTable) -> Callable[[Kernel], Counters | None]:
    """For a kernel of a trace what the table has of the same kernel, by its name or its function.

    Bytes are means over launches; None where the table does not have the kernel.
    """
    dram, l2 = (bytes_of(table, level).values for level in ("dram", "l2"))
    launches: defaultdict[str, list[int]] = defaultdict(list)
    for position, launch in enumerate(table.launches):
        for name in {launch.kernel, function_of(launch.kernel)}:
            launches[name].append(position)

    def counted(kernel: Kernel) -> Counters | None:
        names = (kernel.name, kernel.demangled, function_of(kernel.demangled))
        rows = next((launches[name] for name in names if name in launches), [])
        found = Counters(_mean(dram, rows), _mean(l2, rows))
        return None if found == Counters() else found

    return counted


def _mean(values: NDArray[np.float64], rows: Sequence[int]) -> float | None:
    known = values[list(rows)]
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else None

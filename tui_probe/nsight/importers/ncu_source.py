"""Counters of single instructions in a report of Nsight Compute: metrics whose instances are addresses of code.

inst_executed                              warps that executed the instruction
memory_l2_theoretical_sectors_global       32-byte sectors of its global accesses; ``…_ideal``: the fewest
smsp__pcsamp_warps_issue_stalled_REASON    samples in which a warp waited there
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tui_probe.nsight.importers.ncu_table import Instruction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tui_probe.nsight.importers.ncu_package import Action, Value

EXECUTED: Final = "inst_executed"
SECTORS: Final = "memory_l2_theoretical_sectors_global"
IDEAL: Final = "memory_l2_theoretical_sectors_global_ideal"
_STALLED: Final = "smsp__pcsamp_warps_issue_stalled_"
_NOT_ISSUED: Final = "_not_issued"
"""The same samples once more, without those in which the warp issued."""


def instructions_of(action: Action, launch: int) -> list[Instruction]:
    """The instructions of one launch that any of the counters knows, in the order of the code."""
    counts = {name: _by_address(action, name) for name in (EXECUTED, SECTORS, IDEAL)}
    stalls: dict[int, dict[str, float]] = defaultdict(dict)
    for name in action.metric_names():
        if name.startswith(_STALLED) and not name.endswith(_NOT_ISSUED):
            for address, samples in (_by_address(action, name) or {}).items():
                if samples:
                    stalls[address][name.removeprefix(_STALLED)] = samples
    addresses = sorted({*stalls, *(address for values in counts.values() if values for address in values)})
    return [
        _instruction(action, launch, address, addresses[0], counts, stalls.get(address, {})) for address in addresses
    ]


def _instruction(
    action: Action,
    launch: int,
    address: int,
    first: int,
    counts: Mapping[str, Mapping[int, float] | None],
    stalls: Mapping[str, float],
) -> Instruction:
    executed, sectors, ideal = (
        None if (values := counts[name]) is None else values.get(address) for name in (EXECUTED, SECTORS, IDEAL)
    )
    place = action.source_info(address)
    file, line = (None, None) if place is None else (str(place.file_name()), int(place.line()))
    text = " ".join((action.sass_by_pc(address) or "").split())
    return Instruction(launch, address - first, text, file or None, line or None, executed, sectors, ideal, stalls)


def _by_address(action: Action, name: str) -> dict[int, float] | None:
    """The values of a metric by the address of their instruction; None if it was not collected by instruction."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.num_instances() or not metric.has_correlation_ids():
        return None
    return dict(_pairs(metric, metric.correlation_ids()))


def _pairs(metric: Value, addresses: Value) -> Iterator[tuple[int, float]]:
    for i in range(metric.num_instances()):
        address, value = addresses.value(i), metric.value(i)
        if isinstance(address, int | float) and isinstance(value, int | float):
            yield int(address), float(value)

"""Texts on the numbers of probed launches, sampled blocks and kept records."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.map_records import Sample
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.trace.results import Result

DETAIL_ADVICE: Final = "run with --detail"
"""Advice for a reduced result that does not have the requested value."""


def probed_launches_text(launches: int, probed: int) -> str:
    """Return ``12 of 6 060 launches probed`` if only some were, else ``8 launches (8 probed)``."""
    if 0 < probed < launches:
        return f"{units.count(probed)} of {units.counted(launches, 'launch')} probed"
    return f"{units.counted(launches, 'launch')} ({units.count(probed)} probed)"


def launches_text(launches: int, probed: int) -> str:
    """Return ``12 of 6 060 launches probed`` if only some were, else ``8 launches``."""
    return probed_launches_text(launches, probed) if 0 < probed < launches else units.counted(launches, "launch")


def status_word(status: str, launches: int, probed: int, results: int) -> str:
    """Return the status of a kernel; ``unprobed`` if it was prepared, but none of its launches had the probe."""
    return "unprobed" if status == "probed" and launches and not probed and not results else status


def launch_count_text(launches: int, probed: int) -> str:
    """Return ``12 of 6 060`` if only some were probed, else the number of launches."""
    return f"{units.count(probed)} of {units.count(launches)}" if 0 < probed < launches else units.count(launches)


def short_launch_count_text(launches: int, probed: int) -> str:
    """Format the counts in up to nine cells: ``12/6.1k``."""
    launch_count = units.short_count(launches)
    return f"{units.short_count(probed)}/{launch_count}" if 0 < probed < launches else launch_count


def unlisted_launches_text(kernel: Kernel) -> str:
    """Return a note that some launches of a kernel have no lines of their own in the list; "" if all have."""
    unlisted = kernel.launches - kernel.launches_recorded
    if unlisted <= 0:
        return ""
    recorded = units.count(kernel.launches_recorded)
    return f"{recorded} of {units.counted(kernel.launches, 'launch')}; the other launches are only counted"


def unrecorded_launch_reason(trace: Trace, number: int) -> str | None:
    """Return why launch ``number`` has no record, with the recorded launches next to it; None if it has one."""
    from tui_probe.trace.launches import CAPTURED  # brings NumPy, which counts do not need

    unprobed = trace.unprobed.find(number)
    if unprobed is None:
        return None
    kernel = None if unprobed.kernel is None else trace.kernels.get(unprobed.kernel)
    of_kernel = "" if kernel is None else f" of kernel #{kernel.index}"
    if unprobed.reason.code == CAPTURED:
        return f"launch {number}{of_kernel} was captured into a CUDA graph and ran only in replays of this graph"
    neighbours = [] if kernel is None else _recorded_neighbours(trace, kernel, number)
    advice = (
        f"; launches recorded at the same time: {' and '.join(f'@{other}' for other in neighbours)}"
        if neighbours
        else ""
    )
    return f"launch {number}{of_kernel} was counted, not recorded ({unprobed.reason.text}){advice}"


def _recorded_neighbours(trace: Trace, kernel: Kernel, number: int) -> list[int]:
    """Return the numbers of the recorded launches of the kernel before and after a launch."""
    numbers = [launch.number for launch in (trace.launches[row] for row in kernel.rows) if launch.number is not None]
    earlier_numbers = [other for other in numbers if other < number]
    later_numbers = [other for other in numbers if other > number]
    return [*([max(earlier_numbers)] if earlier_numbers else []), *([min(later_numbers)] if later_numbers else [])]


def record_counts_text(result: Result) -> str:
    """Return the counts of each map: ``kept 96 of 4 096 records; 12 of 16 slots written``; "" if the file has none."""
    sample = () if result.sample is None else (sampled_blocks_text(result.sample),)
    return "; ".join((*_map_texts(result), *sample))


def sampled_blocks_text(sample: Sample) -> str:
    """Return ``sampled 64 of 1 024 blocks, one in 16``: all values of such a launch cover only these blocks."""
    blocks, total = sample.blocks, units.counted(prod(sample.grid), "block")
    if sample.resident:
        numbers = f"block {blocks.start}" if len(blocks) == 1 else f"blocks {blocks.start} to {blocks[-1]}"
        return f"{numbers} of {total}; when the watchdog read them, these blocks were running or had ended"
    if len(blocks) == 1:
        return f"sampled block {blocks.start} of {total}"
    selection = f"{blocks.start} to {blocks[-1]}" if blocks.step == 1 else f"one in {units.count(blocks.step)}"
    return f"sampled {units.count(len(blocks))} of {total}, {selection}"


def _map_texts(result: Result) -> Iterator[str]:
    for index, section in enumerate(result.map_records):
        attempts, totals = result.attempts(index), result.totals(index)
        if attempts is not None and totals is not None:
            unknown = int((attempts < 0).sum())
            unknown_text = f" (unknown for {units.counted(unknown, 'slot')})" if unknown else ""
            yield f"kept {units.count(totals[0])} of {units.counted(totals[1], 'record')}{unknown_text}"
        elif section.kind == "marked":
            written_slots = result.written_mask(index)
            if written_slots is not None:
                yield f"{units.count(int(written_slots.sum()))} of {units.counted(written_slots.size, 'slot')} written"
        elif section.kind == "reduced":
            yield _reduced_text(result, index)


def _reduced_text(result: Result, index: int) -> str:
    """Return ``kept one record per block``, with the number of blocks without one."""
    reduced = result.reduced(index, f"V{result.map_records[index].record_bytes}")
    if reduced is None or reduced.group == "launch":
        return "kept one record for the launch"
    missing = int((~reduced.saved).sum())
    text = f"kept one record per {reduced.group}"
    if not missing:
        return text
    return f"{text}; no record for {units.count(missing)} of {units.counted(reduced.saved.size, reduced.group)}"

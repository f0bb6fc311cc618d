"""The block schedule of a launch as text: one line, and a table of its SMs with a bar for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.slots import PARTS
from tui_probe.draw import units
from tui_probe.draw.spans import pad, width

if TYPE_CHECKING:
    from .analysis import BlockSchedule

RUNNING, SCHEDULING, IDLE = "█", "▒", "░"
LEGEND: Final = f"{RUNNING} running, {SCHEDULING} scheduling, {IDLE} filling and emptying"
_COLUMNS: Final = ("SM", "blocks", "slots", *PARTS.values())
_SHORTEST_BAR: Final = 10


def schedule_line(schedule: BlockSchedule) -> str:
    """``64 blocks, running 120 cycles per slot, scheduling 0``, and what it leaves out."""
    counts = (
        (schedule.warps_missing, "warp", "without a record left out"),
        (schedule.blocks_missing, "block", "without a record left out"),
        (schedule.blocks_astray, "block", "that changed SM left out"),
    )
    left_out = [f"{units.counted(count, noun)} {why}" for count, noun, why in counts if count]
    running, scheduling = (units.count(round(cycles)) for cycles in (schedule.running, schedule.scheduling))
    words = f"{units.counted(schedule.blocks, 'block')}, running {running} cycles per slot, scheduling {scheduling}"
    return "; ".join([words, *left_out])


def sm_lines(schedule: BlockSchedule, cells: int) -> list[str]:
    """One line per SM: blocks, slots, cycles per slot, and a bar of these on the scale of the SM that took longest."""
    rows = [
        [f"{number}" for number in numbers[:3]] + [f"{cycles:.0f}" for cycles in numbers[3:]]
        for numbers in zip(
            schedule.sm.tolist(),
            schedule.sm_blocks.tolist(),
            schedule.sm_slots.tolist(),
            schedule.sm_running.tolist(),
            schedule.sm_scheduling.tolist(),
            schedule.sm_ramp.tolist(),
            schedule.sm_tail.tolist(),
            strict=True,
        )
    ]
    widths = [max(width(row[i]) for row in [list(_COLUMNS), *rows]) for i in range(len(_COLUMNS))]
    room = cells - sum(widths) - 2 * len(widths)
    longest = float(schedule.sm_span.max())
    lines = [_joined(_COLUMNS, widths)]
    idle = schedule.sm_ramp + schedule.sm_tail
    for row, *parts in zip(rows, schedule.sm_running, schedule.sm_scheduling, idle, strict=True):
        drawn = bar([float(part) for part in parts], longest, room) if room >= _SHORTEST_BAR else ""
        lines.append(f"{_joined(row, widths)}  {drawn}".rstrip())
    return lines


def bar(parts: list[float], whole: float, cells: int) -> str:
    """Running, scheduling and idle cycles one after another, ``whole`` cycles being all ``cells``.

    Ends are rounded, not lengths, so that the whole bar is as long as the sum asks for.
    """
    drawn, total, begin = "", 0.0, 0
    for part, sign in zip(parts, (RUNNING, SCHEDULING, IDLE), strict=True):
        total += part
        end = round(total / whole * cells) if whole else 0
        drawn += sign * (end - begin)
        begin = end
    return drawn


def sm_record(schedule: BlockSchedule) -> dict[str, list[float]]:
    """The SMs as data, one list per SM for each figure; cycles are means over the slots of an SM."""
    return {
        "sm": schedule.sm.tolist(),
        "blocks": schedule.sm_blocks.tolist(),
        "slots": schedule.sm_slots.tolist(),
        "running": schedule.sm_running.tolist(),
        "scheduling": schedule.sm_scheduling.tolist(),
        "ramp": schedule.sm_ramp.tolist(),
        "tail": schedule.sm_tail.tolist(),
    }


def _joined(texts: list[str] | tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(pad(text, cells, right=True) for text, cells in zip(texts, widths, strict=True))

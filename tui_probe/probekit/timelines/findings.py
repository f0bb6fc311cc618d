"""What a timeline shows at a glance, in words: its tail, and SMs that ran nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.timeline import Timeline

_MUCH: Final = 0.05
"""The part of a launch from which on what a tail costs stands out."""


def tail(timeline: Timeline, asks: str) -> Iterator[Finding]:
    """The end of a launch, where SMs run out of blocks. ``asks`` is the question whose answer tells why."""
    found, span = timeline.tail(), timeline.span
    if found is None or not found.cycles or not span:
        return
    words = f"SMs run out of blocks for the last {share(found.cycles, span)} of the launch,"
    words += f" SM {found.last_sm} last: {share(found.lost, 1)} of all SM time is idle there"
    much = found.lost > _MUCH
    values = {"tail_share": found.cycles / span, "lost_share": found.lost, "tail_start": found.start}
    yield Finding(
        "tail", "tail", words, "timeline", stands_out=much, asks=asks if much else "", values=values,
        block=found.last_block, sm=found.last_sm, time=found.start,
    )  # fmt: skip


def idle_sms(timeline: Timeline) -> Iterator[Finding]:
    """SMs that no block came to; of a sample of blocks nothing can be said."""
    idle = timeline.idle_sms
    if idle and timeline.sample is None:
        words = f"{len(idle)} of {units.counted(len(timeline.sms), 'SM')} ran no block"
        values = {"idle_sms": len(idle), "sms": len(timeline.sms)}
        yield Finding("idle_sms", "idle SMs", words, "timeline", stands_out=True, values=values, sm=idle[0])

# ruff: noqa: N801
"""One record per warp from the lanes that take a branch, and one per thread."""

from tui_probe.dsl import Map, lane, probe, u32


@Map(level="warp")
class odd:
    lane: u32
    number: u32


@Map(level="thread")
class every:
    lane: u32


@probe(pos="kernel", level="warp")
def warps() -> None:
    if lane() % 8 == 5:
        odd.save(lane(), 1)
    elif lane() > 100:
        odd.save(0, 2)


@probe(pos="kernel", level="thread")
def threads() -> None:
    every.save(lane())

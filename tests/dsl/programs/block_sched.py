# ruff: noqa: N801
"""Block scheduling.

Measures: start clock, cycles from start to end, and SM of each warp
Unit: SM clock cycles
Cost: one 16-byte store per warp; one register in the whole kernel
"""

from tui_probe.dsl import Map, clock, clock32, cuid, probe, u32, u64

CALLBACK = "block_sched"


@Map(level="warp", type="array", size=16, cap=1)
class block_sched:
    start: u64
    elapsed: u32
    smid: u32


begin: u32 = 0


@probe(pos="kernel", level="warp", before=True)
def enter() -> None:
    global begin
    begin = clock32()


@probe(pos="kernel", level="warp")
def leave() -> None:
    block_sched.locate()
    end = clock()
    elapsed: u32 = end - begin
    block_sched.save(end - elapsed, elapsed, cuid())

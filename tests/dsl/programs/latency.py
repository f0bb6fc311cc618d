# ruff: noqa: N801
"""Cycles that the longest load took, and how many loads there were."""

from tui_probe.dsl import Map, clock32, probe, u32


@Map(level="thread")
class longest:
    cycles: u32
    loads: u32


start: u32 = 0
cycles: u32 = 0
loads: u32 = 0


@probe(pos="ld.global", level="thread", before=True)
def before_load() -> None:
    global start
    start = clock32()


@probe(pos="ld.global", level="thread")
def after_load() -> None:
    global cycles, loads
    taken: u32 = clock32() - start
    cycles = taken if taken > cycles else cycles
    loads += 1


@probe(pos="kernel", level="thread")
def leave() -> None:
    longest.save(cycles, loads)

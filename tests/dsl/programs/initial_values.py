# ruff: noqa: N801
"""Registers have the values that the file gives them."""

from tui_probe.dsl import Map, probe, u32, u64

BASE = 1 << 40

counter: u64 = BASE + 7
low: u32 = -1
big: u64 = -2
unread: u64 = 5


@Map(level="thread", size=24)
class values:
    counter: u64
    low: u32
    big: u64


@probe(pos="st.global")
def store() -> None:
    global counter, low
    counter += 1
    low += 3


@probe(pos="kernel")
def leave() -> None:
    values.save(counter, low, big)

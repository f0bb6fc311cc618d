# ruff: noqa: A004, N801
"""Bytes that each thread moves from and to global memory."""

from tui_probe.dsl import Map, bytes, probe, u32, u64


@Map(level="thread")
class moved:
    loaded: u64
    stored: u32


loaded: u64 = 0
stored: u32 = 0


@probe(pos="ld.global", level="thread", before=True)
def load() -> None:
    global loaded
    loaded += bytes


@probe(pos="st.global", level="thread", before=True)
def store() -> None:
    global stored
    stored += bytes


@probe(pos="kernel", level="thread")
def leave() -> None:
    moved.save(loaded, stored)

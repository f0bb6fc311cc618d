# ruff: noqa: N801
"""Names that PTX has a meaning for, or that functions use with different types."""

from tui_probe.dsl import Map, addr, lane, probe, u32, u64


@Map(level="thread", size=24)
class named:
    tid: u64
    v0: u64
    clock64: u32


total: u64 = 0


@probe(pos="st.global", before=True)
def store() -> None:
    global total
    tid = addr
    clock64 = tid + 1
    total = clock64 - tid


@probe(pos="kernel")
def leave() -> None:
    tid = lane()
    v0 = tid + 1
    clock64: u32 = v0 * 2
    v0_2 = total + v0
    named.save(tid, v0_2, clock64)

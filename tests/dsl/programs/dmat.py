# ruff: noqa: N801
"""Time and address of each access to global memory."""

from tui_probe.dsl import Map, addr, clock, probe, u64


@Map(level="thread", type="array", size=16, cap=4)
class dmat:
    time: u64
    address: u64


@probe(pos="ld.global:st.global", level="thread", before=True)
def access() -> None:
    dmat.save(clock(), addr)

# ruff: noqa: N801
"""Accesses by what is in the address, each counted and every second one kept."""

from tui_probe.dsl import Map, addr, lane, probe, u32, u64

LINE = 4 * 32


@Map(level="thread", cap=8)
class kept:
    number: u32
    line: u64
    kind: u32


number: u32 = 0


@probe(pos="ld.global:st.global", before=True)
def access() -> None:
    global number
    within = addr % LINE
    if within < 32:
        kind = 1
    elif within >= 96 or lane() == 9:
        kind = 2
    else:
        kind = 3
    if number % 2 == 0:
        kept.save(number, addr // LINE, kind)
    number += 1

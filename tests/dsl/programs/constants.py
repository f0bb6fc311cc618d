# ruff: noqa: N801, PIE790, SIM108
"""Constants that are decided when the probe is compiled."""

from tui_probe.dsl import Map, lane, probe, u32

DETAIL = 2
ROWS = (DETAIL << 3) - 0b100
LAST = ROWS * 2 // 5 % 3 if DETAIL > 1 else 9


@Map(level="thread")
class numbers:
    rows: u32
    last: u32
    chosen: u32


@probe(pos="kernel")
def leave() -> None:
    if DETAIL >= 2 and ROWS != 4:
        chosen = 10 + (ROWS if LAST else 0)
    else:
        chosen = lane()
    pass
    numbers.save(ROWS, LAST, chosen)

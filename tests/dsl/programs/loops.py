# ruff: noqa: N801
"""A checksum of the thread's number in its warp, by loops."""

from tui_probe.dsl import Map, lane, probe, u32, u64

ROUNDS = 3


@Map(level="thread")
class sums:
    hashed: u64
    down: u32
    pairs: u32


@probe(pos="kernel")
def leave() -> None:
    hashed: u64 = 0xCBF29CE484222325
    for i in range(ROUNDS * 4):
        hashed ^= (lane() >> i) & 1
        hashed *= 0x100000001B3
    down = 0
    for i in range(5, -1, -1):
        if lane() > i:
            down = down * 10 + i
    pairs: u32 = 0
    for i in range(4):
        for j in range(1, 8, 3):
            pairs += i * j
    sums.save(hashed, down, pairs)

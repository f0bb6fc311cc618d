# ruff: noqa: N801, SIM201
"""Operators in 32 and 64 bits."""

from tui_probe.dsl import Map, lane, probe, u32, u64


@Map(level="thread", size=64)
class results:
    product: u64
    shifted: u64
    low: u32
    quotient: u32
    remainder: u64
    inverted: u64
    clamped: u32
    mixed: u64
    truth: u32


@probe(pos="kernel")
def leave() -> None:
    x: u32 = lane() * 0x10000001
    wide = x * x
    product = u64(x) * 0x100000001
    amount = lane() << 2
    truth = (x > 5 and not lane() == 7) + (x < 3 or lane() >= 30)
    results.save(
        product,
        x << amount,
        wide >> 4,
        x // (lane() + 3),
        wide % 1000003,
        ~x,
        1 << amount,
        -(x & 0xFF) ^ (x | 0xF0) - (x >> 3),
        truth,
    )

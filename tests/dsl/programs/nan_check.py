# ruff: noqa: N801
"""Stores of a value that is not a finite number."""

from tui_probe.dsl import Map, addr, in1, probe, u32, u64

EXPONENT = 0xFF << 23


@Map(level="thread")
class found:
    address: u64
    bits: u32
    number: u32


address: u64 = 0
bits: u32 = 0
number: u32 = 0


@probe(pos="st.global.f32", level="thread", before=True)
def store() -> None:
    global address, bits, number
    if in1 & EXPONENT == EXPONENT:
        if not number:
            address = addr
            bits = in1
        number += 1


@probe(pos="kernel", level="thread")
def leave() -> None:
    found.save(address, bits, number)

# ruff: noqa: A004, N801
"""Loads, counted at basic blocks and at the instructions, and where they stand.

Measures: load instructions and the bytes that they move
Unit: instructions, bytes
"""

from tui_probe.dsl import Map, bytes, instructions, lane, line, multiply_adds, probe, u32, u64


@Map(level="warp")
class sums:
    loads: u32
    loaded: u64
    threads: u32
    large: u64
    products: u64


@Map(level="thread")
class lines:
    first: u32
    last: u64


loads: u32 = 0
loaded: u64 = 0
products: u32 = 0
first: u32 = 0
last: u32 = 0


@probe(pos="block.load", before=True)
def block() -> None:
    global loads, first
    loads += instructions
    if first == 0:
        first = line


@probe(pos="ld.!param")
def load() -> None:
    global loaded, last
    loaded += bytes
    last = line


@probe(pos="mma.sync")
def product() -> None:
    global products
    products += multiply_adds


@probe(pos="kernel")
def leave() -> None:
    sums.add(loads, loaded, 1, 100000, products)
    lines.add(first, last + 1000 * (lane() & 1))

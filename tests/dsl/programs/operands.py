# ruff: noqa: N801
"""Operands that the probed instruction reads and writes, saved as they are."""

from tui_probe.dsl import Map, in1, in2, in3, out, probe, u32, u64


@Map(level="thread")
class fma:
    result: u32
    a: u32
    b: u32
    c: u64


@Map(level="thread")
class loaded:
    value: u64
    address: u64


@probe(pos="fma.rn.f32", level="thread")
def multiply_add() -> None:
    fma.save(out, in1, in2, in3)


@probe(pos="ld.global.f32", level="thread")
def load() -> None:
    loaded.save(out + 1, in1)

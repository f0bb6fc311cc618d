"""Random expressions, computed by the simulated GPU in many threads, are Python's integers mod 2**64."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dsl.running import record_type
from tests.engine.device_maps import DeviceMaps
from tests.simgpu.device import HEADER, Device
from tests.turns import examples
from tui_probe.engine.insertion import probed_kernel
from tui_probe.engine.kernel import Kernel
from tui_probe.probe_files.loading import read_probe
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import compile_kernel

Tree: TypeAlias = tuple[Any, ...]

MASK = 2**64 - 1
EDGES = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    2**31,
    2**32 - 1,
    2**32,
    2**32 + 5,
    2**63,
    2**64 - 1,
    2**64 - 2,
    0x123456789ABCDEF0,
]
THREADS = 64
KERNEL = parse(
    f"""{HEADER}
.visible .entry three(.param .u64 a, .param .u64 b, .param .u64 c)
{{
.reg .b64 %rd<8>;
.reg .b32 %r<2>;
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u64 %rd3, [c];
mov.u32 %r1, %tid.x;
mad.wide.u32 %rd1, %r1, 8, %rd1;
mad.wide.u32 %rd2, %r1, 8, %rd2;
mad.wide.u32 %rd3, %r1, 8, %rd3;
ld.global.u64 %rd4, [%rd1];
ld.global.u64 %rd5, [%rd2];
ld.global.u64 %rd6, [%rd3];
mad.lo.u64 %rd7, %rd4, %rd5, %rd6;
st.global.u64 [%rd1], %rd7;
ret;
}}
"""
)
PROGRAM = """
@Map(level="thread")
class results:
    first: u64
    second: u32
    third: u64
    fourth: u32
    fifth: u64

@probe(pos="mad.lo.u64", before=True)
def compute():
    a = in1
    b: u64 = in2
    c: u32 = in3
    d: u32 = in3 >> 32
    third = {third}
    fourth: u32 = {fourth}
    if {condition}:
        fifth = {third}
    else:
        fifth = {fourth}
    results.save({first}, {second}, third, fourth, fifth)
"""
BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda left, right: left << right if right < 64 else 0,
    ">>": lambda left, right: left >> right if right < 64 else 0,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda left, right: bool(left) and bool(right),
    "or": lambda left, right: bool(left) or bool(right),
}
UNARY = {
    "~": operator.invert,
    "-": operator.neg,
    "+": operator.pos,
    "not ": operator.not_,
    "u32": lambda value: value % 2**32,
    "u64": lambda value: value,
}

numbers = st.one_of(st.sampled_from(EDGES), st.integers(0, 255), st.integers(0, MASK))
leaves = st.one_of(st.sampled_from("abcd").map(lambda name: ("name", name)), numbers.map(lambda n: ("number", n)))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("binary"), st.sampled_from(sorted(BINARY)), inner, inner),
        st.tuples(st.just("unary"), st.sampled_from(sorted(UNARY)), inner),
        st.tuples(st.just("choice"), inner, inner, inner),
    ),
    max_leaves=8,
)


def text(tree: Tree) -> str:
    match tree:
        case ("name" | "number", value):
            return str(value)
        case ("binary", "//" | "%" as symbol, left, right):
            return f"({text(left)} {symbol} ({text(right)} | 1))"
        case ("binary", symbol, left, right):
            return f"({text(left)} {symbol} {text(right)})"
        case ("unary", symbol, inner):
            return f"({symbol}({text(inner)}))"
        case ("choice", test, chosen, other):
            return f"({text(chosen)} if {text(test)} else {text(other)})"
    raise AssertionError(tree)


def value(tree: Tree, names: dict[str, int]) -> int:
    match tree:
        case ("name", name):
            return names[name]
        case ("number", number):
            return int(number)
        case ("binary", symbol, left, right):
            odd = value(right, names) | (symbol in ("//", "%"))
            return int(BINARY[symbol](value(left, names), odd)) & MASK
        case ("unary", symbol, inner):
            return int(UNARY[symbol](value(inner, names))) & MASK
        case ("choice", test, chosen, other):
            return value(chosen if value(test, names) else other, names)
    raise AssertionError(tree)


def inputs() -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Three values per thread: pairs of edges, and random ones."""
    random = np.random.default_rng(7)
    wide = random.integers(0, MASK, (3, THREADS), np.uint64, endpoint=True)
    wide[:, 16:32] >>= np.uint64(40)
    for row in range(3):
        wide[row, :16] = np.roll(np.array(EDGES, np.uint64), 3 * row)
    return wide


INPUTS = inputs()


def computed(source: str) -> np.ndarray[Any, Any]:
    """The records that the probe leaves in the kernel above."""
    probe = read_probe(source.encode(), Path("own.py"))
    kernel = compile_kernel(parse(probed_kernel(Kernel.of(KERNEL, "three"), probe)[0]), "three")
    device = Device(1 << 16)
    maps = DeviceMaps(probe, (1,), (THREADS,))
    addresses = [device.upload(row) for row in INPUTS]
    device.launch(kernel, *map(np.uint64, addresses), *maps.arguments, block=(THREADS,))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(device.download(addresses[0], INPUTS[0]), INPUTS[0] * INPUTS[1] + INPUTS[2])
    return maps.of_file()[0].slots.ravel().view(record_type(probe.maps[0]))


@settings(max_examples=examples(100), deadline=None)
@given(st.tuples(trees, trees, trees, trees, trees))
def test_expressions(chosen: tuple[Tree, ...]) -> None:
    first, second, third, fourth, condition = chosen
    source = PROGRAM.format(
        first=text(first), second=text(second), third=text(third), fourth=text(fourth), condition=text(condition)
    )
    records = computed(source)
    for thread in range(THREADS):
        a, b, c = (int(row[thread]) for row in INPUTS)
        names = {"a": a, "b": b, "c": c % 2**32, "d": c >> 32}
        expected = (
            value(first, names),
            value(second, names) % 2**32,
            value(third, names),
            value(fourth, names) % 2**32,
            value(third if value(condition, names) else fourth, names),
        )
        assert records[thread].tolist() == expected, source

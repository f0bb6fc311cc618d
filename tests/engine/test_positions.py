"""Positions match parsed opcodes and modifiers, in any place."""

from __future__ import annotations

import pytest

from tests.engine.kernels import HEADER
from tui_probe.probe_model.positions import Position, matches, parse_positions
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Instruction


def instruction(text: str) -> Instruction:
    body = parse(f"{HEADER}.entry k(){{ {text} }}").entries()[0].body
    assert body
    assert isinstance(body[0], Instruction)
    return body[0]


def test_positions_are_joined_by_a_colon() -> None:
    assert parse_positions("ld.global : st.global") == (Position("ld", ("global",)), Position("st", ("global",)))
    assert parse_positions("kernel")[0].is_kernel
    assert parse_positions("cp.async.bulk.shared::cluster.global:mma") == (
        Position("cp", ("async", "bulk", "shared::cluster", "global")),
        Position("mma", ()),
    )
    assert parse_positions("ld.!param.global.!nc") == (Position("ld", ("global",), ("param", "nc")),)


@pytest.mark.parametrize(
    "text", ["", "ld.global:", ":", "ld global", "ld..global", "ld.global;", "1ld", "!ld", "ld.!", "ld!global"]
)
def test_no_position(text: str) -> None:
    with pytest.raises(ValueError, match="is not a position"):
        parse_positions(text)


@pytest.mark.parametrize(
    ("position", "text", "expected"),
    [
        ("ld.global", "ld.global.f32 %f1, [%rd1];", True),
        ("ld.global", "ld.volatile.global.f32 %f1, [%rd1];", True),
        ("ld.global", "ld.relaxed.gpu.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", True),
        ("ld.global", "@!%p1 ld.global.nc.u32 %r1, [%rd1];", True),
        ("ld.global", "ld.shared.f32 %f1, [%rd1];", False),
        ("ld.global", "ld.f32 %f1, [%rd1];", False),
        ("ld.global", "ldu.global.f32 %f1, [%rd1];", False),
        ("ld", "ld.param.u64 %rd1, [x];", True),
        ("st.shared", "st.shared::cluster.u32 [%r1], %r2;", True),
        ("st.shared::cta", "st.shared::cluster.u32 [%r1], %r2;", False),
        ("cp.async.ca", "cp.async.ca.shared.global [%r1], [%rd1], 16;", True),
        ("cp.async.ca", "cp.async.commit_group;", False),
        ("ld.!global.!shared.!param", "ld.relaxed.gpu.u32 %r1, [%rd1];", True),
        ("ld.!global.!shared.!param", "ld.relaxed.gpu.global.u32 %r1, [%rd1];", False),
        ("ld.!global.!shared.!param", "ld.shared::cluster.u32 %r1, [%r2];", False),
        ("cp.async.shared.global.!bulk", "cp.async.ca.shared.global [%r1], [%rd1], 16;", True),
        ("cp.async.shared.global.!bulk", "cp.async.bulk.shared::cluster.global [%r1], [%rd1], 16, [%r2];", False),
        ("mma.f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};", True),
    ],
)
def test_matching(position: str, text: str, expected: bool) -> None:
    assert matches(parse_positions(position)[0], instruction(text)) is expected

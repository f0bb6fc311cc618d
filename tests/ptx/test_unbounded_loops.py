"""Loops that no count ends."""

from __future__ import annotations

import pytest

from tests.engine.kernels import entry
from tui_probe.ptx.parser import parse
from tui_probe.ptx.waiting import unbounded_loop_heads

COUNTED = "$again:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, %r2;\n@%p1 bra $again;"
COPIED = "$again:\nadd.u32 %r3, %r1, 4;\nmov.u32 %r1, %r3;\nsetp.ne.u32 %p1, %r3, 64;\n@%p1 bra $again;"
POLLED = "$again:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra $again;"
LIMITED = "$again:\nld.global.u32 %r3, [%rd1];\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra $again;"
SKIPPED = (
    "$again:\nld.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra $again;\n"
    "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra $again;"
)
ENDLESS = "$again:\nadd.u32 %r1, %r1, 1;\nbra $again;"
HALVED = "$again:\nshr.u32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra $again;"
FIXED = "$again:\nsetp.ne.u32 %p1, %r1, %r2;\n@%p1 bra $again;"
MIXED = "$again:\nmad.lo.u32 %r1, %r1, %r1, 2;\nsetp.ne.u32 %p1, %r1, %r2;\n@%p1 bra $again;"
UNRELATED = "$again:\nadd.u32 %r3, %r3, 1;\nxor.b32 %r1, %r1, 5;\nsetp.ne.u32 %p1, %r1, %r2;\n@%p1 bra $again;"
CLOCKED = "$again:\nmov.u32 %r1, %clock;\nsetp.lt.u32 %p1, %r1, %r2;\n@%p1 bra $again;"


@pytest.mark.parametrize(
    ("loop", "unbounded"),
    [
        (COUNTED, 0),
        (COPIED, 0),
        (LIMITED, 0),
        (HALVED, 0),
        (POLLED, 1),
        (SKIPPED, 1),
        (ENDLESS, 1),
        (CLOCKED, 1),
        (FIXED, 1),
        (MIXED, 1),
        (UNRELATED, 1),
    ],
)
def test_unbounded_loop_heads(loop: str, unbounded: int) -> None:
    text = entry(f".reg .pred %p<3>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n{loop}\nret;")
    assert len(unbounded_loop_heads(parse(text).entries()[0])) == unbounded

"""Both TOML dialects as existing probe files are written: every construct loads, goes into a kernel and assembles."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engine.kernels import HEADER, STORE, probed, toml_probe
from tui_probe.probe_model.positions import Position
from tui_probe.probe_model.probe import Level

GENERIC_STORE = STORE.replace("st.global", "@%p1 st.global").replace(".reg .b32", ".reg .pred %p<2>;\n\t.reg .b32")

A_COUNTED = '''
analyze_hook = "trail.py"
dynamic = true
[trail]
position = "ld.global:st.global:cp.async.ca:cp.async.cg"
datamodel = "thread:16:count"
before = """.reg .b64 %now;
mov.u64 %now, %clock64;
SAVE.u64 {%now, ADDR};"""
'''
A_CAPPED = '''
analyze_hook = "trail.py"
dynamic = "false"
[trail]
position = "st.global"
datamodel = "thread:8:128"
no_pred = "true"
before = """.reg .u32 %when; mov.u32 %when, %clock; // both in one record
SAVE.u32 {%when, BYTES};"""
'''
A_TWO_SAVES = '''
analyze_hook = "span.py"
[span]
position = "kernel"
datamodel = "warp:16"
before = """.reg .b64 %begin; mov.u64 %begin, %clock64;"""
after = """.reg .b64 %end;
mov.u64 %end, %clock64;
sub.u64 %end, %end, %begin;
.reg .b32 %unit, %cycles;
SAVE.u64 {%begin};
mov.u32 %unit, %smid;
cvt.u32.u64 %cycles, %end;
SAVE.u32 {%cycles, %unit};"""
'''
B_NUMBERS = '''
CALLBACK = "span.py"
regs = 3
[map.span]
level = "warp"
type = "array"
size = 16
cap = 1
[map.span.data]
begin = "u64"
cycles = "u32"
unit = "u32"
[probe.whole]
level = "warp"
position = "kernel"
register = 3
before = "mov.u64 %NR0, %clock64;"
after = """
mov.u64 %NR1, %clock64;
sub.u64 %NR1, %NR1, %NR0;
cvt.u64.u32 %NR2, %smid;
SAVE [ span ] {%NR0, %NR1, %NR2};
"""
'''
B_QUOTED = """
callback = "trail"
regs = "2"
dynamic = "True"
[map.trail]
level = "thread"
type = "dynamic"
size = "16"
cap = "64"
[map.trail.regs]
clock = ["u64", "None"]
address = ["u64", "None"]
[probe.moves]
level = "thread"
pos = "ld.global:st.global"
register = "2"
before = "mov.u64 %NR0, %clock64; SAVE [trail], {%NR0, ADDR};"
"""


@pytest.mark.parametrize(
    ("text", "own_map"),
    [
        (A_COUNTED, ("trail", Level.THREAD, 16, None, [("now", 0), ("addr", 8)])),
        (A_CAPPED, ("trail", Level.THREAD, 8, 128, [("when", 0), ("bytes", 4)])),
        (A_TWO_SAVES, ("span", Level.WARP, 16, 1, [("begin", 0), ("cycles", 8), ("unit", 12)])),
        (B_NUMBERS, ("span", Level.WARP, 16, 1, [("begin", 0), ("cycles", 8), ("unit", 12)])),
        (B_QUOTED, ("trail", Level.THREAD, 16, None, [("clock", 0), ("address", 8)])),
    ],
)
def test_maps(text: str, own_map: tuple[object, ...], accepts: Callable[[str], int]) -> None:
    probe = toml_probe(text)
    (found,) = probe.maps
    fields = [(field.name, field.offset) for field in found.fields]
    assert (found.name, found.level, found.record_bytes, found.cap, fields) == own_map
    assert probe.callback == found.name
    assert accepts(probed(HEADER + GENERIC_STORE, "store", probe)) > 0


def test_positions_in_order() -> None:
    (point,) = toml_probe(A_COUNTED).points
    assert point.positions == (
        Position("ld", ("global",)),
        Position("st", ("global",)),
        Position("cp", ("async", "ca")),
        Position("cp", ("async", "cg")),
    )


def test_no_pred_saves_in_every_lane() -> None:
    guarded, everywhere = (
        probed(HEADER + GENERIC_STORE, "store", toml_probe(A_CAPPED.replace('no_pred = "true"', f"no_pred = {flag}")))
        for flag in ("false", "true")
    )
    assert "@!%p1 bra" in guarded
    assert "@!%p1 bra" not in everywhere


def test_shared_registers_are_those_of_regs() -> None:
    assert toml_probe(B_NUMBERS).registers == {"%NR0": "b64", "%NR1": "b64", "%NR2": "b64"}
    assert toml_probe(B_QUOTED).registers == {"%NR0": "b64", "%NR1": "b64"}


def test_both_names_of_a_callback() -> None:
    for key in ("CALLBACK", "callback", "analyze_hook"):
        assert toml_probe(B_NUMBERS.replace("CALLBACK", key)).callback == "span"

"""The table of registers: percentiles, what spills and what no longer fits, of probed kernels."""

from __future__ import annotations

import pytest

from tests.bench.ptx_corpus.__main__ import anonymous, different
from tests.bench.register_cost import Assembled, RegisterCost, percentile, refusals, register_table
from tui_probe.engine.probed_forms import KernelForm
from tui_probe.ptx.parser import parse

ROWS = [
    RegisterCost("a", "heavy", Assembled(32, 0, 100), Assembled(40, 0, 150), threads=1024),
    RegisterCost("b", "heavy", Assembled(60, 0, 100), Assembled(72, 8, 200), "", KernelForm(72), 1024),
    RegisterCost("c", "heavy", Assembled(60, 4, 100), Assembled(72, 8, 300), "", KernelForm(72, is_lean=True), 512),
    RegisterCost("d", "heavy", Assembled(60, 0, 100), None, "no room", threads=1024),
]


def test_a_probe_has_a_line_of_what_it_does_to_the_kernels() -> None:
    (_, _, line) = register_table(ROWS).splitlines()
    assert line == "| heavy | 3 | 1 | +12 | +12 | +12 | 1 | 1 | 1 | 1 | 2.00 × |  |"
    assert refusals(ROWS) == "1 × heavy: no room"


def test_engine_receives_the_code_size() -> None:
    """Or it would take no lean form that is no more code, and the table would be of another choice."""
    report = Assembled(40, 12, 200).report
    assert (report.registers, report.spill_store_bytes, report.spill_load_bytes) == (40, 12, 0)
    assert report.code_bytes == 200 * 16


@pytest.mark.parametrize(("share", "value"), [(50, 10), (95, 19), (100, 20), (1, 1)])
def test_percentiles_are_values_that_were_measured(share: float, value: int) -> None:
    assert percentile(range(1, 21), share) == value


STORE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry NAME(.param .u64 NAME_param_0) { // of NAME
.reg .b64 %rd<3>; ld.param.u64 %rd1, [NAME_param_0]; st.global.u32 [%rd1], OUT; ret; }
"""


def test_kernels_differing_only_in_names_count_once() -> None:
    seen: set[str] = set()
    costs = [
        different(parse(STORE.replace("NAME", name).replace("OUT", value)), seen)
        for name, value in (("_Z3one", "1"), ("_Z3two", "1"), ("_Z5three", "2"))
    ]
    assert [list(cost) for cost in costs] == [["_Z3one"], [], ["_Z5three"]]


def test_names_of_registers_and_instructions_stay() -> None:
    assert anonymous("add.u32 %r1, %r2, _Zx; bra $L__1; // _Zx") == "add.u32 %r1, %r2, _0; bra _1; "

"""Positions with ``+``: a loop of tries is one site, and what runs around it runs once a wait."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.engine.kernels import DATA, entry, inserted, probed, probed_with_sites, toml_probe, without_insertions, words
from tests.probes.running import result_of
from tests.ptx.test_wait_loops import ALONE, CUTLASS, FIRST_TRY, GIVES_UP, GUARDED, NVCC, SLEEPS, TRITON, WORKS
from tui_probe.engine.kernel import Kernel
from tui_probe.errors import ProbeFileError
from tui_probe.probe_model.positions import Position, parse_positions
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROBE = """
[map.sites]
level = "site"
[map.sites.regs]
entered = "u64"
left = "u64"
line = "u64"
[probe.wait]
position = "mbarrier.try_wait+:mbarrier.test_wait+"
before = ".reg .b32 %at; mov.u32 %at, LINE; ADD [ sites ] {1, 0, 0};"
after = "ADD [ sites ] {0, 1, %at};"
"""
REGISTERS = ".reg .pred %p<4>;\n.reg .b32 %r<12>;\n.reg .b64 %rd<4>;\n"
RUNS = """.shared .align 8 .b64 bar;
mov.u32 %r1, bar;
mov.u32 %r8, %tid.x;
setp.ne.u32 %p3, %r8, 0;
@%p3 bra $ready;
mbarrier.init.shared.b64 [%r1], 1;
$ready:
bar.sync 0;
setp.lt.u32 %p3, %r8, 32;
@%p3 bra $waits;
mov.u32 %r8, 3000;
$work:
sub.u32 %r8, %r8, 1;
setp.ne.u32 %p3, %r8, 0;
@%p3 bra $work;
mov.u32 %r8, %tid.x;
setp.ne.u32 %p3, %r8, 32;
@%p3 ret;
mbarrier.arrive.shared.b64 _, [%r1];
ret;
$waits:
"""


def test_a_plus_behind_an_instruction() -> None:
    one, other = parse_positions("mbarrier.try_wait.!shared+:mbarrier.test_wait")
    assert one == Position("mbarrier", ("try_wait",), ("shared",), retried=True)
    assert not other.retried


@pytest.mark.parametrize("text", ["kernel+", "block+", "loop+", "block.fp32+", "+", "ld.global++", "ld+.global"])
def test_permanent_failures_are_not_retried(text: str) -> None:
    with pytest.raises(ValueError, match="is not a position"):
        parse_positions(text)


@pytest.mark.parametrize("helper", ["OUT", "ADDR", "IN1"])
def test_a_loop_has_no_operands(helper: str) -> None:
    text = PROBE.replace("mov.u32 %at, LINE", f"mov.u32 %at, {helper}")
    with pytest.raises(ProbeFileError, match="remove '\\+' from the position"):
        toml_probe(text)


@pytest.mark.parametrize(
    "body",
    [CUTLASS, TRITON, NVCC, SLEEPS, FIRST_TRY, GIVES_UP],
    ids=["cutlass", "triton", "nvcc", "sleeps", "first", "up"],
)
def test_once_a_wait(body: str, tmp_path: Path) -> None:
    """One warp waits for longer than several tries, no matter what they are written like."""
    text = entry(REGISTERS + RUNS + body.replace("setp.lt.u32 %p2, %r2, 99", "setp.lt.u32 %p2, %r2, 9999"))
    result = result_of(tmp_path, toml_probe(PROBE), text, block=(64,))
    (site,) = result.sites(0, np.dtype([("entered", "<u8"), ("left", "<u8"), ("line", "<u8")]))
    line = Kernel.of(parse(text), "kernel").pruned.splitlines()[int(site["line"]) // 32 - 1]
    assert (site["entered"], site["left"]) == (32, 32), "each of 32 lanes, once"
    assert "try_wait" in line


@pytest.mark.parametrize("body", [WORKS, ALONE, GUARDED], ids=["works", "alone", "guarded"])
def test_elsewhere_each_try_counts(body: str) -> None:
    text = probed(entry(REGISTERS + body), probe=toml_probe(PROBE))
    lines = text.splitlines()
    number = next(index for index, line in enumerate(lines) if "mbarrier.try_wait" in line)
    assert "red." in lines[number - 1] or "bra" in lines[number - 1] or "$tp_" in lines[number - 1]
    assert any("red." in line for line in lines[number + 1 : number + 9])
    assert len([line for line in inserted(text) if line.startswith(("red.", "@"))]) >= 3


def test_two_loops_in_a_row_do_not_mix() -> None:
    """Code behind the first loop is before code ahead of the second."""
    body = TRITON.removesuffix("ret;") + TRITON.removeprefix("add.u32 %r2, %r1, 1;\n")
    text, _, sites = probed_with_sites(entry(REGISTERS + body), probe=toml_probe(PROBE))
    places = [re.search(r"address(?:\+(\d+))?\]", line) for line in inserted(text) if line.startswith("red.")]
    assert [int(place[1] or 0) for place in places if place] == [0, 8, 16, 24, 32, 40]
    assert len(sites["sites"]) == 2


@pytest.mark.parametrize(
    ("file", "kernel"),
    [
        ("hopper", "uses_tma"),
        ("jax_reduce", "input_reduce_fusion"),
        ("transactions", "producer_consumer"),
        ("transactions", "ring"),
        ("transactions", "library"),
        ("waits", "first_try"),
        ("waits", "staged"),
    ],
)
def test_compiled_kernels_assemble(file: str, kernel: str, accepts: Callable[[str], int]) -> None:
    source = (DATA / f"{file}.sm_90a.ptx").read_text()
    text = probed(source, kernel, toml_probe(PROBE))
    assert inserted(text)
    accepts(text)
    assert words(without_insertions(text)) == words(Kernel.of(parse(source), kernel).pruned)

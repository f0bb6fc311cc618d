"""Spills by source line, in machine code that ptxas made for few registers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.trace.make import TraceWriter
from tui_probe.binaries import line_tables
from tui_probe.probekit.finding import counted
from tui_probe.sass.accesses import spills_by_line, stack_accesses
from tui_probe.sass.operations import operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.static_findings import static_findings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tui_probe.binaries.cubin import Cubin
    from tui_probe.sass.accesses import StackAccess

VALUES = 40
SPILLING = """
.visible .entry k(.param .u64 x, .param .u32 n) .maxnreg 24
{{
	.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<60>;
	ld.param.u64 %d1, [x]; ld.param.u32 %r1, [n];
{loads}
again:
{sums}
	add.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, 0; @%p1 bra again;
{stores}
	ret; }}
"""


def spilling() -> str:
    """A kernel with more values in a loop than registers."""
    loads = "\n".join(f"ld.volatile.global.f32 %f{number}, [%d1+{4 * number}];" for number in range(VALUES))
    sums = "\n".join(f"fma.rn.f32 %f{number}, %f{number}, %f{number}, %f{number};" for number in range(VALUES))
    stores = "\n".join(f"st.volatile.global.f32 [%d1+{4 * number}], %f{number};" for number in range(VALUES))
    return SPILLING.format(loads=loads, sums=sums, stores=stores)


def test_stack_accesses_are_counted_by_line_and_loop(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(spilling(), 90), "k")
    names = [operation_name(word, 90) for word in target.words]
    accesses = stack_accesses(target)
    assert [names[access.index] for access in accesses if access.is_load] == ["LDL"] * names.count("LDL") != []
    assert sum(not access.is_load for access in accesses) == names.count("STL") > 0
    assert {access.bytes for access in accesses} <= {4, 8, 16}
    in_loop = {access.offset: ("k.cu", 7) for access in accesses if access.depth}
    assert in_loop
    first, other = spills_by_line(accesses, in_loop)
    assert first.place == ("k.cu", 7)
    assert first.depth == 1
    assert set(first.offsets) == set(in_loop)
    assert other.place is None
    assert first.loads + first.stores + other.loads + other.stores == len(accesses)


def test_finding_names_the_line_that_spills_most(
    assembled: Callable[[str, int], Cubin], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cubin = assembled(spilling(), 90)
    in_loop = {
        access.offset: ("src/k.cu", 7) for access in stack_accesses(GraftTarget.from_cubin(cubin, "k")) if access.depth
    }
    monkeypatch.setattr(line_tables, "source_locations", lambda *_: in_loop)
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    folder = writer.kernel(0, "k", spills=(368, 368))
    (folder / "pruned.bin").write_bytes(cubin.image)
    writer.launch(0)
    writer.exit()
    (finding,) = (own for own in static_findings(open_trace(writer.directory).kernels[0]) if own.key == "spills")
    assert re.search(r"; most at k\.cu:7 \(\d+ loads, \d+ stores, in a loop\)$", finding.words)
    assert finding.values["line_loads"] == counted(sum(access.is_load for access in _of_loop(cubin)))


def _of_loop(cubin: Cubin) -> list[StackAccess]:
    return [access for access in stack_accesses(GraftTarget.from_cubin(cubin, "k")) if access.depth]

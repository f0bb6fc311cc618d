"""Kernel parameters from which accesses get their addresses, in real and assembled SASS."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.bench.assembling import assembler
from tests.engine.kernels import DATA
from tests.probes.tensor_copy import PTX
from tests.sass.conftest import assembled, listing
from tui_probe.binaries.cubin import Cubin
from tui_probe.sass.address_origins import AddressOrigins, constant_of
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import WORD_BYTES
from tui_probe.toolchain import find_disassembler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["assembled"]

GATHER = """
.visible .entry k(.param .u64 places, .param .u64 values, .param .u64 out, .param .u32 n) {
    .reg .b64 %d<12>; .reg .b32 %r<6>; .reg .f32 %f<2>; .reg .pred %p<2>;
    ld.param.u64 %d1, [places];
    ld.param.u64 %d2, [values];
    ld.param.u64 %d3, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
LOOP:
    mul.wide.u32 %d4, %r2, 4;
    add.s64 %d5, %d1, %d4;
    ld.global.u32 %r3, [%d5];
    mul.wide.s32 %d6, %r3, 4;
    add.s64 %d7, %d2, %d6;
    ld.global.f32 %f1, [%d7];
    add.s64 %d8, %d3, %d4;
    st.global.f32 [%d8], %f1;
    add.u32 %r2, %r2, 256;
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra LOOP;
    ret; }
"""


def origins(cubin: Cubin, kernel: str) -> list[tuple[str, tuple[int, ...]]]:
    """Name and parameters of each access of global memory, in order of the code."""
    target = GraftTarget.from_cubin(cubin, kernel)
    origins_of_kernel = AddressOrigins(target, FlowGraph.from_target(target))
    names = [operation_name(word, target.arch) for word in target.words]
    return [
        (name, origins_of_kernel.access_parameters(index))
        for index, name in enumerate(names)
        if name in ("LDG", "STG", "LDGSTS")
    ]


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_loads_of_a_gather_have_their_own_pointers(assembled: Callable[[str, int | str], Cubin], arch: int) -> None:
    """The address of the second load is computed from the first one's result, whose pointer is not its own."""
    named = origins(assembled(GATHER, arch), "k")
    assert {name: set() for name, _ in named} == {"LDG": set(), "STG": set()}
    pointers = [{number for number in numbers if number < 3} for _, numbers in named]
    assert {frozenset(own) for own in pointers} == {frozenset({0}), frozenset({1}), frozenset({2})}
    assert {frozenset(own) for (name, _), own in zip(named, pointers, strict=True) if name == "STG"} == {frozenset({2})}


@pytest.mark.parametrize("arch", [90, 100])
def test_copies_by_tensor_map_are_of_its_parameter(arch: int, tmp_path: Path) -> None:
    """The address of a map is a number added to that of the parameters, which is in a constant."""
    (tmp_path / "copies.ptx").write_text(PTX.replace("sm_90", f"sm_{arch}"))
    assembler().assemble(tmp_path / "copies.ptx", tmp_path / "copies.bin", f"sm_{arch}", "copies")
    target = GraftTarget.from_cubin(Cubin.read((tmp_path / "copies.bin").read_bytes()), "copies")
    origins = AddressOrigins(target, FlowGraph.from_target(target))
    names = [operation_name(word, target.arch) for word in target.words]
    copies = [
        (name, origins.transfer_parameters(index)) for index, name in enumerate(names) if name in ("UTMALDG", "UTMASTG")
    ]
    assert copies == [("UTMALDG", (0,)), ("UTMASTG", (1,))]


SELECTED = """
.visible .entry k(.param .u64 list, .param .u32 n, .param .align 64 .b8 maps[256])
{
    .reg .b32 %r<6>; .reg .b64 %d<9>; .reg .pred %p<2>;
    .shared .align 128 .b8 buffer[1024]; .shared .align 8 .b64 barrier;
    ld.param.u64 %d1, [list]; ld.param.u32 %r3, [n]; mov.u32 %r1, buffer; mov.u32 %r2, barrier;
    mov.b64 %d2, maps; cvta.param.u64 %d2, %d2; add.u64 %d2, %d2, 64;
    setp.eq.u32 %p1, %r3, 0; OTHER
    cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d2, {%r3}], [%r2];
    ret; }
"""


@pytest.mark.parametrize(
    ("other", "place"),
    [("", (2, 64)), ("@%p1 ld.global.u64 %d2, [%d1];", None), ("@%p1 add.u64 %d2, %d2, 64;", None)],
)
def test_maps_are_in_a_parameter_on_all_ways(
    assembled: Callable[[str, int | str], Cubin], other: str, place: tuple[int, int] | None
) -> None:
    target = GraftTarget.from_cubin(assembled(SELECTED.replace("OTHER", other), 90), "k")
    origins = AddressOrigins(target, FlowGraph.from_target(target))
    names = [operation_name(word, target.arch) for word in target.words]
    (copy,) = (index for index, name in enumerate(names) if name == "UTMALDG")
    assert origins.map_place(copy) == place
    assert all(origins.map_place(index) is None for index in range(len(names)) if index != copy)


@pytest.mark.parametrize("arch", [90, 100])
def test_uniform_constants_are_read_where_nvdisasm_reads_them(
    assembled: Callable[[str, int | str], Cubin], arch: int
) -> None:
    """LDCU, from sm_100 on, has the offset at another place than ULDC."""
    if find_disassembler() is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    cubin = assembled(GATHER, arch)
    target = GraftTarget.from_cubin(cubin, "k")
    lines = re.findall(r"/\*([0-9a-f]{4,})\*/\s+.*?\b(LDCU?|ULDC)\S* .*c\[0x0\]\[0x([0-9a-f]+)\]", listing(cubin.image))
    read = {int(at, 16): int(offset, 16) for at, _, offset in lines}
    assert {constant_of(target.words[at // WORD_BYTES]) for at in read} == set(read.values())
    assert all(constant_of(target.words[at // WORD_BYTES]) == offset for at, offset in read.items())
    assert {name for _, name, _ in lines} >= {"LDCU" if arch == 100 else "ULDC"}


def test_copies_of_attention_are_of_keys_and_values() -> None:
    named = origins(Cubin.read((DATA / "attn_fwd.sm_90a.cubin").read_bytes()), "attn_fwd")
    assert [numbers for name, numbers in named if name == "LDG"] == [(0,)] * 4
    assert sorted(numbers for name, numbers in named if name == "LDGSTS") == [(1,)] * 4 + [(2,)] * 4
    assert [numbers for name, numbers in named if name == "STG"] == [(3,)] * 4

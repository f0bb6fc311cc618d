"""Bulk copies in SASS: their operands, sizes and boxes, as probes of copies and of accesses read them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from tests.engine.test_instruction_grafts import texts
from tests.hook.test_tensor_maps import H200_LAYOUT
from tests.probes.running import SIMULATED_MAPS
from tests.probes.test_tensor_copies import HEAD
from tests.sass.conftest import listing
from tests.simgpu.device import Device, compiled
from tests.simgpu.test_executor_tensor_maps import encoded
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import GraftedKernel, Grafter
from tui_probe.engine.grafting.instruction_ptx import InstructionPtx, site_kernel_name
from tui_probe.engine.grafting.site_kernel_text import KEPT_TYPES, SnippetSite
from tui_probe.engine.grafting.site_values import InstructionFacts, Mark
from tui_probe.engine.grafting.snippet_ptx import ptx_version
from tui_probe.engine.map_layout import parse_layout
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.sass.bulk_copies import bulk_copy_of
from tui_probe.sass.operations import mnemonic
from tui_probe.sass.snippets import MARK_STEP
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import WORD_BYTES
from tui_probe.toolchain import find_disassembler

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("ptxas")

COPIES = """
.visible .entry mixed(.param .u64 x, .param .u32 n, .param .align 64 .b8 map[128])
{
	.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;
	.shared .align 128 .b8 buffer[1024]; .shared .align 8 .b64 barrier;
	ld.param.u64 %d1, [x]; ld.param.u32 %r3, [n]; mov.u32 %r1, buffer; mov.u32 %r2, barrier;
	mov.b64 %d2, map; mov.u32 %r5, %tid.x; setp.eq.u32 %p1, %r5, 0;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 1024, [%r2];
	@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1+4096], %r3, [%r2];
	cp.async.bulk.prefetch.L2.global [%d1+64], 512;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d2, {%r5, %r3}], [%r2];
	cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d2, {%r5, %r3}], [%r1];
	cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%d2, {%r5, %r3}], [%r1];
	cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d2, {%r5, %r3}];
	cp.async.bulk.global.shared::cta.bulk_group [%d1+8192], [%r1], 256;
	cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1+8192], [%r1], %r3;
	cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r1+64], 128, [%r2];
	ret;
}
"""
LAYOUT = parse_layout(H200_LAYOUT)


def cubin_of(text: str, arch: int, folder: Path, target: str = "") -> Cubin:
    """The cubin of a text with the kernel ``mixed``."""
    source, binary, target = folder / f"{arch}.ptx", folder / f"{arch}.bin", target or f"sm_{arch}"
    source.write_text(f".version {ptx_version(arch)}\n.target {target}\n.address_size 64\n{text}")
    Assembler().assemble(source, binary, target, "mixed")
    return Cubin.read(binary.read_bytes())


def grafted(probe: str, cubin: Cubin) -> GraftedKernel:
    return Grafter(load_probe(probe), Assembler(), samples_blocks=False).graft(cubin, "mixed", LAYOUT)


SIZED, BY_MAP = ["bulk_load"] * 3 + ["bulk_store"] * 2, ["tensor_load"] * 2 + ["tensor_store"] * 2


FORMS = """
.visible .entry mixed(.param .u64 map, .param .u64 x, .param .u32 buffer, .param .u32 barrier, .param .u32 size,
	.param .align 4 .b8 at[20], .param .u16 mask)
{
	.reg .b32 %r<9>; .reg .b64 %d<3>; .reg .b16 %h<3>;
	ld.param.u64 %d1, [map]; ld.param.u64 %d2, [x]; ld.param.u32 %r6, [buffer]; ld.param.u32 %r7, [barrier];
	ld.param.u32 %r8, [size]; ld.param.u16 %h1, [mask]; ld.param.u32 %r1, [at]; ld.param.u32 %r2, [at+4];
	ld.param.u32 %r3, [at+8]; ld.param.u32 %r4, [at+12]; ld.param.u32 %r5, [at+16];
	LOADS
	ret;
}
"""
LOAD = "shared::cluster.global.{}mbarrier::complete_tx::bytes"


def all_forms() -> str:
    """A kernel with copies by map of one to five dimensions, of pixels, and to several blocks of a cluster."""
    lines = []
    for rank in range(1, 6):
        box = f"[%d1, {{{', '.join(f'%r{number}' for number in range(1, rank + 1))}}}]"
        lines += [
            f"cp.async.bulk.tensor.{rank}d.{LOAD.format('tile.')} [%r6], {box}, [%r7];",
            f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group {box}, [%r6];",
            f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.max.tile.bulk_group {box}, [%r6];",
            f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile {box};",
        ]
    pixels = "[%d1, {%r1, %r2, %r3}]"
    lines += [
        f"cp.async.bulk.tensor.3d.{LOAD.format('im2col.')} [%r6], {pixels}, [%r7], {{%h1}};",
        f"cp.async.bulk.tensor.2d.{LOAD.format('tile.')}.multicast::cluster [%r6], [%d1, {{%r1, %r2}}], [%r7], %h1;",
        f"cp.async.bulk.{LOAD.format('')}.multicast::cluster [%r6], [%d2], %r8, [%r7], %h1;",
        f"cp.async.bulk.{LOAD.format('')} [%r6], [%d2], %r8, [%r7];",
        "cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r6], %r8;",
        "cp.async.bulk.prefetch.L2.global [%d2], %r8;",
    ]
    return FORMS.replace("LOADS", "\n\t".join(lines))


NAMES = [
    *(f"{name}.{rank}D" for rank in range(1, 6) for name in ("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF")),
    "UTMALDG", "UTMALDG.2D.MULTICAST", "UBLKCP.S.G.MULTICAST", "UBLKCP.S.G", "UBLKCP.G.S", "UBLKPF",
]  # fmt: skip


def test_operands_of_bulk_copies_are_as_nvdisasm_reads_them(tmp_path: Path) -> None:
    cubin = cubin_of(all_forms(), 90, tmp_path, "sm_90a")
    target, mnemonics = GraftTarget.from_cubin(cubin, "mixed"), []
    for at, text in texts(cubin.image).items():
        word = target.words[at // WORD_BYTES]
        copy = bulk_copy_of(word, 90)
        assert (copy is not None) == bool(re.match(r"(@!?U?P\d )?U(TMA(LDG|STG|REDG|PF)|BLK)", text))
        if copy is None:
            continue
        mnemonics.append(mnemonic(word, 90))
        first, *more = (int(number) for number in re.findall(r"\bUR(\d+)", text))
        if copy.size is None:
            assert copy.address == more[0]
            before = {"UTMALDG": 2, "UTMAPF": 0}.get(mnemonics[-1].split(".")[0], 1)
            assert not copy.dimensions or copy.coordinates == first + before
        else:
            assert copy.size == more[-1]
            assert copy.address == (more[0] if ".S.G" in text else first)
    assert Counter(mnemonics) == Counter(NAMES)


@pytest.mark.parametrize("arch", [90, 100])
def test_dmat_records_boxes_of_bulk_copies(arch: int, tmp_path: Path) -> None:
    """The code at a copy reads its uniform registers: the address, and the size, or the coordinates."""
    cubin = cubin_of(COPIES, arch, tmp_path)
    target = GraftTarget.from_cubin(cubin, "mixed")
    made = grafted("dmat", cubin)
    assert "storage 3 queue record 72 cap 0" in made.info.splitlines()
    assert "note" not in made.info
    sites = json.loads(made.sites)["probes"][0]["sites"]
    assert Counter(point for site in sites for point in site["points"]) == {"bulk_copy": 5, "box": 4}
    names = "UBLKCP.S.G UBLKCP.S.G UBLKPF UTMALDG.2D UTMASTG.2D UTMAREDG.2D UTMAPF.2D UBLKCP.G.S UBLKRED.G.S"
    assert [site["opcode"] for site in sites] == names.split()
    if find_disassembler() is None:
        return
    added = [text for at, text in sorted(texts(made.probed_image).items()) if at >= made.grafted.start]
    starts = [index for index, text in enumerate(added) if text.startswith("P2R")]
    for site, start, end in zip(sites, starts, [*starts[1:], len(added)], strict=True):
        copy = bulk_copy_of(target.words[site["offset"] // WORD_BYTES], arch)
        assert copy is not None
        wanted = {copy.address, copy.address + 1} | ({copy.size} - {None})
        wanted |= {copy.coordinates + dimension for dimension in range(copy.dimensions)}
        code = added[start:end]
        moved = {int(m[1]) for text in code if (m := re.fullmatch(r"(?:@\S+ )?MOV R\d+, UR(\d+)", text))}
        assert moved == wanted, site
        assert any(text.endswith(f", {site['offset']:#x}") for text in code)
        assert sum(" STG.E.EF.64 " in text for text in code) == 9, "a record has 72 bytes"
        assert sum("LD.E " in text for text in code) == (9 if copy.dimensions else 0), "words of the map"


def test_kernel_that_leaves_too_few_registers_for_boxes_keeps_its_accesses(tmp_path: Path) -> None:
    count = 200
    loads = " ".join(f"ld.volatile.global.u32 %v{number}, [%d2+{4 * number}];" for number in range(count))
    stores = " ".join(f"st.volatile.global.u32 [%d2], %v{number};" for number in reversed(range(count)))
    copy = f"cp.async.bulk.tensor.2d.{LOAD.format('tile.')} [%r6], [%d1, {{%r1, %r2}}], [%r7];"
    text = FORMS.replace("LOADS", f".reg .b32 %v<{count}>; {loads}\n{copy}\n{stores}")
    made = grafted("dmat", cubin_of(text.replace("\n{", "\n.maxnreg 232\n{", 1), 90, tmp_path))
    assert made.info.splitlines()[2:6] == ["3", "1,24", "0,-1", "0,4"]
    assert "note dmat does not count bulk copies of this kernel (instructions: 1)" in made.info


@pytest.mark.parametrize("arch", [90, 100])
def test_bulk_copies_are_counted_by_size(arch: int, tmp_path: Path) -> None:
    """Not counted: the copy from shared memory to shared memory."""
    cubin = cubin_of(COPIES, arch, tmp_path)
    made = grafted("gmem_bytes", cubin)
    sites = json.loads(made.sites)["probes"][0]["sites"]
    assert sorted(point for site in sites for point in site["points"]) == sorted(SIZED + BY_MAP)
    assert "note" not in made.info
    limits = json.loads(grafted("what_limits", cubin).sites)["probes"][0]["sites"]
    assert {site["offset"] for site in sites} <= {site["offset"] for site in limits}
    if find_disassembler() is not None:
        assert sum("LD.E " in text for text in texts(made.probed_image).values()) == 7 * len(BY_MAP), (
            "words of the maps"
        )


@pytest.mark.parametrize("arch", [90, 100])
def test_uniform_guard_of_a_bulk_copy_is_obeyed(arch: int, tmp_path: Path) -> None:
    """A predicate of the uniform path guards the copy: the code tests that one, not the same number of lanes."""
    if find_disassembler() is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    made = grafted("gmem_bytes", cubin_of(COPIES, arch, tmp_path))
    texts = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", listing(made.probed_image))
    guarded = [index for index, text in enumerate(texts) if re.match(r"@!?UP\d UBLKCP", text)]
    assert len(guarded) == 1
    negated, number = re.match(r"@(!?)UP(\d)", texts[guarded[0]]).groups()  # type: ignore[union-attr]
    test = max(index for index, text in enumerate(texts[: guarded[0]]) if text.startswith("P2R")) + 1
    assert texts[test] == f"PLOP3.LUT P0, PT, PT, PT, UP{number}, 0x80, 0x0"
    skipped = next(text for text in texts[test:] if "BRA" in text)
    assert skipped.startswith("@P0 BRA" if negated else "@!P0 BRA")


@pytest.mark.parametrize("arch", [90, 100])
@pytest.mark.parametrize("probe", ["gmem_sectors", "gmem_sectors_by_line", "what_limits"])
def test_sectors_of_bulk_copies_are_counted(probe: str, arch: int, tmp_path: Path) -> None:
    made = grafted(probe, cubin_of(COPIES, arch, tmp_path))
    assert "note" not in made.info
    sites = json.loads(made.sites)["probes"][0]["sites"]
    counted = Counter(point for site in sites for point in site["points"])
    assert {name: counted[name] for name in counted if name.startswith(("bulk", "tensor"))} == Counter(SIZED + BY_MAP)


@pytest.mark.parametrize("probe", ["gmem_bytes", "gmem_sectors"])
def test_multicasts_and_reductions_are_one_copy(probe: str, tmp_path: Path) -> None:
    sites = json.loads(grafted(probe, cubin_of(all_forms(), 90, tmp_path, "sm_90a")).sites)["probes"][0]["sites"]
    points = {site["opcode"]: site["points"] for site in sites}
    assert points["UTMALDG.2D.MULTICAST"] == points["UTMALDG.2D"] == ["tensor_load"]
    assert points["UTMAREDG.2D"] == points["UTMASTG.2D"] == ["tensor_store"]
    assert points["UBLKCP.S.G.MULTICAST"] == points["UBLKCP.S.G"] == ["bulk_load"]


class Box(NamedTuple):
    """A box in a tensor in C order, the innermost dimension first, with the place of its first element."""

    shape: tuple[int, ...]
    box: tuple[int, ...]
    first: tuple[int, ...]
    element: int = 4
    at: int = 0x7000_0000_0010
    steps: tuple[int, ...] = ()

    @property
    def sectors(self) -> int:
        """Sectors of the rows that are inside the tensor."""
        row, *others = self.inside
        total = 0
        for places in product(*others):
            start = self.at + row.start * self.element
            width = self.shape[0] * self.element
            for place, extent in zip(places, self.shape[1:], strict=True):
                start, width = start + place * width, width * extent
            total += (start + len(row) * self.element + 31) // 32 - start // 32 if row else 0
        return total

    @property
    def inside(self) -> list[range]:
        """By dimension the elements of the box that the tensor has."""
        ends = zip(self.first, self.box, self.shape, strict=True)
        return [range(max(0, first), max(0, min(first + box, extent))) for first, box, extent in ends]

    @property
    def bytes(self) -> int:
        return self.element * math.prod(map(len, self.inside))

    @property
    def map(self) -> bytes:
        """The tensor map, as the simulated GPU has it."""
        tensor = np.zeros(self.shape[::-1], f"u{self.element}")
        return encoded(self.at, tensor, self.box, **({"steps": self.steps} if self.steps else {}))


BOXES = [
    Box((64, 20), (16, 8), (0, 0)),
    Box((64, 20), (16, 8), (48, 16)),
    Box((68, 20), (20, 8), (60, -3)),
    Box((68, 20), (20, 8), (200, 0)),
    Box((36, 9, 5), (12, 4, 3), (-5, 6, 1)),
    Box((36, 9, 5), (12, 4, 3), (28, 6, 3), at=0x7000_0000_0000),
    Box((48, 7), (32, 7), (16, 0), element=1),
    Box((24, 7), (8, 3), (20, 2), element=2),
    Box((14, 5), (4, 2), (11, 4), element=8),
]


def sums_at_copy(probe: str, box: Box, lanes: int = 32) -> list[Counter[str]]:
    """Compute what each of some lanes that start a copy together adds to the registers that live throughout.

    The simulated GPU runs the code for SASS, whose marks are words of shared memory here.
    """
    own = load_probe(probe)
    point = next(point for point in own.points if point.name == "tensor_load")
    copy = Instruction("cp", ("async", "bulk", "tensor", "global", "mbarrier"), (), MADE_UP)
    facts = InstructionFacts(is_bulk=True, is_tensor=True, dimensions=len(box.shape))
    layout = parse_layout(SIMULATED_MAPS)
    ptx = InstructionPtx(own, [SnippetSite(point, facts, copy)], 90, map_layout=layout, samples_blocks=False)
    names = [name for name in ptx.live_registers for _ in range(KEPT_TYPES[own.registers[name]] // 32)]
    sum_marks = {Mark.FIRST_KEPT + index: name.removeprefix("%") for index, name in enumerate(names)}
    text = ptx.kernels()[site_kernel_name(0)]
    sums = np.zeros((lanes, len(sum_marks)), np.uint32)
    places = np.array(box.first, np.int32)
    Device().launch(compiled(with_marks(text, sum_marks, lanes)), np.frombuffer(box.map, np.uint8).copy(), places, sums)
    return [
        Counter({name: int(value) for name, value in zip(sum_marks.values(), row, strict=True) if value})
        for row in sums
    ]


def with_marks(text: str, sum_marks: Iterable[int], lanes: int) -> str:
    """The kernel ``(map, coordinates, sums)`` with what marks stand for, in shared memory of each lane."""
    body = text[text.index("{") + 1 : text.rindex("ret;")]
    numbers = {int(offset) // MARK_STEP for offset in re.findall(r"mark\+(\d+)\]", body)} | {*sum_marks}
    offsets = {number: 4 * index for index, number in enumerate(sorted(numbers))}
    body = re.sub(r"\[%\w*mark\+(\d+)\]", lambda mark: f"[%lane+{offsets[int(mark[1]) // MARK_STEP]}]", body)
    values = {Mark.UNIFORM_ADDRESS: "%low", Mark.UNIFORM_ADDRESS + 1: "%high"} | dict.fromkeys(sum_marks, "%zero")
    given = [
        f"st.shared.u32 [%lane+{offsets[number]}], {value};" for number, value in values.items() if number in offsets
    ]
    for number in range(Mark.FIRST_COORDINATE, Mark.FIRST_COORDINATE + 5):
        if number in offsets:
            given.append(f"ld.global.u32 %low, [%places+{4 * (number - Mark.FIRST_COORDINATE)}];")
            given.append(f"st.shared.u32 [%lane+{offsets[number]}], %low;")
    left = [
        line
        for index, number in enumerate(sum_marks)
        for line in (f"ld.shared.u32 %low, [%lane+{offsets[number]}];", f"st.global.u32 [%sums+{4 * index}], %low;")
    ]
    return f"""{HEAD}.visible .entry k(.param .u64 map, .param .u64 places, .param .u64 sums)
{{
	.reg .b32 %lane, %low, %high, %zero, %number; .reg .b64 %map, %places, %sums, %row; .reg .pred %outside;
	.shared .align 4 .b8 marks[{32 * 4 * len(offsets)}];
	ld.param.u64 %map, [map]; ld.param.u64 %places, [places]; ld.param.u64 %sums, [sums];
	mov.u32 %number, %laneid; setp.ge.u32 %outside, %number, {lanes}; @%outside exit;
	mov.u32 %lane, marks; mad.lo.u32 %lane, %number, {4 * len(offsets)}, %lane;
	mad.wide.u32 %sums, %number, {4 * len({*sum_marks})}, %sums; mov.u32 %zero, 0; mov.b64 {{%low, %high}}, %map;
	{" ".join(given)}
	{body}
	{" ".join(left)}
	ret;
}}"""


@pytest.mark.parametrize("box", BOXES)
def test_code_in_sass_counts_the_box_on_paper_once(box: Box) -> None:
    """All lanes of a warp come to one copy."""
    for lanes in (1, 32):
        first, *others = sums_at_copy("gmem_sectors", box, lanes)
        wanted = {"bulk_copies": 1, "bulk_load_sectors": box.sectors}
        assert first == Counter({name: value for name, value in wanted.items() if value})
        assert not any(others)
    (sums,) = sums_at_copy("gmem_bytes", box, 1)
    assert sums == Counter({"bulk_loaded": box.bytes} if box.bytes else {})
    (sums,) = sums_at_copy("what_limits", box, 1)
    sectors = box.sectors
    wanted = {"loaded": box.bytes, "load_sectors": sectors, "load_ideal": sectors}
    assert sums == Counter({name: value for name, value in wanted.items() if value})


def test_code_in_sass_counts_copies_of_unknown_size() -> None:
    (sums,) = sums_at_copy("gmem_sectors", Box((64, 20), (16, 8), (0, 0), steps=(2, 1)), 1)
    assert sums == Counter({"unsized_copies": 1})

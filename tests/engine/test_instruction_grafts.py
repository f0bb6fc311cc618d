"""Counting probes at single instructions of machine code: what is put there, and what stays as it was."""

from __future__ import annotations

import lzma
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.engine.test_fusion import survey_parts
from tests.sass.conftest import code_texts, listing
from tests.simgpu.device import Device, compiled
from tests.turns import due, due_pairs
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.fusion import fuse
from tui_probe.engine.grafting import instruction_code
from tui_probe.engine.grafting.grafts import GraftedKernel, Grafter
from tui_probe.engine.grafting.instruction_ptx import InstructionPtx
from tui_probe.engine.grafting.sass_positions import find_probed_parts, site_offsets
from tui_probe.engine.grafting.site_kernel_text import EXIT
from tui_probe.engine.grafting.snippet_ptx import LEADING_BYTES, ptx_version
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import built_in_names, load_probe, read_probe
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import BRA, BRANCH_CONDITION, RESERVED, WORD_BYTES, branch_target
from tui_probe.toolchain import find_disassembler
from tui_probe.trace.sites import parse_sites

pytestmark = pytest.mark.usefixtures("ptxas")

PROBES = [
    f"{name}{variant}" for name in ("gmem_sectors", "gmem_bytes", "tensorop_count") for variant in ("", "_by_line")
]
RECORDING = ["dmat", "dmat_compact"]
ARCHITECTURES = [80, 86, 90, 100]
KERNEL = """
.visible .entry mixed(.param .u64 x, .param .u32 n)
{
	.reg .pred %p<3>; .reg .b32 %r<16>; .reg .b64 %rd<6>;
	.shared .align 16 .b8 buffer[4096];
	ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
	mul.wide.u32 %rd2, %r2, 16; add.s64 %rd3, %rd1, %rd2; setp.lt.u32 %p1, %r2, %r1;
	@%p1 ld.global.b32 %r3, [%rd3+64];
	ld.v4.b32 {%r4, %r5, %r6, %r7}, [%rd3];
	mov.u32 %r8, buffer; shl.b32 %r9, %r2, 4; add.u32 %r8, %r8, %r9;
	cp.async.ca.shared.global [%r8], [%rd3+128], 16; cp.async.cg.shared.global [%r8], [%rd3+128], 16, %r1;
	@%p1 cp.async.ca.shared.global [%r8+4], [%rd3+132], 4, %r1; cp.async.wait_all;
	ld.shared.b32 %r10, [%r8]; add.u32 %r3, %r3, %r10;
	mov.b32 %r11, 0; mov.b32 %r12, 0;
	mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r11, %r12}, {%r4, %r5, %r6, %r7}, {%r3, %r10}, {%r11, %r12};
	@%p1 st.global.b32 [%rd3+64], %r11; st.global.b32 [%rd3+68], %r12;
	ret;
}
"""
ATTENTION = Path(__file__).parents[1] / "data" / "ptx" / "attn_fwd.sm_90a.cubin"
SOFTMAX = Path(__file__).parents[1] / "data" / "cubins" / "softmax.sm_90.cubin.xz"
GUARDED = re.compile(r"@!?P\d (?:LDG|STG)\b")


def cubin_of(text: str, arch: int, folder: Path) -> Cubin:
    """The cubin of a text with the kernel ``mixed``."""
    source, binary = folder / f"{arch}.ptx", folder / f"{arch}.bin"
    source.write_text(f".version {ptx_version(arch)}\n.target sm_{arch}\n.address_size 64\n{text}")
    Assembler().assemble(source, binary, f"sm_{arch}", "mixed")
    return Cubin.read(binary.read_bytes())


@pytest.fixture(scope="module")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Cubin]:
    folder, by_arch = tmp_path_factory.mktemp("cubins"), {}
    for arch in ARCHITECTURES:
        source, binary = folder / f"{arch}.ptx", folder / f"{arch}.bin"
        source.write_text(f".version {ptx_version(arch)}\n.target sm_{arch}\n.address_size 64\n{KERNEL}")
        Assembler().assemble(source, binary, f"sm_{arch}", "mixed")
        by_arch[arch] = Cubin.read(binary.read_bytes())
    return by_arch


def grafted(probe: str, cubin: Cubin, *, sampled: bool = False) -> GraftedKernel:
    return Grafter(load_probe(probe), Assembler(), samples_blocks=sampled).graft(cubin, "mixed")


def texts(image: bytes) -> dict[int, str]:
    """The instructions of the kernel by byte offset, as nvdisasm writes them."""
    if find_disassembler() is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    return {int(at, 16): text for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", listing(image))}


GRAFTS = [
    (probe, *other)
    for probe, other in due_pairs([*PROBES, *RECORDING], [*((arch, False) for arch in ARCHITECTURES), (90, True)])
]


@pytest.mark.parametrize(("probe", "arch", "sampled"), GRAFTS)
def test_nothing_but_the_probed_instructions_changes(
    probe: str, arch: int, cubins: dict[int, Cubin], *, sampled: bool
) -> None:
    cubin = cubins[arch]
    made = grafted(probe, cubin, sampled=sampled)
    before, after = (
        GraftTarget.from_cubin(cubin, "mixed"),
        GraftTarget.from_cubin(Cubin.read(made.probed_image), "mixed"),
    )
    branches = set(made.grafted.branches)
    for index, word in enumerate(before.words):
        at, now = index * WORD_BYTES, after.words[index]
        if at in branches:
            assert now.opcode == BRA
            assert branch_target(arch, at, now) >= before.code.size
        else:
            assert now == word
    moved = {word.with_field(122, 4, 0) for word in after.words[len(before.words) :]}
    left = {before.words[at // WORD_BYTES] for at in branches} - {before.words[at // 16] for at in before.exits()}
    assert {word.with_field(122, 4, 0) for word in left} <= moved


@pytest.mark.parametrize("arch", sorted({arch for _, arch, _ in GRAFTS}))
def test_grafted_code_is_read_by_nvdisasm(arch: int, cubins: dict[int, Cubin]) -> None:
    """The code of all grafts by one start of it, which takes longer than to read a kernel."""
    images = [
        grafted(probe, cubins[arch], sampled=sampled).probed_image for probe, its, sampled in GRAFTS if its == arch
    ]
    pieces = code_texts(arch, *(GraftTarget.from_cubin(Cubin.read(image), "mixed").words for image in images))
    assert not [text for piece in pieces for text in piece if "INVALID" in text or "???" in text]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_lanes_that_a_guard_leaves_out_meet_the_others_again(arch: int, cubins: dict[int, Cubin]) -> None:
    made = grafted("gmem_sectors", cubins[arch])
    written = texts(made.probed_image)
    added = [text for at, text in sorted(written.items()) if at >= made.grafted.start]
    guarded = [index for index, text in enumerate(added) if GUARDED.match(text)]
    assert guarded
    for index in guarded:
        back = added[:index][::-1]
        assert back[0].startswith("R2P PR")
        assert back[1].startswith("BSYNC")
        start = next(place for place, text in enumerate(back) if text.startswith("BSSY"))
        past = re.match(r"@(!?)(P\d) BRA", back[start - 1])
        own = re.match(r"@(!?)(P\d) ", added[index])
        assert past
        assert own
        assert (past[2], past[1]) == (own[2], "" if own[1] else "!")
        assert back[start + 1].startswith("P2R")


LOOP = """
.visible .entry mixed(.param .u64 x, .param .u32 n)
{
	.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>;
	.shared .align 4 .b8 buffer[4096];
	ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4;
	add.s64 %rd3, %rd1, %rd2; mov.u32 %r3, buffer; shl.b32 %r4, %r2, 2; add.u32 %r3, %r3, %r4;
$again:
	st.shared.b32 [%r3], %r1; bar.sync 0; ld.shared.b32 %r5, [%r3+4]; setp.lt.u32 %p2, %r5, %r2;
	@%p2 st.global.b32 [%rd3], %r5; sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra $again;
	ret;
}
"""


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Cubin:
    return cubin_of(LOOP, 90, tmp_path_factory.mktemp("loop"))


def test_branch_is_counted_in_all_lanes_and_leads_where_it_did(loop: Cubin) -> None:
    made = grafted("divergence_by_line", loop)
    before, written = GraftTarget.from_cubin(loop, "mixed"), texts(made.probed_image)
    ends = [index for index, word in enumerate(before.words) if word.operation == BRA & 0x1FF]
    (at,) = (
        index * WORD_BYTES
        for index in ends
        if branch_target(90, index * WORD_BYTES, before.words[index]) < index * WORD_BYTES
    )
    assert at in made.grafted.branches
    target = branch_target(90, at, before.words[at // WORD_BYTES])
    guard = re.match(r"@!?U?P\d ", texts(loop.image)[at])
    assert guard
    moved = [
        place
        for place, text in written.items()
        if place >= made.grafted.start and text.startswith(guard[0]) and "BRA" in text
    ]
    back = [
        place
        for place in moved
        if branch_target(
            90, place, GraftTarget.from_cubin(Cubin.read(made.probed_image), "mixed").words[place // WORD_BYTES]
        )
        == target
    ]
    assert len(back) == 1
    own = list(reversed([text for place, text in sorted(written.items()) if place < back[0]]))
    start = next(index for index, text in enumerate(own) if text.startswith("BSSY"))
    assert not own[start - 1].startswith(("@P", "@!P")), "no lane goes around what counts a branch"


def test_convergence_tests_of_the_compiler_are_not_counted(tmp_path: Path) -> None:
    """Before ``shfl``, where lanes may have diverged, ptxas inserts ``BRA.DIV`` and ``BRA.CONV``, which PTX lacks."""
    body = """
.visible .entry mixed(.param .u64 x)
{
	.reg .pred %p1; .reg .b32 %r<6>; .reg .b64 %rd<4>;
	ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
	ld.global.u32 %r2, [%rd3]; setp.gt.u32 %p1, %r2, 3;
	@%p1 bra $skip;
	activemask.b32 %r4; shfl.sync.bfly.b32 %r3, %r2, 1, 31, %r4; add.u32 %r2, %r2, %r3; ld.global.u32 %r5, [%rd3+4];
$skip:
	bar.warp.sync -1; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; st.global.u32 [%rd3], %r3;
	ret;
}
"""
    target = GraftTarget.from_cubin(cubin_of(body, 80, tmp_path), "mixed")
    conditions = {at * WORD_BYTES: word.field(*BRANCH_CONDITION) for at, word in enumerate(target.words)
                  if word.opcode == BRA}  # fmt: skip
    assert {2, 3} <= set(conditions.values())
    probe = load_probe("divergence_by_line")
    (offsets,) = site_offsets(probe, find_probed_parts(probe, target).sites).values()
    counted = conditions.keys() & set(offsets)
    assert counted
    assert not any(conditions[at] for at in counted)


def test_each_branch_has_a_record_of_its_own(tmp_path: Path) -> None:
    second = "$more: bar.sync 0; ld.shared.b32 %r1, [%r3]; setp.ne.u32 %p1, %r1, 0; @%p1 bra $more;\n\tret;"
    target = GraftTarget.from_cubin(cubin_of(LOOP.replace("ret;", second), 90, tmp_path), "mixed")
    probe = load_probe("divergence_by_line")
    parts = find_probed_parts(probe, target)
    places = [place for site in parts.sites for place in site.places]
    (offsets,) = site_offsets(probe, parts.sites).values()
    (lines,) = InstructionPtx(probe, places, 90, samples_blocks=False).sites.lines.values()
    assert len(lines) == len(offsets)
    assert sum(target.words[at // WORD_BYTES].opcode == BRA for at in offsets) >= 2


def test_lanes_meet_between_snippets_at_the_same_instruction(loop: Cubin) -> None:
    probes = [load_probe(f"{name}_by_line") for name in ("gmem_sectors", "smem_conflicts", "divergence")]
    made = Grafter(fuse(probes), Assembler(), samples_blocks=False).graft(loop, "mixed")
    added = [text for at, text in sorted(texts(made.probed_image).items()) if at >= made.grafted.start]
    pairs = [(index, text.split()[0]) for index, text in enumerate(added) if text.startswith(("BSSY", "BSYNC"))]
    assert [name for _, name in pairs] == ["BSSY", "BSYNC"] * (len(pairs) // 2)
    between = [
        added[end + 1] for (end, _), (start, _) in zip(pairs[1::2], pairs[2::2], strict=False) if start == end + 2
    ]
    assert between, "an access has code of two probes"
    assert all(text.startswith("R2P PR") for text in between)


def test_many_sums_fit_into_a_kernel_that_leaves_few_uniform_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves 11 pairs; the exit code of the default set names 18, that of the entry 9, where all are free."""
    cubin, name = Cubin.read(ATTENTION.read_bytes()), "attn_fwd"
    few = frozenset(range(19)) | frozenset(range(20, 40)) | {48, 49}
    monkeypatch.setattr(instruction_code, "used_uniform_registers", lambda *_: few)
    made = Grafter(fuse(survey_parts()), Assembler(), samples_blocks=False).graft(cubin, name)
    added = [text for at, text in sorted(texts(made.probed_image).items()) if at >= made.grafted.start]
    results = {index: re.findall(r"UR\d+", text)[0] for index, text in enumerate(added) if text.startswith("REDUX")}
    (shared, count), *_ = Counter(results.values()).most_common()
    assert count > 20, "the sums of one exit"
    assert shared not in {f"UR{number}" for number in few}
    sums = [index for index, register in results.items() if register == shared]
    assert all(re.fullmatch(rf"MOV R\d+, {shared}", added[index + 1]) for index in sums)


NEEDS_PTX = {"inst_mix_by_line", "nan_check"}
COUNTING = [name for name in built_in_names() if load_probe(name).counts and name not in NEEDS_PTX]


@pytest.mark.parametrize("pair", due(combinations(COUNTING, 2)), ids="+".join)
def test_probes_fit_fused(pair: tuple[str, str]) -> None:
    """Lanes part once at an exit, with any number of probes that add there."""
    probe = fuse([load_probe(name) for name in pair])
    cubin = Cubin.read(lzma.decompress(SOFTMAX.read_bytes()))
    assert Grafter(probe, Assembler(), samples_blocks=False).graft(cubin, "softmax").grafted.branches


def test_fused_exit_adds_to_the_records_of_each_probe(cubins: dict[int, Cubin]) -> None:
    """Two warps and a part of one, with counts of zero: each lane counts itself in both records of its warp."""
    probe = fuse([load_probe(name) for name in ("gmem_bytes", "divergence")])
    parts = find_probed_parts(probe, GraftTarget.from_cubin(cubins[90], "mixed"))
    ptx = InstructionPtx(probe, [place for site in parts.sites for place in site.places], 90, samples_blocks=False)
    kernel, device = compiled(ptx.head + ptx.kernels()[EXIT]), Device()
    maps = [device.upload(np.zeros((3, own_map.slot_bytes), np.uint8)) for own_map in probe.maps]
    device.launch(kernel, bytes(LEADING_BYTES), *map(np.uint64, maps), block=(72,), shared=1 << 17)
    for own_map, address in zip(probe.maps, maps, strict=True):
        field = next(field for field in own_map.fields if field.name == "threads")
        records = device.download(address, np.zeros((3, own_map.slot_bytes), np.uint8))
        counted = records[:, field.offset : field.offset + 4].copy().view(np.uint32)
        assert counted.ravel().tolist() == [32, 32, 8]


@pytest.mark.parametrize("probe", ["async_wait", "barrier_wait", "warp_progress"])
def test_probes_of_instructions_that_are_not_looked_for_are_refused(probe: str, cubins: dict[int, Cubin]) -> None:
    """Even in a kernel without any of them: no one knows that."""
    with pytest.raises(UnsupportedKernelError) as caught:
        grafted(probe, cubins[90])
    assert caught.value.reason.code == "needs-instructions"


@pytest.mark.parametrize(
    ("position", "works"),
    [
        ("wmma.mma", False), ("wmma.mma:mma", True), ("wmma:mma", False), ("ldu.global", False), ("atom.global", False),
        ("atom.global:red.global", True), ("atom.global.add:red.global", False), ("ld.global.f32", False),
        ("ld.global.!nc", False), ("mma.tf32", True), ("atom:red", False), ("atom:red.!async", True),
        ("mma.s8", False), ("mma.f16:mma.bf16", True), ("fma.f32", False), ("fma.f32:mad.f32", True),
        ("fma.rn.f32:mad.f32", False), ("add.f64:sub.f64", True),
        ("add.f64", False), ("fma.f16x2", False), ("div.f32", False), ("ldmatrix.x4", True), ("ldmatrix.shared", False),
        ("atom.shared:red.global", False), ("loop", False),
    ],
)  # fmt: skip
def test_replaced_instructions_are_not_counted_as_none(
    position: str, works: bool, cubins: dict[int, Cubin], tmp_path: Path
) -> None:
    source = (
        '[map.m]\nlevel = "warp"\ncap = 1\n[map.m.regs]\na = "u32"\n[probe.p]\nposition = "kernel"\n'
        'before = ".reg .b32 %c;\\nmov.u32 %c, 0;"\nafter = "ADD [ m ] {%c};"\n'
        f'[probe.q]\nposition = "{position}"\nbefore = "add.u32 %c, %c, 1;"\n'
    )
    grafter = Grafter(read_probe(source.encode(), tmp_path / "own.toml"), Assembler(), samples_blocks=False)
    if works:
        assert grafter.graft(cubins[90], "mixed").grafted.branches
        return
    with pytest.raises(UnsupportedKernelError) as caught:
        grafter.graft(cubins[90], "mixed")
    assert caught.value.reason.code == "needs-instructions"


@pytest.mark.parametrize("arch", due(ARCHITECTURES))
def test_snippets_write_no_register_of_the_kernel(arch: int, cubins: dict[int, Cubin]) -> None:
    made = grafted("gmem_bytes", cubins[arch])
    target = GraftTarget.from_cubin(cubins[arch], "mixed")
    original = set(texts(cubins[arch].image).values())
    added = [text for at, text in texts(made.probed_image).items() if at >= made.grafted.start]
    matches = (re.match(r"(?:@!?U?P\d )?[A-Z][\w.]* (?:P\d, )?R(\d+)", text) for text in added if text not in original)
    written = {match.string: int(match[1]) for match in matches if match}
    assert written
    for text, register in written.items():
        assert register >= target.registers - RESERVED or text.startswith(("RED", "R2P", "ST")), text


def test_each_instruction_has_a_record_of_its_own(cubins: dict[int, Cubin]) -> None:
    info = grafted("gmem_sectors_by_line", cubins[90]).info
    (line,) = (text for text in info.splitlines() if text.startswith("sites 0 "))
    numbers = [int(word) for word in line.split()[2:]]
    instructions = GraftTarget.from_cubin(cubins[90], "mixed").words
    assert sorted({instructions[at // WORD_BYTES].operation for at in numbers}) == [0x180, 0x181, 0x186, 0x1AE]
    assert f"cap {len(numbers)} " in info


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sites_have_offsets_and_names_of_nvdisasm(arch: int, cubins: dict[int, Cubin]) -> None:
    made, written = grafted("gmem_sectors_by_line", cubins[arch]), texts(cubins[arch].image)
    (parsed,) = parse_sites(made.sites.encode())
    shown = {site.instruction.line: site.instruction for site in parsed.sites}
    assert list(shown) == [at for at in made.grafted.branches if at in shown]
    for at, one in shown.items():
        name, *parts = re.sub(r"^@!?P\d ", "", written[at]).split()[0].split(".")
        size = [part for part in parts if part in ("64", "128")]
        assert one.opcode == ".".join([name, *size])
        assert (one.bytes == 16) == ("128" in parts), written[at]
    assert [site.instruction.line for site in parsed.maps["sites"]] == list(shown)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_lanes_exchange_the_addresses_of_accesses(arch: int, cubins: dict[int, Cubin]) -> None:
    """A value loaded from one address is the same in all lanes, and ptxas would drop an exchange of it."""
    made = grafted("gmem_sectors_by_line", cubins[arch])
    added = [text for at, text in sorted(texts(made.probed_image).items()) if at >= made.grafted.start]
    searched = sum("MATCH.ANY" in text for text in added)
    assert searched >= 4
    assert sum("SHFL.IDX" in text for text in added) == 2 * searched, "the two halves of an address"


def test_kernels_with_the_same_accesses_share_what_is_assembled(cubins: dict[int, Cubin]) -> None:
    class Counting(Assembler):
        runs = 0

        def assemble(self, *given: object, **named: object) -> object:  # type: ignore[override]
            self.runs += 1
            return super().assemble(*given, **named)  # type: ignore[arg-type]

    assembler = Counting()
    grafter = Grafter(load_probe("gmem_sectors"), assembler, samples_blocks=False)
    first, second = (grafter.graft(cubins[90], "mixed") for _ in range(2))
    assert assembler.runs == 1
    assert first == second


def test_a_probe_that_needs_what_machine_code_does_not_tell_is_refused(cubins: dict[int, Cubin]) -> None:
    with pytest.raises(UnsupportedKernelError) as caught:
        grafted("nan_check", cubins[90])
    assert caught.value.reason.code in ("needs-instructions", "graft-many-records")


@pytest.mark.parametrize(("arch", "sampled"), [*((arch, False) for arch in ARCHITECTURES), (90, True)])
def test_each_thread_saves_its_accesses(arch: int, cubins: dict[int, Cubin], *, sampled: bool) -> None:
    """Address and clock of each access, its offset, and at the exits how many there were."""
    made = grafted("dmat", cubins[arch], sampled=sampled)
    assert "storage 1 rows record 16 cap 0 even" in made.info.splitlines()
    (parsed,) = parse_sites(made.sites.encode())
    added = [text for at, text in sorted(texts(made.probed_image).items()) if at >= made.grafted.start]
    stores = [index for index, text in enumerate(added) if re.match(r"(@!?P\d )?STG\.E\.EF\.128", text)]
    assert len(stores) == len(parsed.sites) > 4
    for site in parsed.sites:
        place = next(index for index, text in enumerate(added) if text.endswith(f", {site.instruction.line:#x}"))
        assert sum(place < index < place + 60 for index in stores) >= 1
        assert any("SR_CLOCKLO" in text for text in added[place : place + 60])
    ends = [index for index, text in enumerate(added) if re.match(r"(@!?P\d )?EXIT", text)]
    assert re.match(r"STG\.E (desc|\[)", added[ends[-1] - 1])
    assert len(ends) == len(GraftTarget.from_cubin(cubins[arch], "mixed").exits()) + sampled, (
        "what is not in the sample counts none"
    )


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_lanes_that_part_at_the_entry_meet_before_the_kernel_begins(arch: int, cubins: dict[int, Cubin]) -> None:
    """One lane saves for its warp, and what it has under way is waited for."""
    made = grafted("dmat", cubins[arch])
    written = texts(made.probed_image)
    entry = [text for at, text in sorted(written.items()) if at >= made.grafted.start]
    meeting = re.match(r"BSSY(?:\.RECONVERGENT)? (B\d+)", entry[0])
    assert meeting
    end = next(index for index, text in enumerate(entry) if re.match(rf"BSYNC(?:\.RECONVERGENT)? {meeting[1]}$", text))
    assert entry[end - 1] == "NOP"
    assert sum("STG" in text for text in entry[:end]) == 3, "a mark, and a record of 24 bytes"
    first = Cubin.read(made.probed_image)
    wait = GraftTarget.from_cubin(first, "mixed").words[(made.grafted.start + 16 * (end - 1)) // WORD_BYTES].wait_mask
    assert wait

"""Phases of kernels without PTX: found by the work of instructions, recorded by code that is grafted into them."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.bench.assembling import assembler
from tests.engine.kernels import DATA
from tests.engine.test_grafts import prepared
from tests.sass.conftest import code_texts, listing
from tests.sass.test_wait_probe import code_at
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.cache import Cache
from tui_probe.engine.grafting.graft_gate import GraftGate, OpenGate, TrialOutcome, TrialPart
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.grafting.instruction_ptx import InstructionPtx
from tui_probe.engine.grafting.sass_phases import _entered_while_counting, _takes_no_time, sass_phases
from tui_probe.engine.grafting.sass_positions import find_probed_parts
from tui_probe.engine.grafting.sass_site_file import sass_site_file
from tui_probe.engine.trial import record_trials
from tui_probe.engine.trial.trial_kernel import THREADS_OF_GRID, TRIAL_KERNEL, TrialFailedError
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.phase_names import WAITS
from tui_probe.ptx.tree import Instruction
from tui_probe.reasons import because
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_name
from tui_probe.sass.register_room import RegisterRoom
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.uniform_registers import used_uniform_registers
from tui_probe.sass.wait_classes import is_mbarrier_arrival, is_mbarrier_wait
from tui_probe.sass.wait_sites import fixed_offsets
from tui_probe.sass.words import BSYNC, EXIT, NOP, RESERVED, WORD_BYTES, new_word, operation_of
from tui_probe.toolchain import find_disassembler
from tui_probe.trace.sites import parse_sites

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.grafting.grafts import GraftedKernel
    from tui_probe.reasons import Reason

PROBE = load_probe("phases")


ROUNDS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry rounds(.param .u64 out, .param .u32 turns, .param .u32 rounds) {
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    .shared .align 8 .b64 barrier;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [turns];
    ld.param.u32 %r2, [rounds];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r3, barrier;
    mov.u32 %r4, 0;
    mov.f32 %f1, 0f3F800000;
outer:
    .pragma "nounroll";
    and.b32 %r5, %r4, 1;
again:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], %r5;
    @!%p1 bra again;
    mov.u32 %r6, 0;
inner:
    .pragma "nounroll";
    PRODUCTS
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p2, %r6, %r2;
    @%p2 bra inner;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p3, %r4, %r1;
    @%p3 bra outer;
    st.global.f32 [%rd2], %f1;
    ret;
}
"""


@pytest.fixture(scope="module")
def waits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels with TMA, mbarriers and wgmma, as machine code without line information."""
    binary = tmp_path_factory.mktemp("waits") / "transactions.bin"
    assembler().assemble(DATA / "transactions.sm_90a.ptx", binary, "sm_90a", "producer_consumer")
    return binary


def works(target: GraftTarget, stage: str) -> list[str]:
    return [phase.start.work for phase in sass_phases(PROBE, target)[0] if phase.start.stage == stage]


def test_phases_of_attention_are_found_in_machine_code() -> None:
    target = GraftTarget.from_cubin(Cubin.read((DATA / "attn_fwd.sm_90a.cubin").read_bytes()), "attn_fwd")
    assert works(target, "loop") == [
        "copy wait", "mma", "wgmma wait", "compute", "exponential", "compute", "exponential", "mma", "barrier wait",
    ]  # fmt: skip


PRODUCT = """
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f2, %f3, %f4, %f5}, %rd3, %rd4, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
"""


@pytest.mark.parametrize(
    ("between", "expected"),
    [("", ["mma", "wgmma wait"]), ("bar.sync 0;", ["mma", "wgmma wait"] * 2)],
)
def test_products_that_wait_for_each_other_are_one_phase(between: str, expected: list[str], tmp_path: Path) -> None:
    """ptxas puts such waits between the products of one group if it cannot overlap them."""
    text = ROUNDS.replace("sm_90", "sm_90a").replace(".reg .f32 %f<3>", ".reg .f32 %f<6>").replace("%rd<3>", "%rd<5>")
    text = text.replace("    mov.u32 %r4, 0;", "    mov.u32 %r4, 0; mov.u64 %rd3, 0; mov.u64 %rd4, 64;").replace(
        "st.global.f32 [%rd2], %f1", "st.global.v4.f32 [%rd2], {%f2, %f3, %f4, %f5}"
    )
    source, binary = tmp_path / "rounds.ptx", tmp_path / "rounds.bin"
    source.write_text(text.replace("PRODUCTS", (PRODUCT + between) * 2))
    assembler().assemble(source, binary, "sm_90a", "rounds")
    target = GraftTarget.from_cubin(Cubin.read(binary.read_bytes()), "rounds")
    phases, _ = sass_phases(PROBE, target)
    inner = [phase for phase in phases if phase.start.loop is not None and phase.start.work in {*expected}]
    assert [phase.start.work for phase in inner] == expected
    of_waits = [phase.offset // WORD_BYTES for phase in inner if phase.start.work == "wgmma wait"]
    products = [index for index, word in enumerate(target.words) if operation_name(word, 90) == "HGMMA"]
    for own in of_waits:  # a record delays no product
        assert max(index for index in products if index <= own + 1) < own
    assert [phase.start.multiply_adds for phase in inner if phase.start.work == "mma"] == (
        [2 * 64 * 8 * 16 // 128] if not between else [64 * 8 * 16 // 128] * 2
    )


def test_waits_and_copies_of_a_pipeline_are_phases(waits: Path) -> None:
    phases, _ = sass_phases(PROBE, GraftTarget.from_cubin(Cubin.read(waits.read_bytes()), "producer_consumer"))
    found_works = {phase.start.work for phase in phases}
    barriers = {"cluster barrier wait", "named barrier wait"}
    assert {"mbarrier wait", "wgmma wait", "bulk copy", "mma", "global store", *barriers} <= found_works
    (products,) = {
        phase.start.multiply_adds for phase in phases if phase.start.multiply_adds and phase.start.stage == "loop"
    }
    assert products == 4 * 64 * 16 * 16 // 128, "four HGMMA.64x16x16 of four warps"
    assert any(phase.start.signals for phase in phases if phase.start.work == "bulk copy")
    assert {phase.start.barriers for phase in phases if phase.start.work == "named barrier wait"} == {("barrier 1",)}
    assert len({phase.offset for phase in phases}) == len(phases)


def test_mbarrier_waits_are_those_that_nvdisasm_names(waits: Path) -> None:
    if find_disassembler() is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    cubin, count = Cubin.read(waits.read_bytes()), 0
    for section in re.split(r"(?m)^\.text\.", listing(waits.read_bytes()))[1:]:
        target = GraftTarget.from_cubin(cubin, section.split(":")[0])
        for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?);", section):
            if "SYNCS" in text:
                assert is_mbarrier_wait(target.words[int(at, 16) // WORD_BYTES]) == ("PHASECHK" in text), text
                count += 1
    assert count > 20


TRIES = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry tries(.param .u32 parity) {
    .shared .align 8 .b64 full;
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u32 %r2, [parity];
    mov.u32 %r1, full;
    mbarrier.init.shared.b64 [%r1], 1;
    bar.sync 0;
    $with_hint:
    mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, 10000000;
    @!%p1 bra $with_hint;
    $without_sleep:
    mbarrier.test_wait.parity.shared.b64 %p1, [%r1], %r2;
    @!%p1 bra $without_sleep;
    mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], 16;
    mbarrier.inval.shared.b64 [%r1];
    ret;
}
"""


@pytest.mark.parametrize("arch", [90, 100, 120])
def test_tests_of_mbarriers_are_waits_and_only_arrivals_signal(tmp_path: Path, arch: int) -> None:
    """Of four kinds of SYNCS, two make and end barriers; one tests the phase, with and without a suspended warp."""
    source, binary = tmp_path / "tries.ptx", tmp_path / "tries.bin"
    source.write_text(TRIES.replace("8.0", "8.8").replace("sm_90", f"sm_{arch}"))
    assembler().assemble(source, binary, f"sm_{arch}", "tries")
    target = GraftTarget.from_cubin(Cubin.read(binary.read_bytes()), "tries")
    operations = [word for word in target.words if operation_name(word, arch) == "SYNCS"]
    waits, arrivals = map(
        sum, ((test(word) for word in operations) for test in (is_mbarrier_wait, is_mbarrier_arrival))
    )
    assert (waits >= 3, arrivals) == (True, 1)
    assert len(operations) - waits - arrivals >= 2
    phases, _ = sass_phases(PROBE, target)
    assert {phase.start.work for phase in phases} & set(WAITS) == {"barrier wait", "mbarrier wait"}
    if find_disassembler() is not None:
        ((_, section),) = [own for own in enumerate(re.split(r"(?m)^\.text\.", listing(binary.read_bytes()))) if own[0]]
        texts = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@\S+ )?SYNCS\.(.*?);", section)
        assert sum("PHASECHK" in text for text in texts) == waits


@pytest.mark.parametrize("name", ["static_barriers", "dynamic_barriers"])
def test_barriers_of_a_loop_differ_by_their_addresses(tmp_path: Path, name: str) -> None:
    """Four arrays of two barriers follow the tiles of K and V."""
    binary = tmp_path / "pipeline.bin"
    assembler().assemble(DATA / "kv_pipeline.sm_90a.ptx", binary, "sm_90a", name)
    phases, missing = sass_phases(PROBE, GraftTarget.from_cubin(Cubin.read(binary.read_bytes()), name))
    assert missing == 0
    full_k, empty_k, full_v, empty_v = (f"shared+{2048 + 16 * number}[2]" for number in range(4))
    consumer, producer = sorted({phase.loop for phase in phases if phase.loop is not None})
    waits = [
        (phase.loop, *phase.start.barriers)
        for phase in sorted(phases, key=lambda own: own.offset)
        if phase.start.stage == "loop" and phase.start.work == "mbarrier wait"
    ]
    assert waits == [(consumer, full_k), (consumer, full_v), (producer, empty_k), (producer, empty_v)]
    copies = [phase.start for phase in phases if phase.start.work == "bulk copy"]
    assert [[signal.name for signal in copy.signaled] for copy in copies] == [[full_k], [full_v]]
    of_consumer = [phase.start for phase in phases if phase.loop == consumer and phase.start.signals]
    assert {signal.name for start in of_consumer for signal in start.signaled} == {empty_k, empty_v}
    assert [[signal.parameters for signal in copy.signaled] for copy in copies] == [[(1,)], [(2,)]]
    assert not any(start.signals_first for start in of_consumer if start.work != "mbarrier wait")
    assert all(start.signals_first for start in of_consumer if start.work == "mbarrier wait")
    assert not any(phase.start.signals for phase in phases if phase.start.stage == "prologue"), "it makes the barriers"


REMOTE = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry remote(.param .u64 x, .param .u32 rank, .param .u32 n)
{
	.reg .b32 %r<13>; .reg .b64 %d<3>; .reg .pred %p<4>;
	.shared .align 8 .b64 full[4]; .shared .align 8 .b64 empty[4]; .shared .align 128 .b8 tile[4096];
	ld.param.u64 %d1, [x]; ld.param.u32 %r1, [rank]; ld.param.u32 %r9,[n];
	mov.u32 %r2, empty; mov.u32 %r3, 0; mov.u32 %r10, full;
again:
	and.b32 %r4, %r3, 3; shl.b32 %r5, %r4, 3; add.u32 %r6, %r2, %r5; add.u32 %r11, %r10, %r5;
wait:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r11], %r4; @!%p2 bra wait;
	ld.shared.u32 %r12, [tile]; st.global.u32 [%d1], %r12;
	mapa.shared::cluster.u32 %r7, %r6, %r1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];
	add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r9; @%p1 bra again;
	ret;
}
"""


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_arrivals_in_other_blocks_name_their_barrier(tmp_path: Path, target: str) -> None:
    """In SASS, ``mapa`` is a permutation of bytes."""
    (tmp_path / "remote.ptx").write_text(REMOTE.replace("sm_90a", target))
    assembler().assemble(tmp_path / "remote.ptx", tmp_path / "remote.bin", target, "remote")
    phases, _ = sass_phases(PROBE, GraftTarget.from_cubin(Cubin.read((tmp_path / "remote.bin").read_bytes()), "remote"))
    waits = {name for phase in phases if phase.start.work == "mbarrier wait" for name in phase.start.barriers}
    signals = {signal.name for phase in phases for signal in phase.start.signaled}
    assert (waits, signals) == ({"shared+0"}, {"shared+32"})


def test_grafted_phases_have_sites(waits: Path) -> None:
    grafter = Grafter(PROBE, assembler(), samples_blocks=False)
    grafted = grafter.graft(Cubin.read(waits.read_bytes()), "ring")
    sites = json.loads(grafted.sites)["probes"][0]["sites"]
    works_there = [site["phase"]["work"] for site in sites]
    assert {"mbarrier wait", "global store"} <= set(works_there)
    assert {site["offset"] for site in sites} <= set(grafted.grafted.branches)
    assert "mbarrier wait" in works_there


def test_iterations_of_innermost_loops_are_counted(tmp_path: Path) -> None:
    """A start in a loop has code of its own, that of an iteration counts."""
    assembler().assemble(DATA / "waits.sm_90a.ptx", tmp_path / "staged.bin", "sm_90a", "staged")
    cubin = Cubin.read((tmp_path / "staged.bin").read_bytes())
    probe = replace(PROBE, maps=(PROBE.maps[0], replace(PROBE.maps[1], every=8)))
    target = GraftTarget.from_cubin(cubin, "staged")
    phases, _ = sass_phases(probe, target)
    assert [(phase.start.sample_every, phase.start.iterates) for phase in phases if phase.loop] == (
        [(8, True), (8, False), (8, True), (8, False), (8, False)]
    )
    assert {phase.start.sample_every for phase in phases if phase.loop is None} == {0}
    sites = find_probed_parts(probe, target).sites
    kernels = InstructionPtx(
        probe, [place for site in sites for place in site.places], 90, samples_blocks=False
    ).kernels()
    codes = [text for name, text in kernels.items() if "site" in name]
    outside = [text for text in codes if re.search(r"mov\.u32 %\w+, -1;", text)]
    begins = [text for text in codes if re.search(r"add\.u32 (%\w*iteration\w*), \1, 1;", text)]
    assert (len(codes), len(outside), len(begins)) == (3, 1, 1)
    assert [InstructionPtx(own, [], 90, samples_blocks=False).words for own in (probe, PROBE)] == [3, 2]
    kernel = Grafter(probe, assembler(), samples_blocks=False).graft(cubin, "staged")
    assert kernel.sites.count('"every": 8') == 5
    counted = {phase.offset for phase in sass_phases(probe, target)[0] if phase.start.sample_every}
    assert counted <= kernel.grafted.copies.keys()  # also if the code of a record tests for the iteration


def test_records_of_sampled_blocks_other_than_the_first_are_refused_with_both_options(tmp_path: Path) -> None:
    assembler().assemble(DATA / "waits.sm_90a.ptx", tmp_path / "staged.bin", "sm_90a", "staged")
    cubin = Cubin.read((tmp_path / "staged.bin").read_bytes())
    probe = replace(PROBE, maps=(PROBE.maps[0], replace(PROBE.maps[1], every=8)))
    with pytest.raises(UnsupportedKernelError) as refused:
        Grafter(probe, assembler(), samples_blocks=True).graft(cubin, "staged")
    assert refused.value.reason.code == "graft-sampled-records"
    assert Grafter(PROBE, assembler(), samples_blocks=True).graft(cubin, "staged").sites
    assert Grafter(probe, assembler(), samples_blocks=False).graft(cubin, "staged").sites


@pytest.mark.parametrize("records", [{"latest": True}, {"every": 8}])
def test_kernel_with_registers_for_first_records_only_says_so(waits: Path, records: dict[str, int]) -> None:
    probe = replace(PROBE, maps=(PROBE.maps[0], replace(PROBE.maps[1], **records)))
    with pytest.raises(UnsupportedKernelError) as refused:
        Grafter(probe, assembler(), samples_blocks=False).graft(Cubin.read(waits.read_bytes()), "producer_consumer")
    assert refused.value.reason.code == "graft-records"
    with pytest.raises(UnsupportedKernelError) as refused:
        Grafter(probe, assembler(), samples_blocks=False).graft(
            Cubin.read(waits.read_bytes()), "producer_consumer", short_records=False
        )
    assert refused.value.reason.code == "graft-registers"


def test_loop_behind_another_without_a_record_between_is_recorded_whole(tmp_path: Path) -> None:
    """Nothing would end the count of the first loop's iterations before the second loop begins."""
    assembler().assemble(DATA / "waits.sm_90a.ptx", tmp_path / "staged.bin", "sm_90a", "staged")
    target = GraftTarget.from_cubin(Cubin.read((tmp_path / "staged.bin").read_bytes()), "staged")
    probe = replace(PROBE, maps=(PROBE.maps[0], replace(PROBE.maps[1], every=8)))
    room = {phase.offset for phase in sass_phases(probe, target)[0] if phase.start.stage == "loop"}
    phases, missing = sass_phases(probe, target, lambda index: index * WORD_BYTES in room)
    assert missing > 1
    assert {phase.start.sample_every for phase in phases} == {8}, "both are behind the entry only"
    graph = FlowGraph.from_target(target)
    first, second = (phase for phase in phases if phase.start.iterates)
    later = graph.block_at(second.offset // WORD_BYTES)
    before = next(block for block in graph.predecessors[later] if not graph.dominates(later, block))
    edges = tuple(
        (*own, before) if block == graph.block_at(first.offset // WORD_BYTES) else own
        for block, own in enumerate(graph.successors)
    )
    assert _entered_while_counting(replace(graph, successors=edges), phases) == {second.start.innermost_loop_number}


def test_phase_that_is_a_loop_is_recorded_before_it(tmp_path: Path) -> None:
    """A record within the loop would be one for each of its iterations."""
    source, binary = tmp_path / "rounds.ptx", tmp_path / "rounds.bin"
    products = "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 16
    source.write_text(ROUNDS.replace("PRODUCTS", products))
    assembler().assemble(source, binary, "sm_90", "rounds")
    target = GraftTarget.from_cubin(Cubin.read(binary.read_bytes()), "rounds")
    phases, missing = sass_phases(PROBE, target)
    assert not missing
    graph = FlowGraph.from_target(target)
    product = next(number for number, word in enumerate(target.words) if operation_name(word, 90) == "FFMA")
    inner = graph.block_at(product)
    assert inner in graph.successors[inner]
    blocks = {phase.start.work: graph.block_at(phase.offset // WORD_BYTES) for phase in phases if phase.start.loop}
    assert blocks.keys() == {"mbarrier wait", "compute"}
    assert blocks["compute"] == inner - 1


def test_phase_behind_a_branch_is_recorded_at_the_branch(tmp_path: Path) -> None:
    """A loop is left by a block that only branches, to code behind another loop."""
    source, binary = tmp_path / "roles.ptx", tmp_path / "roles.bin"
    other = "setp.lt.u32 %p2, %r2, 8;\n@%p2 bra.uni other;\nouter:"
    text = ROUNDS.replace("PRODUCTS", "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 16).replace("outer:", other, 1)
    ending = '    @%p3 bra outer;\n    bra.uni done;\nother:\n    .pragma "nounroll";\n'
    ending += "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 16
    ending += "    add.u32 %r4, %r4, 1;\n    setp.lt.u32 %p3, %r4, %r1;\n    @%p3 bra other;\ndone:\n"
    source.write_text(text.replace("    @%p3 bra outer;\n", ending))
    assembler().assemble(source, binary, "sm_90", "rounds")
    target = GraftTarget.from_cubin(Cubin.read(binary.read_bytes()), "rounds")
    phases, missing = sass_phases(PROBE, target)
    assert not missing
    names = [operation_name(target.words[phase.offset // WORD_BYTES], 90) for phase in phases]
    assert "BRA" in names
    kernel = Grafter(PROBE, assembler(), samples_blocks=False).graft(Cubin.read(binary.read_bytes()), "rounds")
    assert {phase.offset for phase in phases} <= {*kernel.grafted.branches, *kernel.grafted.copies}


TILES = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry tiles(.param .u64 in, .param .u32 tiles, .param .u32 rounds, .param .u64 out)
{
    .reg .pred %p<6>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<6>;
    .shared .align 16 .b8 data[4096];
    .shared .align 8 .b8 full[8];
    ld.param.u64 %rd1, [in];
    ld.param.u32 %r1, [tiles];
    ld.param.u32 %r2, [rounds];
    ld.param.u64 %rd2, [out];
    mov.u32 %r3, data;
    mov.u32 %r4, full;
    mov.u32 %r5, %tid.x;
    mov.u32 %r6, 0;
    mov.u32 %r10, 0;
    mov.u32 %r12, 1;
    setp.ne.u32 %p1, %r5, 0;
tile:
    .pragma "nounroll";
    @%p1 bra behind;
    mov.u32 %r7, 0;
    setp.eq.u32 %p5, %r2, 0;
    @%p5 bra behind;
round:
    .pragma "nounroll";
    and.b32 %r8, %r7, 1;
again:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], %r8;
    @!%p2 bra again;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 1024, [%r4];
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p3, %r7, %r2;
    @%p3 bra round;
behind:
    bar.warp.sync 0xffffffff;
    mul.lo.u32 %r10, %r10, 77;
    add.u32 %r10, %r10, %r6;
    div.u32 %r11, %r10, %r2;
    rem.u32 %r13, %r11, 1234577;
    add.u32 %r10, %r13, %r10;
    div.u32 %r14, %r13, %r12;
    add.u32 %r12, %r14, %r10;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p4, %r6, %r1;
    @%p4 bra tile;
    st.global.u32 [%rd2], %r12;
    ret;
}
"""


def test_phase_behind_an_inner_loop_is_recorded_once(tmp_path: Path) -> None:
    """Lanes that copy nothing are in the phase already. At the end of the loop, each round would have a record."""
    (tmp_path / "tiles.ptx").write_text(TILES)
    assembler().assemble(tmp_path / "tiles.ptx", tmp_path / "tiles.bin", "sm_90a", "tiles")
    target = GraftTarget.from_cubin(Cubin.read((tmp_path / "tiles.bin").read_bytes()), "tiles")
    phases, _ = sass_phases(PROBE, target)
    (behind,) = (phase for phase in phases if phase.may_be_inside)
    graph = FlowGraph.from_target(target)
    copy = next(index for index, word in enumerate(target.words) if operation_name(word, 90) == "UBLKCP")
    rounds = min(
        (loop.blocks for loop in graph.loops if graph.block_at(copy) in loop.blocks and len(loop.blocks) > 1), key=len
    )
    assert graph.block_at(behind.offset // WORD_BYTES) not in rounds
    assert (behind.start.work, behind.start.stage) == ("integer", "loop")
    sites = (
        Grafter(PROBE, assembler(), samples_blocks=False)
        .graft(Cubin.read((tmp_path / "tiles.bin").read_bytes()), "tiles")
        .sites
    )
    (phase,) = (site.phase for site in parse_sites(sites.encode())[0].sites if site.phase and site.phase.is_reentrant)
    assert phase.work == "integer"


def test_only_offsets_of_a_list_are_fixed(waits: Path) -> None:
    """An entry for an mbarrier instruction also has its register, address and flags, which may look like offsets."""
    target = GraftTarget.from_cubin(Cubin.read(waits.read_bytes()), "producer_consumer")
    listed = {offset // WORD_BYTES for offset in fixed_offsets(target)} - {0}
    assert len(listed) > 20
    assert {operation_name(target.words[index], target.arch) for index in listed} <= {"SYNCS"}


@pytest.mark.parametrize(("opcode", "needs_none"), [(BSYNC, True), (EXIT, True), (NOP, False)])
def test_block_that_only_reconverges_or_exits_needs_no_record(opcode: int, needs_none: bool) -> None:
    target = GraftTarget.from_cubin(Cubin.read((DATA / "attn_fwd.sm_90a.cubin").read_bytes()), "attn_fwd")
    graph = FlowGraph.from_target(target)
    first = next(block.start for block in graph.blocks if len(block) == 1)
    changed = [*target.words[:first], new_word(opcode, 1), *target.words[first + 1 :]]
    code = [Instruction("mov", (), (), MADE_UP) for _ in changed]
    assert _takes_no_time(graph, code, changed, first) is needs_none


def test_starts_without_an_instruction_are_counted(waits: Path) -> None:
    """Two waits of a pipeline consist of instructions that may not be moved."""
    target = GraftTarget.from_cubin(Cubin.read(waits.read_bytes()), "producer_consumer")
    _, missing = sass_phases(PROBE, target)
    assert missing == 2
    (probe,) = parse_sites(sass_site_file("phases", target, [], [], {}, missing_starts=missing).encode())
    assert probe.phases_missing == missing


RECORD = """
MOV Rw, URc
CS2R.32 Rv, SR_CLOCKLO
MOV Rb, URh
MOV Ra, URl
VIMNMX Rw, Rw, 0x800, PT
VOTEU.ANY URs, UPT, PT
IMAD.WIDE.U32 Ra, Rw, 0x8, Ra
MOV Rw, LINE
ULOP3.LUT URs, URs, 0x1, URZ, 0xc0, !UPT
STG.E.EF.64 [Ra], Rv
UIADD3 URc, URc, URs, URZ
NOP
"""
LENGTH = RECORD.strip().count("\n") + 1
MOST_STALL_CYCLES = 18


def record_at(kernel: GraftedKernel, name: str, offset: int) -> int:
    """Return the offset of the code of a record: behind a branch, or in the copy of a loop."""
    copy = kernel.grafted.copies.get(offset)
    if copy is None:
        return code_at(kernel.probed_image, name, offset)
    code_words = GraftTarget.from_cubin(Cubin.read(kernel.probed_image), name).words
    return (
        copy
        - (LENGTH if code_words[copy // WORD_BYTES - 1].operation == operation_of(NOP) else LENGTH - 1) * WORD_BYTES
    )


def with_names(text: str, names: dict[str, str]) -> str:
    return re.sub(r"\bU?R\d+", lambda match: names.get(match[0], match[0]), text)


@pytest.mark.parametrize("sampled", [False, True])
def test_warps_that_exchange_registers_have_records_in_their_own(waits: Path, sampled: bool) -> None:
    if find_disassembler() is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    target = GraftTarget.from_cubin(Cubin.read(waits.read_bytes()), "producer_consumer")
    assert target.min_registers == 40 < target.registers
    kernel = Grafter(PROBE, assembler(), samples_blocks=sampled).graft(
        Cubin.read(waits.read_bytes()), "producer_consumer"
    )
    assert kernel.grafted.registers == target.registers  # more would not fit into the block's registers
    room, used = (
        RegisterRoom(target, FlowGraph.from_target(target)),
        used_uniform_registers(target.all_words(), target.arch),
    )
    sections = re.split(r"(?m)^\.text\.", listing(kernel.probed_image))
    section = next(section for section in sections if section.startswith("producer_consumer:"))
    texts = {int(at, 16): text for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", section)}
    after = GraftTarget.from_cubin(Cubin.read(kernel.probed_image), "producer_consumer")
    sites = json.loads(kernel.sites)["probes"][0]["sites"]
    assert len(sites) == len(sass_phases(PROBE, target)[0]) > 30
    limits, later, waited = set(), 0, 0
    for site in sites:
        at = record_at(kernel, "producer_consumer", site["offset"])
        snippet = after.words[at // WORD_BYTES :][:LENGTH]
        waits_behind = snippet[-1].operation == operation_of(NOP)
        snippet = snippet if waits_behind else snippet[:-1]
        address, value = snippet[3].rd, snippet[1].rd
        code = [texts[at + WORD_BYTES * index] for index in range(len(snippet))]
        uniform = re.findall(r"UR(\d+)", " ".join(code))
        count, high, low, step = uniform[:4]
        names = {
            f"R{value}": "Rv", f"R{value + 1}": "Rw", f"R{address}": "Ra", f"R{address + 1}": "Rb", f"UR{step}": "URs",
            f"UR{count}": "URc", f"UR{low}": "URl", f"UR{high}": "URh", f"{site['offset']:#x}": "LINE",
        }  # fmt: skip
        code[7] = code[7].replace(f"{site['offset']:#x}", "LINE")
        assert [with_names(text, names) for text in code] == RECORD.strip().split("\n")[: len(snippet)]
        is_copied = site["offset"] in kernel.grafted.copies  # without a branch, the next record may need more cycles
        assert sum(word.stall for word in snippet) <= MOST_STALL_CYCLES + is_copied * (BRANCH_CYCLES - 1)
        assert not waits_behind or snippet[-1].wait_mask == 1 << snippet[9].read_barrier
        later += not waits_behind
        waited |= snippet[0].wait_mask
        assert {address, address + 1, value, value + 1} <= set(room.free(site["offset"] // WORD_BYTES))
        assert not used & {*map(int, uniform)}
        limits.add(room.limit(site["offset"] // WORD_BYTES))
    assert limits >= {40, 232}
    assert 0 < later < len(sites)
    assert waited


def test_records_above_the_registers_of_a_kernel_wait_for_the_record_before(waits: Path) -> None:
    target = GraftTarget.from_cubin(Cubin.read(waits.read_bytes()), "ring")
    kernel = Grafter(PROBE, assembler(), samples_blocks=False).graft(Cubin.read(waits.read_bytes()), "ring")
    assert kernel.short_records
    after, barriers, waited = GraftTarget.from_cubin(Cubin.read(kernel.probed_image), "ring"), set(), 0
    for site in json.loads(kernel.sites)["probes"][0]["sites"]:
        at = record_at(kernel, "ring", site["offset"]) // WORD_BYTES
        code = after.words[at : at + LENGTH - 1]
        waited |= code[0].wait_mask
        assert sum(word.stall for word in code) < MOST_STALL_CYCLES
        assert after.words[at + LENGTH - 1].operation == target.words[site["offset"] // WORD_BYTES].operation
        assert min(code[1].rd, code[3].rd) >= target.registers - RESERVED
        barriers.add(code[9].read_barrier)
    (barrier,) = barriers
    assert waited == 1 << barrier
    assert all(barrier not in (word.write_barrier, word.read_barrier) for word in target.words)


CYCLES_UNTIL_READ = {
    ("MOV", "VIMNMX"): 4, ("VIMNMX", "IMAD"): 5, ("MOV", "IMAD"): 5, ("IMAD", "STG"): 5, ("MOV", "STG"): 5,
    ("CS2R", "STG"): 5, ("VOTEU", "ULOP3"): 4, ("ULOP3", "UIADD3"): 4, ("UIADD3", "UIADD3"): 4, ("UIADD3", "MOV"): 6,
}  # fmt: skip
"""Cycles until a result can be read, the fewest that ptxas for sm_90 takes in CUTLASS products, Triton's attention and
the kernels of tests/data; from VOTEU to a uniform instruction it takes 2.
"""
BRANCH_CYCLES = 5
"""Stall cycles of a branch: there is at least one from a record to the next."""


def test_record_code_reads_results_when_they_are_there(waits: Path) -> None:
    """The same registers hold several values, one after another, so a result that is late would be an older one."""
    if find_disassembler() is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    kernel = Grafter(PROBE, assembler(), samples_blocks=False).graft(
        Cubin.read(waits.read_bytes()), "producer_consumer"
    )
    after = GraftTarget.from_cubin(Cubin.read(kernel.probed_image), "producer_consumer")
    at = record_at(kernel, "producer_consumer", json.loads(kernel.sites)["probes"][0]["sites"][0]["offset"])
    snippet = after.words[at // WORD_BYTES :][: LENGTH - 1]
    written: dict[str, tuple[int, str]] = {}
    clock, reads = 0, 0
    texts = code_texts(90, *([word] for word in snippet))
    for _ in range(2):  # the next record of a warp reads the count of this one
        for word, (text,) in zip(snippet, texts, strict=True):
            name, _, operands = text.partition(" ")
            result, *sources = re.findall(r"(?<![A-Z])U?R\d+", operands.replace(".64", "")) or [""]
            if name.startswith("STG"):
                sources = [result, wide(result), *sources, *map(wide, sources)]
            elif name.startswith("IMAD.WIDE"):
                sources.append(wide(sources[-1]))
            for source in sources:
                if source in written:
                    since, writer = written[source]
                    needed = CYCLES_UNTIL_READ[writer, name.partition(".")[0]]
                    assert clock - since >= needed, f"{writer} before {text}"
                    reads += 1
            if not name.startswith("STG"):
                of_pair = (result, wide(result)) if name.startswith("IMAD.WIDE") else (result,)
                written |= dict.fromkeys(of_pair, (clock, name.partition(".")[0]))
            clock += word.stall
        clock += BRANCH_CYCLES
    assert reads == 22


def wide(register: str) -> str:
    return f"R{int(register.lstrip('R')) + 1}"


def test_sampled_phases_of_small_kernels_get_more_registers(waits: Path) -> None:
    kernel = Grafter(PROBE, assembler(), samples_blocks=True).graft(Cubin.read(waits.read_bytes()), "ring")
    target = GraftTarget.from_cubin(Cubin.read(waits.read_bytes()), "ring")
    assert kernel.grafted.registers > target.registers
    assert "blocks sampled" in kernel.info.splitlines()


def test_phases_by_line_need_lines(waits: Path) -> None:
    probe = load_probe("phases=load=kernel.cu:1-9")
    with pytest.raises(UnsupportedKernelError, match="names source lines"):
        Grafter(probe, assembler(), samples_blocks=False).graft(Cubin.read(waits.read_bytes()), "ring")


MARKS = {0x260: "pmevent 1", 0x2B0: "pmevent 2"}


def starts_of_warp(turns: int) -> list[int]:
    """Offsets of the starts of a warp in the self-test: the marks, and three or four others."""
    return [0x10, 0x230, *([0x250] if turns else []), *(turns * list(MARKS)), 0x350]


def trial_content(changed: int | None = None, starts: list[int] | None = None, attempts: int | None = None) -> bytes:
    """The records of all warps of the self-test, with those of one warp changed."""
    room = record_trials.MAX_STARTS
    content = b""
    for warp in range(THREADS_OF_GRID // 32):
        own = starts_of_warp(warp & 7)
        count = len(own)
        if warp == changed:
            own, count = starts or own, attempts or count
        records = b"".join(
            struct.pack("<II", 0xFFFF_FFE0 + 8 * index & 0xFFFFFFFF, at) for index, at in enumerate(own[:room])
        )
        content += struct.pack("<I12x", 1 + count) + records.ljust(2 * 8 * room, b"\0")
    return content


def test_self_test_of_records_in_free_registers() -> None:
    """Warps with more and with fewer starts than there is room for, whose clocks wrap around."""
    record_trials.check_starts(trial_content(), MARKS)
    swapped = starts_of_warp(3)
    swapped[3:5] = swapped[4:2:-1]
    for bad, words in (
        (trial_content(11, attempts=8), "warp 11 counted 8 starts of phases, not 10"),
        (trial_content(15, attempts=12), "warp 15 counted 12 starts of phases, not 18"),
        (trial_content(11, swapped), "the saved phases of warp 11 are wrong: pmevent 2, pmevent 1"),
        (trial_content(15, [0x10] * 18), "the saved phases of warp 15 are wrong: none"),
        (trial_content(1, attempts=4), "warp 1 counted 4 starts"),
        (bytes(len(trial_content())), "warp 0 counted -1 starts"),
    ):
        with pytest.raises(TrialFailedError, match=words):
            record_trials.check_starts(bad, MARKS)
    late = trial_content()[: 4 + 12] + struct.pack("<I", 8) + trial_content()[20:]
    with pytest.raises(TrialFailedError, match="warp 0 saved starts of phases in the wrong order"):
        record_trials.check_starts(late, MARKS)


@pytest.mark.parametrize("few_registers", [False, True])
def test_self_test_has_kernels_with_short_records(few_registers: bool) -> None:
    cubin = record_trials.phases_cubin(90, assembler(), few_registers=few_registers)
    trial = record_trials.phases_trial(cubin)
    kernel = Grafter(trial.probe, assembler(), samples_blocks=False).graft(cubin, TRIAL_KERNEL)
    assert kernel.short_records
    works = [site["phase"]["work"] for site in json.loads(kernel.sites)["probes"][0]["sites"]]
    assert {"pmevent 1", "pmevent 2"} < set(works)
    assert trial.map_bytes == (len(trial_content()),)
    assert (kernel.grafted.registers == GraftTarget.from_cubin(cubin, TRIAL_KERNEL).registers) == few_registers


class GateWithoutShortRecords(OpenGate):
    """A GPU on which short records went wrong."""

    def refusal(self, _arch: int, part: TrialPart) -> Reason | None:
        wrong = part is TrialPart.SHORT_RECORDS
        return because("graft-instructions-fail", words="other starts") if wrong else None


@pytest.mark.parametrize(("kernel", "outcome"), [("producer_consumer", "skipped"), ("ring", "ok")])
def test_failed_self_test_refuses_kernels_that_leave_few_registers(
    waits: Path, tmp_path: Path, kernel: str, outcome: str
) -> None:
    """Also if an earlier run prepared them, as with another driver. Others have the longer code."""
    image, cache = waits.read_bytes(), Cache(tmp_path / "cache")
    before = prepared(tmp_path / "before", image, kernel, "phases", cache=cache)
    assert before.outcome == "ok"
    after = prepared(tmp_path / "after", image, kernel, "phases", cache=cache, gate=GateWithoutShortRecords())
    assert (after.outcome, after.code) == (outcome, "graft-instructions-fail" if outcome == "skipped" else None)
    if outcome == "ok":
        codes = [len((tmp_path / name / "probed.bin").read_bytes()) for name in ("before", "after")]
        assert codes[0] < codes[1]
    gate = GraftGate(None, [])
    gate._outcomes[90] = TrialOutcome("passed", instructions="passed", records="passed", short_records="other starts")
    assert gate.refusal(90, TrialPart.RECORDS) is None
    assert gate.refusal(90, TrialPart.SHORT_RECORDS) == because("graft-instructions-fail", words="other starts")

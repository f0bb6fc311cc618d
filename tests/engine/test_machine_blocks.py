"""Probes at basic blocks of machine code: what they read of each block, and where their code is."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.engine.test_instruction_grafts import texts
from tests.turns import due_pairs
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.grafting.sass_positions import find_probed_parts
from tui_probe.engine.grafting.snippet_ptx import ptx_version
from tui_probe.engine.trial.count_trials import (
    BLOCK_RECORD,
    EXPECTED_BLOCK_COUNTS,
    block_cubin,
    block_trial,
    check_blocks,
)
from tui_probe.engine.trial.trial_kernel import TrialFailedError
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe, read_probe
from tui_probe.sass.operations import operation_class, operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import WORD_BYTES, branch_target
from tui_probe.trace.sites import parse_sites

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probe_model.probe import Probe

pytestmark = pytest.mark.usefixtures("ptxas")

ARCHITECTURES = (80, 90, 100, 120)
HEAD = '[map.m]\nlevel = "warp"\ncap = 1\n[map.m.regs]\na = "u32"\n[probe.p]\nposition = "kernel"\n'
SUM = 'before = ".reg .b32 %c;\\nmov.u32 %c, 0;"\nafter = "ADD [ m ] {%c};"\n'
WIDE = """
.visible .entry wide(.param .u64 x)
{
	.reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<2>; .reg .f32 %f<8>;
	.shared .align 16 .b8 buffer[4096];
	ld.param.u64 %d1, [x]; mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 7; mov.u32 %r2, buffer;
	st.shared.f32 [%r2+64], 0f3F800000; bar.sync 0;
	ld.shared.f32 %f1, [%r2]; ld.shared.f32 %f2, [%r2+4]; ld.shared.f32 %f3, [%r2+8]; ld.shared.f32 %f4, [%r2+12];
	add.f32 %f5, %f1, %f2; fma.rn.f32 %f5, %f3, %f4, %f5; fma.rn.f32 %f5, %f5, %f4, %f1; mov.f32 %f6, %f5;
	@%p mul.f32 %f6, %f5, %f2;
	st.global.f32 [%d1], %f6; ret;
}
"""


def cubin_of(text: str, name: str, arch: int, folder: Path) -> Cubin:
    source, binary = folder / f"{name}.ptx", folder / f"{name}.bin"
    source.write_text(f".version {ptx_version(arch)}\n.target sm_{arch}\n.address_size 64\n{text}")
    Assembler().assemble(source, binary, f"sm_{arch}", name)
    return Cubin.read(binary.read_bytes())


def own(text: str, folder: Path) -> Probe:
    return read_probe((HEAD + text).encode(), folder / "own.toml")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_blocks_report_all_their_instructions(arch: int) -> None:
    """By the listing of nvdisasm, up to the padding behind the code."""
    cubin = block_cubin(arch, Assembler())
    target = GraftTarget.from_cubin(cubin, "trial")
    parts = find_probed_parts(block_trial().probe, target)
    listing = [re.sub(r"^@!?U?P\w+ ", "", text) for _, text in sorted(texts(cubin.image).items())]
    own_jump = [f"BRA {WORD_BYTES * index:#x}" for index in range(len(listing))]
    counted = [text for index, text in enumerate(listing) if text != "NOP" and not text.startswith(own_jump[index])]
    counts: Counter[str] = Counter()
    for block in parts.blocks:
        counts.update({code.point.name: code.number for code in block.codes})
    assert counts["instructions"] == counts["classes"]
    nops = sum(text == "NOP" for text in listing)
    assert len(counted) - 1 <= counts["instructions"] <= len(counted) + nops
    sums = sum(text.startswith("FADD") for text in listing)
    assert (
        counts["sum of %sums"] + len([probed for probed in parts.sites if probed.places[0].point.name == "sums"])
        == sums
    )
    assert counts["sum of %products"] == sum(text.startswith("DMUL") for text in listing)
    assert counts["barriers"] == sum(operation_class(word, arch) == "barrier" for word in target.words)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_each_block_has_its_code_at_one_of_its_own_instructions(arch: int) -> None:
    cubin = block_cubin(arch, Assembler())
    made = Grafter(block_trial().probe, Assembler(), samples_blocks=False).graft(cubin, "trial")
    target = GraftTarget.from_cubin(cubin, "trial")
    firsts = sorted(probed.start_offset for probed in find_probed_parts(block_trial().probe, target).blocks)
    places = sorted(probed.code_offset for probed in find_probed_parts(block_trial().probe, target).blocks)
    assert all(first <= at for first, at in zip(firsts, places, strict=True))
    assert all(at < later for at, later in itertools.pairwise(places))
    assert not [text for text in texts(made.probed_image).values() if "INVALID" in text or "???" in text]
    (counts,) = parse_sites(made.sites.encode())
    assert sorted(probed.instruction.line for probed in counts.sites if probed.kind == "block") == firsts


def test_blocks_of_nothing_but_branches_have_it_at_the_branch() -> None:
    """The trial must show that this works: on a device with such blocks, lanes meet where they met before."""
    cubin = block_cubin(90, Assembler())
    made = Grafter(block_trial().probe, Assembler(), samples_blocks=False).graft(cubin, "trial")
    target, after = (
        GraftTarget.from_cubin(cubin, "trial"),
        GraftTarget.from_cubin(Cubin.read(made.probed_image), "trial"),
    )
    moved = {at: target.words[at // WORD_BYTES] for at in made.grafted.branches}
    names = Counter(operation_name(word, 90) for word in moved.values())
    assert names["BSYNC"] >= 2
    assert names["BRA"] >= 2
    added = {index * WORD_BYTES: word for index, word in enumerate(after.words) if index >= len(target.words)}
    for at, word in moved.items():
        if operation_name(word, 90) == "BRA":
            led = branch_target(90, at, word)
            assert any(
                other.field(12, 4) == word.field(12, 4) and branch_target(90, place, other) == led
                for place, other in added.items()
                if operation_name(other, 90) == "BRA"
            )
    assert not [text for text in texts(made.probed_image).values() if "INVALID" in text]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_merged_instructions_count_as_executed(arch: int, tmp_path: Path) -> None:
    """Four loads of shared memory are one; a multiplication under a guard is counted only by its own lanes."""
    target = GraftTarget.from_cubin(cubin_of(WIDE, "wide", arch, tmp_path), "wide")
    names = [operation_name(word, arch) for word in target.words]
    parts = find_probed_parts(load_probe("what_limits"), target)
    counts: Counter[str] = Counter()
    for block in parts.blocks:
        counts.update({code.point.name: code.number for code in block.codes})
    assert names.count("LDS") == 1
    assert counts["sum of %shared_passes"] == names.count("LDS") + names.count("STS")
    guarded = [word for word in target.words if operation_name(word, arch) == "FMUL" and not word.is_unconditional]
    free = names.count("FMUL") - len(guarded)
    assert counts["sum of %fp32_operations"] == 2 * names.count("FFMA") + names.count("FADD") + free
    assert [place.point.name for probed in parts.sites for place in probed.places].count("fp32_singles") == len(guarded)


@pytest.mark.parametrize(("probe", "arch"), due_pairs(["what_limits", "inst_mix"], ARCHITECTURES))
def test_probes_of_blocks_leave_the_kernel_as_it_is(probe: str, arch: int, tmp_path: Path) -> None:
    cubin = cubin_of(WIDE, "wide", arch, tmp_path)
    made = Grafter(load_probe(probe), Assembler(), samples_blocks=False).graft(cubin, "wide")
    before, after = GraftTarget.from_cubin(cubin, "wide"), GraftTarget.from_cubin(Cubin.read(made.probed_image), "wide")
    for index, word in enumerate(before.words):
        now = after.words[index]
        if index * WORD_BYTES not in made.grafted.branches:
            assert now == word or (word.read_barrier == 7 and now.with_read_barrier(7) == word)
    assert made.grafted.registers <= 64
    written = texts(made.probed_image)
    assert not [text for text in written.values() if "INVALID" in text or "???" in text]


@pytest.mark.parametrize(
    ("points", "code"),
    [
        ('[probe.q]\nposition = "loop"\nbefore = "add.u32 %c, %c, 1;"\n', "needs-instructions"),
        ('[probe.q]\nposition = "block"\nbefore = "ADD [ m ] {1};"\n', "needs-instructions"),
        (
            '[probe.q]\nposition = "block.load"\nbefore = ".reg .b32 %v;\\nmov.u32 %v, INSTRUCTIONS;"\n'
            '[probe.r]\nposition = "block.store"\nbefore = "add.u32 %c, %c, %v;"\n',
            "graft-value",
        ),
        ('[probe.q]\nposition = "block.load"\nbefore = "add.u32 %c, %c, ISSUED;"\n', None),
    ],
)
def test_unsupported_block_probes_are_refused(points: str, code: str | None, tmp_path: Path) -> None:
    cubin = block_cubin(90, Assembler())
    grafter = Grafter(own(SUM + points, tmp_path), Assembler(), samples_blocks=False)
    if code is None:
        assert grafter.graft(cubin, "trial").grafted.branches
        return
    with pytest.raises(UnsupportedKernelError) as caught:
        grafter.graft(cubin, "trial")
    assert caught.value.reason.code == code


def test_the_trial_of_blocks_finds_what_is_counted_wrong() -> None:
    (size,) = block_trial().map_bytes
    values = [*EXPECTED_BLOCK_COUNTS.values(), 90_000, 90_000]

    def block_record(*sums: int) -> bytes:
        return BLOCK_RECORD.pack(*sums).ljust(size, b"\0")

    check_blocks(block_record(*values))
    for index, name in enumerate([*EXPECTED_BLOCK_COUNTS, "classes"]):
        wrong = [*values]
        wrong[index] += 1
        with pytest.raises(TrialFailedError, match=name):
            check_blocks(block_record(*wrong))
    with pytest.raises(TrialFailedError, match="too few"):
        check_blocks(block_record(*EXPECTED_BLOCK_COUNTS.values(), 0, 0))

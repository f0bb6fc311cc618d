"""Phases of kernels without PTX: found by the work of instructions, recorded by code that is grafted into them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.bench.assembling import assembler
from tests.engine.kernels import DATA
from tests.sass.conftest import listing
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.grafting.sass_phases import sass_phases
from tui_probe.engine.grafting.sass_site_file import sass_site_file
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.wait_classes import is_mbarrier_wait
from tui_probe.sass.words import WORD_BYTES
from tui_probe.toolchain import find_disassembler
from tui_probe.trace.sites import parse_sites

if TYPE_CHECKING:
    from pathlib import Path

PROBE = load_probe("phases")


@pytest.fixture(scope="module")
def waits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels with TMA, mbarriers and wgmma, as machine code without line information."""
    binary = tmp_path_factory.mktemp("waits") / "transactions.bin"
    assembler().assemble(DATA / "transactions.sm_90a.ptx", binary, "sm_90a", "producer_consumer")
    return binary


def works(target: GraftTarget, stage: str) -> list[str]:
    return [phase.start.work for phase in sass_phases(PROBE, target)[0] if phase.start.stage == stage]


def test_phases_of_attention_are_found_in_machine_code() -> None:
    target = GraftTarget.of(Cubin.read((DATA / "attn_fwd.sm_90a.cubin").read_bytes()), "attn_fwd")
    assert works(target, "loop") == [
        "copy wait", "mma", "wgmma wait", "compute", "exponential", "compute", "exponential", "mma", "barrier wait",
    ]  # fmt: skip


def test_waits_and_copies_of_a_pipeline_are_phases(waits: Path) -> None:
    phases, _ = sass_phases(PROBE, GraftTarget.of(Cubin.read(waits.read_bytes()), "producer_consumer"))
    found_works = {phase.start.work for phase in phases}
    barriers = {"cluster barrier wait", "named barrier wait"}
    assert {"mbarrier wait", "wgmma wait", "bulk copy", "mma", "global store", *barriers} <= found_works
    (products,) = {phase.start.products for phase in phases if phase.start.products and phase.start.stage == "loop"}
    assert products == 4 * 64 * 16 * 16 // 128, "four HGMMA.64x16x16 of four warps"
    assert any(phase.start.signals for phase in phases if phase.start.work == "bulk copy")
    assert len({phase.at for phase in phases}) == len(phases)


def test_mbarrier_waits_are_those_that_nvdisasm_names(waits: Path) -> None:
    if find_disassembler() is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    cubin, count = Cubin.read(waits.read_bytes()), 0
    for section in re.split(r"(?m)^\.text\.", listing(waits.read_bytes()))[1:]:
        target = GraftTarget.of(cubin, section.split(":")[0])
        for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?);", section):
            if "SYNCS" in text:
                assert is_mbarrier_wait(target.words[int(at, 16) // WORD_BYTES]) == ("PHASECHK" in text), text
                count += 1
    assert count > 20


def test_grafted_phases_have_sites(waits: Path) -> None:
    grafter = Grafter(PROBE, assembler(), sampled=False)
    grafted = grafter.graft(Cubin.read(waits.read_bytes()), "ring")
    sites = json.loads(grafted.sites)["probes"][0]["sites"]
    works_there = [site["phase"]["work"] for site in sites]
    assert {"mbarrier wait", "global store"} <= set(works_there)
    assert {site["offset"] for site in sites} <= set(grafted.grafted.branches)
    assert "mbarrier wait" in works_there


def test_starts_without_an_instruction_are_counted(waits: Path) -> None:
    """Three waits of a pipeline consist of instructions that may not be moved."""
    target = GraftTarget.of(Cubin.read(waits.read_bytes()), "producer_consumer")
    _, missing = sass_phases(PROBE, target)
    assert missing == 3
    (probe,) = parse_sites(sass_site_file("phases", target, [], [], {}, missing=missing).encode())
    assert probe.phases_missing == missing


def test_warps_that_give_registers_away_are_refused(waits: Path) -> None:
    with pytest.raises(UnsupportedKernelError, match="setmaxnreg leaves some warps 40 registers"):
        Grafter(PROBE, assembler(), sampled=False).graft(Cubin.read(waits.read_bytes()), "producer_consumer")


def test_phases_by_line_need_lines(waits: Path) -> None:
    probe = load_probe("phases=load=kernel.cu:1-9")
    with pytest.raises(UnsupportedKernelError, match="needs PTX"):
        Grafter(probe, assembler(), sampled=False).graft(Cubin.read(waits.read_bytes()), "ring")

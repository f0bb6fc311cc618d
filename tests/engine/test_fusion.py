"""Fused probes count what their parts count by themselves, and leave the program's memory as it is.

Each kernel has one pair of counting probes, in turns; kernels are those of ``test_same_results``.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.device_maps import DeviceMaps, FileMap
from tests.engine.kernels import HEADER, STORE, probed_with_sites
from tests.engine.test_same_results import (
    GRID,
    ROOM,
    SHARED_BYTES,
    Case,
    block_of,
    cases,
    compiled,
    made_up,
)
from tests.patience import HANG
from tests.simgpu.device import BASE, Device
from tests.turns import due
from tui_probe.engine.assembler import Assembler, AssemblyReport
from tui_probe.engine.fusion import fuse, part_info
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_cache import PREPARED_FILES, PrepareOptions
from tui_probe.engine.kernel_work import VariantAssembler
from tui_probe.engine.multi_preparer import MultiPreparer
from tui_probe.engine.verify import verify_probe
from tui_probe.errors import ToolchainError, UnsupportedKernelError
from tui_probe.probe_files.choices import choose_probes
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.probe_model import FUSED_NAME, fused_places
from tui_probe.probe_model.probe import Probe
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import compile_kernel
from tui_probe.toolchain import Tool
from tui_probe.trace.kernel_files import read_kernel_info
from tui_probe.trace.sites import read_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COUNTING = [probe for probe in map(load_probe, built_in_names()) if probe.counts]
PAIRS = list(combinations([probe for probe in COUNTING if probe.about.counts is None], 2))
"""Of those without times in their records."""
TIMING = "block_sched"


def maps_after(case: Case, probe: Probe) -> list[FileMap]:
    """Run a kernel with a probe; its maps. The program's memory is checked."""
    module, entry, function = compiled(case.text, case.name)
    device = Device(16 * ROOM)
    device.load_variables(module)
    arguments = [
        np.uint64(device.upload(argument)) if isinstance(argument, np.ndarray) else argument
        for argument in made_up(entry, function, case.kind)
    ]
    device.allocate(ROOM - (device.allocate(1) - BASE))
    source, shared, sites = probed_with_sites(case.text, case.name, probe)
    maps = DeviceMaps(probe, GRID, block_of(entry), sites=sites)
    arguments += [*maps.arguments, *(np.uint64(device.variables[variable]) for variable in shared.variables)]
    device.launch(
        compile_kernel(parse(source), case.name), *arguments, grid=GRID, block=block_of(entry), shared=SHARED_BYTES
    )
    assert device.buffer[:ROOM].tobytes() == case.memory
    return maps.of_file()


def contents(maps: list[FileMap]) -> list[tuple[int, bytes, int, int, bytes]]:
    return [
        (file_map.divisor, file_map.slots.tobytes(), file_map.kind, file_map.record, file_map.marks)
        for file_map in maps
    ]


def counts_by_themselves(case: Case, parts: tuple[Probe, ...]) -> list[FileMap]:
    return [file_map for part in parts for file_map in maps_after(case, part)]


def test_probe_counts_unless_it_reads_a_clock() -> None:
    names = {probe.name for probe in COUNTING}
    assert {"what_limits", "gmem_sectors", "gmem_sectors_by_line", "smem_conflicts", "divergence"} <= names
    assert "nan_check" in names  # says so itself
    assert not {"block_sched", "warp_progress", "barrier_wait", "async_wait", "dmat", "program_progress"} & names


@pytest.mark.parametrize("probe", COUNTING, ids=lambda probe: probe.name)
def test_fused_probe_is_verified(probe: Probe) -> None:
    verify_probe(fuse([probe, *(other for other in COUNTING if other is not probe)]))


def test_fused_counts_equal_those_of_separate_kernels() -> None:
    """Each pair of probes has some kernels, each kernel has some pair."""
    compared = 0
    mine = due(enumerate(cases()))
    for number, case in mine:
        pair = PAIRS[number % len(PAIRS)]
        try:
            apart = counts_by_themselves(case, pair)
        except UnsupportedKernelError:
            continue
        together = maps_after(case, fuse(pair))
        assert contents(together) == contents(apart), (case.name, [part.name for part in pair])
        compared += 1
    assert compared >= 0.6 * len(mine)


def survey_parts() -> tuple[Probe, ...]:
    probes = [chosen.probe for chosen in choose_probes(["survey"])]
    return tuple(probes[place] for place in places_of(probes))


def places_of(probes: Sequence[Probe]) -> tuple[int, ...]:
    return fused_places([(probe.name, probe.counts) for probe in probes])


def test_fused_survey_counts_equal_those_of_separate_kernels() -> None:
    parts = survey_parts()
    assert len(parts) > 1
    for _, case in due(enumerate(cases()))[::2]:
        try:
            apart = counts_by_themselves(case, parts)
        except UnsupportedKernelError:
            continue
        assert contents(maps_after(case, fuse(parts))) == contents(apart), case.name


def test_fused_places_leave_out_timing_and_names_that_are_taken() -> None:
    probes = [(name, load_probe(name).counts) for name in ("gmem_bytes", TIMING, "inst_mix")]
    assert fused_places(probes) == (0, 2)
    assert fused_places(probes[:2]) == ()
    assert fused_places([None, *probes[1:]]) == ()


def test_part_info_is_that_of_the_part_by_itself() -> None:
    """Of a kernel with sites, counts of records and reductions: every kind of line."""
    parts = [load_probe(name) for name in ("gmem_sectors_by_line", "what_limits", "gmem_bytes")]
    kernel = Kernel.of(parse(HEADER + STORE), "store")
    fused = build_probed_ptx(kernel, fuse(parts)).info
    for part in parts:
        unfused = build_probed_ptx(kernel, part).info
        assert sorted(part_info(fused, parts, part).splitlines()) == sorted(unfused.splitlines())


def prepared(tmp_path: Path, ptxas: Tool, names: list[str]) -> tuple[Path, MultiPreparer, list[str]]:
    probes = [load_probe(name) for name in names]
    directory = tmp_path / "k"
    directory.mkdir(parents=True)
    (directory / "original.bin").write_bytes((HEADER + STORE).encode())
    options = [(probe, PrepareOptions(folder=probe.name)) for probe in probes]
    preparers = MultiPreparer(options, Assembler([ptxas]), fused=places_of(probes))
    answers = [answer.text for answer in preparers.prepare(directory, "sm_80", "store")]
    return directory, preparers, answers


NAMES = ["gmem_sectors_by_line", TIMING, "what_limits"]


def test_parts_have_the_files_of_a_probe_of_its_own(tmp_path: Path, ptxas: Tool) -> None:
    directory, preparers, answers = prepared(tmp_path, ptxas, NAMES)
    preparers.close()
    assert answers == ["probed.bin"] * 4
    unfused, other, _ = prepared(tmp_path / "alone", ptxas, NAMES[:1])
    other.close()
    for name in ("gmem_sectors_by_line", "what_limits"):
        own = directory / name
        assert {path.name for path in own.iterdir()} == {*PREPARED_FILES, "process.log"}
        assert (own / "probed.bin").samefile(directory / "fused" / "probed.bin")
    read = read_sites(directory / NAMES[0])
    assert read == read_sites(unfused / NAMES[0])
    assert read_kernel_info(directory / NAMES[0] / "kernel.info") == read_kernel_info(
        unfused / NAMES[0] / "kernel.info"
    )


def test_parts_have_the_assembly_that_the_fused_kernel_gets_later(
    tmp_path: Path, ptxas: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another probe of the run has assembled the kernel without a probe, and the fused kernel did not take it yet."""
    taken, take = threading.Event(), VariantAssembler._reuse_pruned

    def take_later(*arguments: Any) -> AssemblyReport | ToolchainError:
        taken.wait(HANG)
        return take(*arguments)

    monkeypatch.setattr(VariantAssembler, "_reuse_pruned", take_later)
    directory, preparers, _ = prepared(tmp_path, ptxas, NAMES)
    preparers._pool.shutdown(wait=True)
    for name in ("gmem_sectors_by_line", "what_limits"):
        assert (directory / name / "pruned.bin").exists()
    taken.set()
    preparers.close()


def test_prepare_parts_leaves_the_fused_kernel(tmp_path: Path, ptxas: Tool) -> None:
    directory, preparers, _ = prepared(tmp_path, ptxas, NAMES)
    fused = (directory / "fused" / "probed.bin").read_bytes()
    answers = list(preparers.prepare_parts(directory, "sm_80", "store"))
    preparers.close()
    assert [answer.text for answer in answers] == ["probed.bin"] * 2
    assert (directory / "fused" / "probed.bin").read_bytes() == fused
    sizes = {(directory / name / "probed.bin").stat().st_size for name in ("gmem_sectors_by_line", "what_limits")}
    assert max(sizes) < len(fused)


def test_parts_are_prepared_by_themselves_if_the_fused_kernel_is_refused(tmp_path: Path, ptxas: Tool) -> None:
    probes = [load_probe(name) for name in NAMES]
    directory = tmp_path / "k"
    directory.mkdir()
    (directory / "original.bin").write_bytes(b"nothing")
    options = [(probe, PrepareOptions(folder=probe.name)) for probe in probes]
    preparers = MultiPreparer(options, Assembler([ptxas]), fused=(0, 2))
    answers = list(preparers.prepare(directory, "sm_80", "store"))
    preparers.close()
    assert [answer.outcome for answer in answers] == ["skipped"] * 4


class HeldAssembler(Assembler):
    """An assembler that begins with the fused probe when it is released."""

    def __init__(self, tool: Tool) -> None:
        super().__init__([tool])
        self.released = threading.Event()

    def assemble(
        self,
        ptx: Path,
        binary: Path,
        arch: str,
        entry: str,
        started: Callable[[], object] | None = None,
        *,
        lines: bool = False,
    ) -> AssemblyReport:
        if ptx.parent.name == FUSED_NAME:
            self.released.wait(60)
        return super().assemble(ptx, binary, arch, entry, started, lines=lines)


def test_kernel_is_ready_before_counting_probes_that_take_longer(tmp_path: Path, ptxas: Tool) -> None:
    probes = [load_probe(name) for name in NAMES]
    directory = tmp_path / "0_kernel"
    directory.mkdir()
    (directory / "original.bin").write_bytes((HEADER + STORE).encode())
    options = [(probe, PrepareOptions(folder=probe.name)) for probe in probes]
    assembler = HeldAssembler(ptxas)
    preparers = MultiPreparer(options, assembler, fused=(0, 2), patience=0)
    answers = preparers.prepare(directory, "sm_80", "store")
    first = [next(answers) for _ in range(4)]
    assert [answer.outcome for answer in first] == ["later", "ok", "later", "later"]
    assert first[1].text == "probed.bin"
    assembler.released.set()
    assert [(answer.outcome, answer.text) for answer in answers] == [("ok", "probed.bin")] * 3
    preparers.close()
    assert (directory / "fused" / "probed.bin").exists()
    assert (directory / NAMES[0] / "kernel.info").exists()


def test_new_kernels_do_not_wait_for_counting_probes_of_earlier_ones(tmp_path: Path, ptxas: Tool) -> None:
    options = [(probe, PrepareOptions(folder=probe.name)) for probe in map(load_probe, NAMES)]
    assembler = HeldAssembler(ptxas)
    preparers = MultiPreparer(options, assembler, fused=(0, 2), patience=0)
    unfinished = []
    for number in range(18):
        directory = tmp_path / f"{number}_kernel"
        directory.mkdir()
        (directory / "original.bin").write_bytes((HEADER + STORE).encode())
        answers = preparers.prepare(directory, "sm_80", "store")
        assert [next(answers).outcome for _ in range(4)] == ["later", "ok", "later", "later"]
        unfinished.append(answers)
    assembler.released.set()
    for answers in unfinished:
        assert [answer.outcome for answer in answers] == ["ok"] * 3
    preparers.close()


def test_run_of_counting_probes_waits_for_them(tmp_path: Path, ptxas: Tool) -> None:
    probes = [load_probe(name) for name in NAMES if name != TIMING]
    directory = tmp_path / "0_kernel"
    directory.mkdir()
    (directory / "original.bin").write_bytes((HEADER + STORE).encode())
    options = [(probe, PrepareOptions(folder=probe.name)) for probe in probes]
    preparers = MultiPreparer(options, Assembler([ptxas]), fused=(0, 1), patience=0)
    assert [answer.outcome for answer in preparers.prepare(directory, "sm_80", "store")] == ["ok"] * 3
    preparers.close()


@pytest.mark.parametrize("needs_less", [True, False])
def test_first_form_within_a_limit_is_assembled_next_to_the_plain_one(
    needs_less: bool, ptxas: Tool, tmp_path: Path
) -> None:
    """The plain form is complete when the other one is, too; a kernel that does not need it keeps no file of it."""
    limited = threading.Event()

    class Waiting(Assembler):
        def assemble(self, ptx: Path, *arguments: Any, **options: Any) -> AssemblyReport:
            report = super().assemble(ptx, *arguments, **options)
            if ptx.name.startswith(".limited"):
                limited.set()
            elif ptx.parent.name == "fused" and ptx.name == "probed.ptx":
                assert limited.wait(HANG)
                report = replace(report, registers=60 if needs_less else 8)
            return report

    directory = tmp_path / "k"
    directory.mkdir()
    (directory / "original.bin").write_bytes((HEADER + STORE).encode())
    probes = [load_probe(name) for name in NAMES]
    options = [(probe, PrepareOptions(folder=probe.name)) for probe in probes]
    preparers = MultiPreparer(options, Waiting([ptxas]), fused=places_of(probes))
    answers = [answer.outcome for answer in preparers.prepare(directory, "sm_80", "store")]
    preparers.close()
    assert answers == ["ok"] * 4
    assert [path.name for path in (directory / "fused").iterdir() if path.name.startswith(".")] == []
    log = (directory / "fused" / "process.log").read_text()
    assert ("[registers]" in log) is needs_less

"""Waits for asynchronous work are as long as what is waited for takes, and each is counted once."""

from __future__ import annotations

import re
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.kernels import DATA, entry, inserted, probed
from tests.probes.running import result_of
from tests.probes.specimens import Specimen
from tui_probe.engine.assembler import count_serialised
from tui_probe.engine.insertion import build_probed_ptx, probed_kernel
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.site_file import site_file
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes.async_wait import LINES, AsyncWaits, analyse, kind_of, of_line
from tui_probe.ptx.parser import parse
from tui_probe.records.counter_sums import CountsByLine, LineSums
from tui_probe.simgpu.executor.model import COPY_LATENCY, COSTS, copy_cycles
from tui_probe.trace.kernel_files import parse_kernel_info
from tui_probe.trace.sites import parse_sites

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.toolchain import Tool

PROBE = load_probe("async_wait")
WAITS = (DATA / "waits.sm_90a.ptx").read_text()
CONSUMERS, TILES = 4, 9
SPECIMEN = Specimen(WAITS, (np.zeros(256, np.float32), np.arange(256, dtype=np.float32)), (1, 1, 1), (256, 1, 1))


def waits_of(folder: Path, text: str, name: str, *arguments: Any, threads: int) -> CountsByLine[AsyncWaits]:
    """Analyse a launch of one block."""
    kernel = Kernel.of(parse(text), name)
    (folder / "pruned.ptx").write_text(kernel.pruned)
    sites = parse_kernel_info(probed_kernel(kernel, PROBE)[1].splitlines()).sites[0]
    result = result_of(folder, PROBE, text, *arguments, block=(threads,), name=name)
    return analyse(result, sites, folder)


def staged(folder: Path, delay: int) -> list[AsyncWaits]:
    """The waits of the producer and of its consumers, the producer late by ``delay`` rounds at each tile."""
    folder.mkdir()
    values, out = np.arange(128 * TILES, dtype=np.float32), np.zeros(128, np.float32)
    analysis = waits_of(folder, WAITS, "staged", out, values, np.int32(TILES), np.int32(delay), threads=160)
    assert analysis.analysis.by_kind == {"mbarrier": analysis.analysis.waited}
    return [of_line(line) for line in analysis.lines]


def test_consumers_wait_for_a_producer_as_long_as_it_is_late(tmp_path: Path) -> None:
    """A round is an addition, a comparison and a branch. The producer never has to wait for its consumers."""
    at = {delay: staged(tmp_path / str(delay), delay) for delay in (20, 30, 50)}
    for producer, consumers in at.values():
        assert (producer.waits, consumers.waits) == (TILES, CONSUMERS * TILES)
    a_round = 3 * COSTS["integer"]
    for less, more in ((20, 30), (30, 50)):
        grown = at[more][1].waited - at[less][1].waited
        assert grown == CONSUMERS * TILES * (more - less) * a_round
        assert at[more][0].waited == at[less][0].waited


def test_lines_name_the_barrier_that_they_wait_for(tmp_path: Path) -> None:
    kernel = Kernel.of(parse(WAITS), "staged")
    text = site_file(PROBE.name, kernel, build_probed_ptx(kernel, PROBE).notes, b"")
    (tmp_path / "sites.json").write_text(text)
    (own,) = parse_sites(text.encode())
    assert [site.instruction.barrier for site in own.sites] == ["empty[2]", "full[2]"]
    lines = tuple(
        LineSums(site.instruction.line, site.instruction.opcode, None, {"waited": number, "waits": 1})
        for number, site in enumerate(own.sites, 1)
    )
    of: Any = SimpleNamespace(kernel=SimpleNamespace(folder=tmp_path))
    counted = CountsByLine(AsyncWaits(3, 2, {}), lines, (lines[1], 2))
    rows = LINES.rows(of, counted).rows
    assert {row.values["for"] for row in rows} == {"mbarrier empty[2]", "mbarrier full[2]"}


def test_groups_of_copies(tmp_path: Path) -> None:
    """The first wait begins when both copies are issued; the second one has nothing left but the rest of the second."""
    values, out = np.arange(256, dtype=np.float32), np.zeros(128, np.float32)
    analysis = waits_of(tmp_path, WAITS, "groups", out, values, threads=32)
    assert [kind_of(line.opcode) for line in analysis.lines] == ["cp_async", "cp_async", "bulk", "bulk"]
    first, last, read, written = (of_line(line) for line in analysis.lines)
    assert [counts.waits for counts in (first, last, read, written)] == [1] * 4
    at_once = 2 * COSTS["integer"]
    assert COPY_LATENCY / 2 < first.waited < COPY_LATENCY + copy_cycles(512)
    assert last.waited == at_once, "what comes behind the first wait takes longer than the second copy"
    assert read.waited == copy_cycles(512) - 2 * COSTS["integer"], "since it was issued and committed"
    assert COPY_LATENCY / 2 < written.waited < COPY_LATENCY
    assert analysis.analysis.by_kind == {"cp_async": first.waited + last.waited, "bulk": read.waited + written.waited}


def test_one_copy_to_the_cycle(tmp_path: Path) -> None:
    """Between its issue and the first clock are the copy, the commit and nothing else."""
    body = """.reg .b64 %rd<3>;
    .reg .b32 %r<3>;
    .shared .align 16 .b8 tile[512];
    ld.param.u64 %rd1, [in];
    mov.u32 %r1, tile;
    cp.async.cg.shared.global [%r1], [%rd1], 16;
    cp.async.commit_group;
    cp.async.wait_group 0;
    ret;"""
    text = entry(body, ".param .u64 in")
    analysis = waits_of(tmp_path, text, "kernel", np.zeros(4, np.uint32), threads=32)
    assert analysis.analysis.waited == COPY_LATENCY + copy_cycles(512) - 2 * COSTS["integer"]


def test_a_wait_by_the_library_is_one(tmp_path: Path) -> None:
    """A first try and a loop with sleep between the tries."""
    values, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    analysis = waits_of(tmp_path, WAITS, "first_try", out, values, threads=256)
    (line,) = analysis.lines
    assert of_line(line).waits == 8
    assert of_line(line).waited > 8 * copy_cycles(1024)


@pytest.mark.parametrize(
    ("text", "is_wait"),
    [
        ("mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;", True),
        ("cp.async.wait_group 2;", True),
        ("cp.async.wait_all;", True),
        ("cp.async.bulk.wait_group.read 0;", True),
        ("wgmma.wait_group.sync.aligned 0;", True),
        ("cp.async.commit_group;", False),
        ("mbarrier.arrive.shared.b64 %rd1, [%r1];", False),
        ("wgmma.commit_group.sync.aligned;", False),
        ("bar.sync 0;", False),
    ],
)
def test_wait_instructions(text: str, is_wait: bool) -> None:
    body = f".reg .pred %p<2>;\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n{text}\nret;"
    assert any("%clock;" in line for line in inserted(probed(entry(body), probe=PROBE))) is is_wait


def test_kinds() -> None:
    assert kind_of("cp.async.bulk.wait_group.read") == "bulk"
    assert kind_of("wgmma.wait_group.sync.aligned") == "wgmma"
    assert kind_of(None) is None
    assert kind_of("bar.sync") is None


@pytest.mark.parametrize(
    ("file", "kernel", "waits"),
    [
        ("waits", "overlapped", 2),
        ("attn_fwd", "attn_fwd", 4),
        ("triton_attention", "flash_attention", 4),
        ("transactions", "producer_consumer", 12),
        ("jax_gemm", "gemm_fusion_dot", 1),
    ],
)
def test_products_stay_asynchronous(file: str, kernel: str, waits: int, tmp_path: Path, ptxas: Tool) -> None:
    """ptxas remarks on nothing on which it does not remark without the probe."""
    own = Kernel.of(parse((DATA / f"{file}.sm_90a.ptx").read_text()), kernel)
    text, info = probed_kernel(own, PROBE)
    assert len(parse_kernel_info(info.splitlines()).sites[0]) == waits
    remarks = []
    for name, source in (("pruned", own.pruned), ("probed", text)):
        path = tmp_path / f"{name}.ptx"
        path.write_text(source)
        command = [ptxas.path, "-v", "-arch=sm_90a", path, "-o", tmp_path / f"{name}.bin"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        remarks.append(count_serialised(done.stdout + done.stderr))
    assert remarks == [0, 0]


def test_clocks_stand_around_the_wait() -> None:
    lines = [line.strip() for line in probed(WAITS, "overlapped", PROBE).splitlines()]
    for number in (number for number, line in enumerate(lines) if line.startswith("wgmma.wait_group")):
        assert re.fullmatch(r"mov\.u32 %tp_reached, %clock;.*", lines[number - 1 - lines[number - 1].startswith("//")])
        assert any("mov.u32 %tp_wait, %clock;" in line for line in lines[number + 1 : number + 4])

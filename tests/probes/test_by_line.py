"""Counts of each instruction equal those on paper, and sums those of the probes without lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.kernels import DATA, entry, inserted, probed
from tests.probes.kernels import GENERIC
from tests.probes.metric_values import figures_in
from tests.probes.running import example, result_of, simulated
from tests.probes.test_barrier_wait import UNEVEN
from tests.probes.test_divergence import LOOP
from tests.probes.test_smem_conflicts import access
from tests.turns import due_pairs
from tui_probe.engine.insertion import probed_kernel
from tui_probe.engine.kernel import Kernel
from tui_probe.errors import TraceError
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes import barrier_wait, divergence, gmem_bytes, inst_mix, smem_conflicts, tensorop_count
from tui_probe.probes.gmem_sectors import analysis as gmem_sectors
from tui_probe.ptx.parser import parse
from tui_probe.trace.kernel_files import parse_kernel_info
from tui_probe.trace.results import read_result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tui_probe.records.counter_sums import CountsByLine

ANALYSES = {
    "gmem_bytes": gmem_bytes,
    "gmem_sectors": gmem_sectors,
    "inst_mix": inst_mix,
    "smem_conflicts": smem_conflicts,
    "divergence": divergence,
    "tensorop_count": tensorop_count,
    "barrier_wait": barrier_wait,
}
ROUNDS = np.ones((64, 64), np.float32)
MATMUL = (np.zeros_like(ROUNDS), ROUNDS, ROUNDS, np.int32(64))
FRAGMENTS = np.ones((48, 48), np.float16)
COLUMNS = np.arange(32, dtype=np.uint32) * 32
LAUNCHES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "strided": (
        example("strided_store"),
        (np.zeros(16384, np.uint32), np.uint32(5000)),
        {"grid": (32,), "block": (256,)},
    ),
    "matmul": (example("matmul"), MATMUL, {"grid": (4, 4), "block": (16, 16)}),
    "columns": (access("b32", 4), (COLUMNS,), {}),
    "loop": (entry(LOOP), (), {"grid": (3,), "block": (20,)}),
    "generic": (entry(GENERIC, ".param .u64 out"), (np.zeros(64, np.uint64),), {"grid": (2,), "block": (45,)}),
    "fragments": (
        simulated("matrices"),
        (ROUNDS[:48, :48] * 0, FRAGMENTS, FRAGMENTS, ROUNDS[:48, :48], np.int32(48), np.float32(1)),
        {"grid": (3, 3), "name": "fragments"},
    ),
    "saxpy": (
        example("saxpy"),
        (np.ones(5000, np.float32), np.ones(5000, np.float32), np.float32(2), np.int32(5000)),
        {"grid": (40,), "block": (128,)},
    ),
    "pipeline": (
        simulated("matrices"),
        (np.zeros((16, 8), np.float16), np.ones((16, 64), np.float16), np.ones((64, 8), np.float16), np.int32(64)),
        {"name": "pipeline"},
    ),
    "uneven": (entry(UNEVEN.replace("ROUNDS", "20")), (), {"grid": (2,), "block": (128,)}),
    "triton": (
        simulated("triton_matmul"),
        (
            *(np.ones((128, 96), np.float16), np.ones((96, 192), np.float16), np.zeros((128, 192), np.float16)),
            *(np.int32(128), np.int32(192), np.int32(96), *[np.zeros(1, np.uint64)] * 2),
        ),
        {"grid": (2, 3), "block": (128,), "shared": 3 * 8192},
    ),
}


def by_line(folder: Path, probe: str, text: str, *arguments: Any, name: str = "", **options: Any) -> CountsByLine:
    """One launch by line, with the PTX next to it."""
    result = result_of(folder, f"{probe}_by_line", text, *arguments, name=name, **options)
    module = parse(text)
    kernel = Kernel.of(module, name or module.entries()[0].name)
    (folder / "pruned.ptx").write_text(kernel.pruned)
    info = parse_kernel_info(probed_kernel(kernel, load_probe(f"{probe}_by_line"))[1].splitlines())
    return ANALYSES[probe].analyse_lines(result, info.sites.get(0, ()), folder)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("probe", "launch"), due_pairs(ANALYSES, LAUNCHES))
def test_the_sums_are_those_of_the_probe_without_lines(tmp_path: Path, probe: str, launch: str) -> None:
    """All but the most that one warp waited at barriers, which is not a sum."""
    text, arguments, options = LAUNCHES[launch]
    analyse: Callable[..., Any] = ANALYSES[probe].analyse
    totals = analyse(result_of(tmp_path, probe, text, *arguments, **options))
    if isinstance(totals, barrier_wait.BarrierWaits):
        totals = replace(totals, longest=None)
    assert by_line(tmp_path, probe, text, *arguments, **options).analysis == totals


def test_the_store_that_does_not_coalesce(tmp_path: Path) -> None:
    analysis = by_line(
        tmp_path,
        "gmem_sectors",
        example("strided_store"),
        *(np.zeros(16384, np.uint32), np.uint32(8192)),
        grid=(32,),
        block=(256,),
    )
    (line,) = analysis.lines
    assert gmem_sectors.requests_and_sectors(line) == (256, 2048)
    assert line.source is not None
    assert (line.source.file.rpartition("/")[2], line.source.line) == ("strided_store.cu", 4)
    assert line.opcode == "st.global.u32"
    (worst,) = [figure for figure in figures_in("gmem_sectors_by_line", analysis) if figure.key == "worst_value"]
    assert worst.value == 8
    assert worst.metric.standalone_title == "worst line: most sectors per request"


def test_each_instruction_has_its_own_count(tmp_path: Path) -> None:
    """Of the tiled product two loads, which run as often as there are tiles, and one store."""
    text, arguments, options = LAUNCHES["matmul"]
    lines = by_line(tmp_path, "gmem_sectors", text, *arguments, **options).lines
    warps, tiles = 4 * 4 * 8, 4
    assert [gmem_sectors.requests_and_sectors(line) for line in lines] == [
        (warps * tiles, 4 * warps * tiles),
        (warps * tiles, 4 * warps * tiles),
        (warps, 4 * warps),
    ]


def test_accesses_that_are_not_counted(tmp_path: Path) -> None:
    text, arguments, options = LAUNCHES["generic"]
    lines = by_line(tmp_path, "gmem_sectors", text, *arguments, **options).lines
    assert [gmem_sectors.is_counted(line) for line in lines] == [False] * 4
    assert [line.sums["generic_accesses"] for line in lines] == [2 * 5, 2 * 4, 2 * 1, 2 * 4]


def test_bytes_of_each_line_of_saxpy(tmp_path: Path) -> None:
    """Of 5000 elements x and y are loaded and y is stored, 4 bytes each, by 5120 threads, of which 120 have none."""
    text, arguments, options = LAUNCHES["saxpy"]
    analysis = by_line(tmp_path, "gmem_bytes", text, *arguments, **options)
    assert [(line.opcode, gmem_bytes.bytes_of(line)) for line in analysis.lines] == [
        ("ld.global.f32", 20000),
        ("ld.global.f32", 20000),
        ("st.global.f32", 20000),
    ]
    assert analysis.worst == (analysis.lines[0], 20000)


def test_bytes_of_each_copy(tmp_path: Path) -> None:
    """Of b whole rows of 16 bytes, but only 6 bytes of the last three; lanes of one copy read different sizes."""
    text, arguments, options = LAUNCHES["pipeline"]
    analysis = by_line(tmp_path, "gmem_bytes", text, *arguments, **options)
    d, a, b, _ = arguments
    copies = [line for line in analysis.lines if (line.opcode or "").startswith("cp.async")]
    assert sum(line.sums["copied"] for line in copies) == a.nbytes + b.nbytes - 3 * 10
    assert sum(line.sums["stored"] for line in analysis.lines if line not in copies) == d.nbytes
    assert all(line.sums["stored"] == 0 for line in copies)


def test_bytes_through_addresses_without_a_space(tmp_path: Path) -> None:
    """Threads 0 to 4 of 45 go to global memory, others to shared; thread 2 loads not and stores a byte, and leaves."""
    text, arguments, options = LAUNCHES["generic"]
    lines = by_line(tmp_path, "gmem_bytes", text, *arguments, **options).lines
    assert [gmem_bytes.bytes_of(line) for line in lines] == [2 * 5 * 8, 2 * 4 * 4, 2 * 1, 2 * 4]


def test_copies_by_tensor_map_leave_no_line_with_the_most_bytes(tmp_path: Path) -> None:
    """A result whose second line copied by tensor map, which names no size."""
    text, arguments, options = LAUNCHES["saxpy"]
    result = result_of(tmp_path, "gmem_bytes_by_line", text, *arguments, **options)
    records = result.sites(0, gmem_bytes.SITE)
    assert records is not None
    changed = records.copy()
    changed[1]["tensor_loads"], changed[1]["loaded"] = 7, 0
    path = tmp_path / "tensor.bin"
    path.write_bytes(result.path.read_bytes().replace(records.tobytes(), changed.tobytes()))
    analysis = gmem_bytes.analyse_lines(read_result(path), (1, 2, 3))
    assert [gmem_bytes.bytes_of(line) for line in analysis.lines] == [20000, None, 20000]
    assert analysis.worst is None
    metric_values = {
        metric_value.key: metric_value.value for metric_value in figures_in("gmem_bytes_by_line", analysis)
    }
    assert (metric_values["read"], metric_values["tensor_loads"], metric_values["worst_line"]) == (None, 7, None)


def test_multiply_adds_of_each_line_are_m_n_k(tmp_path: Path) -> None:
    """Every tile of m16n8k16 is computed once; the lines of the unrolled product have equal parts."""
    text, arguments, options = LAUNCHES["triton"]
    analysis = by_line(tmp_path, "tensorop_count", text, *arguments, **options)
    executed = [tensorop_count.instructions_of(line) for line in analysis.lines]
    assert [line.sums["multiply_adds"] for line in analysis.lines] == [16 * 8 * 16 * count for count in executed]
    assert {(line.opcode or "")[: len("mma.sync")] for line in analysis.lines} == {"mma.sync"}
    warps, parts = 2 * 3 * 4, 96 // 32
    assert set(executed) == {warps * parts}
    metric_values = {
        metric_value.key: metric_value.value for metric_value in figures_in("tensorop_count_by_line", analysis)
    }
    assert metric_values["operations"] == 2 * 128 * 192 * 96
    assert metric_values["worst_value"] == 128 * 192 * 96 // len(analysis.lines)


def test_fragments_of_each_line(tmp_path: Path) -> None:
    """48³ multiply-adds by what is left of a loop unrolled by four, which 9 warps execute three times."""
    text, arguments, options = LAUNCHES["fragments"]
    analysis = by_line(tmp_path, "tensorop_count", text, *arguments, **options)
    *never, line = sorted(analysis.lines, key=tensorop_count.instructions_of)
    assert {tensorop_count.multiply_adds_of(opcode) for opcode in never} == {0}
    assert (tensorop_count.instructions_of(line), tensorop_count.multiply_adds_of(line)) == (27, 48**3)
    assert analysis.worst == (line, 48**3)


def test_warpgroup_instructions_are_counted_without_a_branch() -> None:
    """Hopper's kernels do not run on the simulated GPU: the text tells. A branch would end a group under way."""
    text = (DATA / "attn_fwd.sm_90a.ptx").read_text()
    name = parse(text).entries()[0].name
    lines = inserted(probed(text, name, load_probe("tensorop_count_by_line")))
    assert lines.count(f"mov.u32 %tp_share, {64 * 64 * 16 // 128};") == 8
    assert sum(line.startswith("red.global.add.u64") for line in lines) == 2 * 8
    assert not any("bra " in line for line in lines)


def test_lanes_that_make_no_whole_instruction(tmp_path: Path) -> None:
    text, arguments, options = LAUNCHES["fragments"]
    result = result_of(tmp_path, "tensorop_count_by_line", text, *arguments, **options)
    records = result.sites(0, tensorop_count.SITE)
    assert records is not None
    changed = records.copy()
    changed["wmma"] -= changed["wmma"] > 0
    path = tmp_path / "broken.bin"
    path.write_bytes(result.path.read_bytes().replace(records.tobytes(), changed.tobytes()))
    with pytest.raises(TraceError, match="863 lanes executed wmma; this number is not a multiple of 32"):
        tensorop_count.analyse_lines(read_result(path), range(len(records)))


def test_a_late_warp_is_waited_for_at_the_first_barrier(tmp_path: Path) -> None:
    """Warp 2 of four works some rounds, the others none: three wait for it, in proportion, and then none at all."""
    multiply = "mul.lo.u32 %r2, %r2, ROUNDS;"
    late = UNEVEN.replace(multiply, "setp.eq.u32 %p1, %r2, 2;\nselp.u32 %r2, ROUNDS, 0, %p1;")
    assert late != UNEVEN
    waited = {}
    for rounds in (0, 20, 40):
        text = entry(late.replace("ROUNDS", str(rounds)))
        analysis = by_line(tmp_path, "barrier_wait", text, block=(128,))
        assert [line.opcode for line in analysis.lines] == ["bar.sync", "barrier.sync"]
        assert [barrier_wait.of_line(line).barriers for line in analysis.lines] == [4, 4]
        waited[rounds] = [barrier_wait.of_line(line).waited for line in analysis.lines]
        if rounds:
            assert analysis.worst == (analysis.lines[0], waited[rounds][0])
    instructions = 4
    (first, second), (_, second_late) = waited[0], waited[20]
    assert second == second_late == waited[40][1] == first
    cycles = (waited[20][0] - first) / (3 * 20 * instructions)
    assert cycles > 0
    assert waited[40][0] - first == 3 * 40 * instructions * cycles


def test_a_column_of_a_tile(tmp_path: Path) -> None:
    """32 rows of 32 words: all lanes in one bank. The load and the store are distinguished."""
    text, arguments, options = LAUNCHES["columns"]
    analysis = by_line(tmp_path, "smem_conflicts", text, *arguments, **options)
    assert [smem_conflicts.of_line(line).degree for line in analysis.lines] == [32, 32]
    assert [line.sums for line in analysis.lines] == [{"accesses": 1, "passes": 32, "conflicts": 31}] * 2
    assert [line.opcode for line in analysis.lines] == ["ld.shared.b32", "st.shared.b32"]


def test_lanes_of_each_branch(tmp_path: Path) -> None:
    """20 lanes leave a loop one by one: see ``test_divergence``."""
    text, arguments, options = LAUNCHES["loop"]
    analysis = by_line(tmp_path, "divergence", text, *arguments, **options)
    rows = [(line.opcode, *divergence.executions_and_lanes(line)) for line in analysis.lines]
    assert rows == [
        ("bra", 3 * 20, 3 * 210),
        ("st.shared.u32", 3 * 19, 3 * (19 + 18 + 17)),
        ("bra", 3 * 19, 3 * 190),
        ("atom.shared.add.u32", 3, 3 * 20),
    ]
    assert analysis.worst is not None
    assert analysis.worst[1] == (19 + 18 + 17) / 19


def test_an_instruction_that_never_ran(tmp_path: Path) -> None:
    """No thread has an element: the store has a line, with nothing in it."""
    arguments = np.zeros(16, np.uint32), np.uint32(0)
    analysis = by_line(tmp_path, "gmem_sectors", example("strided_store"), *arguments)
    assert [gmem_sectors.requests_and_sectors(line) for line in analysis.lines] == [(0, 0)]
    assert analysis.worst is None
    assert gmem_sectors.sectors_per_request(analysis.lines[0]) is None


def test_a_kernel_without_such_instructions(tmp_path: Path) -> None:
    analysis = by_line(tmp_path, "smem_conflicts", entry("ret;"))
    assert analysis.lines == ()
    assert analysis.analysis == smem_conflicts.BankConflicts(0, 0, 0, 0)


def test_instructions_of_a_loop(tmp_path: Path) -> None:
    """The tiled product: of 128 warps each reads its tiles 4 times, and stores once."""
    text, arguments, options = LAUNCHES["matmul"]
    analysis = by_line(tmp_path, "inst_mix", text, *arguments, **options)
    executed = {line.opcode: inst_mix.executions_of(line) for line in analysis.lines}
    assert (executed["st.global.f32"], executed["ld.global.f32"], executed["bar.sync"]) == (128, 4 * 128, 4 * 128)
    worst = analysis.worst
    assert worst is not None
    assert worst[1] == max(executed.values())
    kinds = {line.opcode: inst_mix.classes_of(line) for line in analysis.lines}
    assert (kinds["fma.rn.f32"], kinds["bar.sync"], kinds["ld.shared.f32"]) == ("fp32", "barrier", "load")
    (tmp_path / "other").mkdir()
    result = result_of(tmp_path / "other", "inst_mix_by_line", text, *arguments, **options)
    with pytest.raises(TraceError, match=r"the records do not match the basic blocks in .*pruned\.ptx"):
        inst_mix.analyse_lines(result, range(1, 11), tmp_path)


def test_results_of_another_probe_or_kernel(tmp_path: Path) -> None:
    text, arguments, options = LAUNCHES["columns"]
    result = result_of(tmp_path, "smem_conflicts_by_line", text, *arguments, **options)
    with pytest.raises(TraceError, match=r"2 sites, but kernel\.info lists 3 sites"):
        smem_conflicts.analyse_lines(result, (1, 2, 3))
    with pytest.raises(TraceError, match="has 24 bytes per site, not 32"):
        divergence.analyse_lines(result, (1, 2))
    with pytest.raises(TraceError, match="the records are not from smem_conflicts, which saves one record per warp"):
        smem_conflicts.analyse(result)
    plain = result_of(tmp_path, "smem_conflicts", text, *arguments, **options)
    with pytest.raises(TraceError, match="which saves one record per site"):
        smem_conflicts.analyse_lines(plain, (1, 2))

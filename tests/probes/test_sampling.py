"""A sample of the blocks of a grid: what is measured of them is what a run of all blocks measures of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.kernels import entry
from tests.probes.running import example, result_of
from tests.probes.test_by_line import LAUNCHES
from tui_probe.engine.insertion import probed_kernel
from tui_probe.engine.kernel import Kernel
from tui_probe.errors import TraceError
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes import gmem_bytes
from tui_probe.probes.block_sched import analysis as block_sched
from tui_probe.probes.gmem_sectors import analysis as gmem_sectors
from tui_probe.ptx.parser import parse
from tui_probe.trace.kernel_files import parse_kernel_info

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.results import Result

COUNTED = ("gmem_bytes", "gmem_sectors", "inst_mix", "tensorop_count", "divergence", "smem_conflicts")
SITES = ("gmem_bytes_by_line", "gmem_sectors_by_line", "divergence_by_line", "tensorop_count_by_line")


def measured(folder: Path, *arguments: Any, **how: Any) -> Result:
    """``result_of``, each in a folder of its own: files that are mapped must stay."""
    own = folder / str(len(list(folder.iterdir())))
    own.mkdir()
    return result_of(own, *arguments, **how)


@pytest.mark.parametrize("probe", COUNTED)
@pytest.mark.parametrize("launch", ["strided", "loop"])
def test_records_are_those_of_a_run_of_all_blocks(tmp_path: Path, launch: str, probe: str) -> None:
    text, arguments, how = LAUNCHES[launch]
    unsampled = measured(tmp_path, probe, text, *arguments, **how)
    blocks = range(1, unsampled.header.blocks, 2)
    some = measured(tmp_path, probe, text, *arguments, **how, sample=blocks)
    assert some.header == unsampled.header
    assert some.blocks == blocks
    np.testing.assert_array_equal(some.maps[0], unsampled.maps[0][blocks])


def test_every_map_of_a_probe_with_records_and_counts(tmp_path: Path) -> None:
    text, arguments, how = LAUNCHES["matmul"]
    unsampled = measured(tmp_path, "dmat", text, *arguments, **how)
    some = measured(tmp_path, "dmat", text, *arguments, **how, sample=range(2, 12, 3))
    kept, attempts = some.record_counts(1), some.attempts(1)
    assert kept is not None
    assert attempts is not None
    np.testing.assert_array_equal(attempts, unsampled.attempts(1)[2:12:3])  # type: ignore[index]
    records, all_records = (result.maps[1].view([("address", "<u8"), ("rest", "<u8")]) for result in (some, unsampled))
    lines = [np.frombuffer(result.maps[1].tobytes(), "<u4")[3::4] for result in (some, unsampled)]
    assert set(lines[0]) == set(lines[1])
    assert len(np.unique(records["address"])) <= len(np.unique(all_records["address"]))
    written = some.written_mask(0)
    assert written is not None
    assert written.shape == (4, 8, 1)
    assert written.all()


@pytest.mark.parametrize("probe", SITES)
@pytest.mark.parametrize("launch", ["strided", "generic"])
def test_sums_of_lines_cover_only_the_sample(tmp_path: Path, launch: str, probe: str) -> None:
    """All blocks but one, and that one: together what all of them did."""
    text, arguments, how = LAUNCHES[launch]
    kernel = Kernel.of(parse(text), parse(text).entries()[0].name)
    sites = parse_kernel_info(probed_kernel(kernel, load_probe(probe))[1].splitlines()).sites.get(0, ())
    fields = len(load_probe(probe).maps[0].fields)
    record = np.dtype([(f"field{place}", "<u8") for place in range(fields)])

    def sums(sample: range | None) -> Any:
        sites = measured(tmp_path, probe, text, *arguments, **how, sample=sample).sites(0, record)
        assert sites is not None
        return sites.view("<u8").astype(np.int64)

    blocks = int(np.prod(how["grid"]))
    assert len(sites) * fields == len(sums(None))
    np.testing.assert_array_equal(sums(range(blocks - 1)) + sums(range(blocks - 1, blocks)), sums(None))


WHOLE = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@WHOLE
@given(st.tuples(*[st.integers(1, 6)] * 3), st.integers(0, 40), st.integers(1, 300), st.integers(1, 40))
def test_any_sample_of_any_grid(tmp_path: Path, grid: tuple[int, int, int], first: int, step: int, most: int) -> None:
    """Blocks find their place in the sample, and the others that they have none."""
    blocks = range(first, first + step * most, step)
    blocks = blocks[: len([block for block in blocks if block < int(np.prod(grid))])]
    if not len(blocks):
        return
    number = """.reg .b32 %r<4>;
.reg .b64 %rd<3>;
mov.u32 %r1, %ctaid.z;
mov.u32 %r2, %nctaid.y;
mov.u32 %r3, %ctaid.y;
mad.lo.u32 %r1, %r1, %r2, %r3;
mov.u32 %r2, %nctaid.x;
mov.u32 %r3, %ctaid.x;
mad.lo.u32 %r1, %r1, %r2, %r3;
mul.wide.u32 %rd2, %r1, 4;
ld.param.u64 %rd1, [out];
add.s64 %rd1, %rd1, %rd2;
st.global.u32 [%rd1], %r1;
ret;"""
    out = np.zeros(int(np.prod(grid)), np.uint32)
    result = measured(tmp_path, "dmat", entry(number, ".param .u64 out"), out, grid=grid, block=(40,), sample=blocks)
    addresses = result.maps[1].view("<u8")[:, 0, 0].astype(np.int64)
    assert result.blocks == blocks
    assert result.header.grid == grid
    base = addresses[0] - 4 * blocks[0]
    assert ((addresses - base) // 4).tolist() == list(blocks)


def test_metric_text_of_a_sample(tmp_path: Path) -> None:
    """Only threads of measured blocks can be missing. The last of these blocks has none that stores."""
    text, arguments, how = LAUNCHES["strided"]
    sampled = measured(tmp_path, "gmem_bytes", text, *arguments, **how, sample=range(0, 32, 8))
    analysis = gmem_bytes.analyse(sampled)
    assert (analysis.threads_missing, analysis.stored, sampled.threads) == (0, 3 * 256 * 4, 4 * 256)


def test_schedules_are_not_derived_from_a_sample(tmp_path: Path) -> None:
    text, arguments, how = LAUNCHES["strided"]
    sampled = measured(tmp_path, "block_sched", text, *arguments, **how, sample=range(0, 32, 8))
    with pytest.raises(TraceError, match="4 of 32 blocks were measured"):
        block_sched.analyse(sampled)


def test_text_of_a_short_snippet_has_no_branch() -> None:
    """No branch goes around a snippet that saves nothing, nor around an addition to a site."""
    short = probed_kernel(Kernel.of(parse(example("saxpy")), "saxpy"), load_probe("gmem_bytes"), samples_blocks=True)[0]
    line = next(line for line in short.splitlines() if "add.u32 %tp_loaded" in line)
    assert "@" not in line
    text, _, _ = LAUNCHES["triton"]
    name = parse(text).entries()[0].name
    sites = probed_kernel(Kernel.of(parse(text), name), load_probe("tensorop_count_by_line"), samples_blocks=True)[0]
    reds = [line.split()[0] for line in sites.splitlines() if "red.global" in line]
    assert set(reds) == {"@!%tp__outside"}
    assert "@%tp__outside bra" not in sites


def test_analyses_of_sectors_agree(tmp_path: Path) -> None:
    text, arguments, how = LAUNCHES["strided"]
    sampled = measured(tmp_path, "gmem_sectors", text, *arguments, **how, sample=range(0, 32, 16))
    assert gmem_sectors.analyse(sampled).store_requests == 2 * 8

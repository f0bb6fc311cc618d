"""Counts of the counting probes on a GPU equal the hardware's counters, and the numbers on paper."""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from tui_probe.probekit.measured import analyse_results
from tui_probe.probes import gmem_bytes, tensorop_count
from tui_probe.probes.gmem_sectors import analysis as gmem_sectors
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result

from .conftest import PROGRAMS, Runner, tool

Counted = dict[str, int]

METRICS = {
    f"l1tex__t_{what}_pipe_lsu_mem_global_op_{short}.sum": f"{operation}_{what}"
    for what in ("requests", "sectors")
    for short, operation in (("ld", "load"), ("st", "store"))
}


@pytest.fixture(scope="session")
def patterns(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("patterns") / "memory_patterns"
    both = "-gencode=arch=compute_90,code=[sm_90,compute_90]"
    source = str(PROGRAMS / "memory_patterns.cu")
    command = [tool("nvcc"), both, "-cudart=static", "-o", str(program), source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(program)


def ncu_rows(text: str) -> Iterator[dict[str, str]]:
    """Read the rows of ncu's CSV, which follow what the program prints."""
    lines = text.splitlines()
    yield from csv.DictReader(lines[next(i for i, line in enumerate(lines) if line.startswith('"ID"')) :])


def counters_of(command: list[str], *options: str, metrics: Mapping[str, str] = METRICS) -> list[tuple[str, Counted]]:
    """The hardware's counters of each launch of a program, with the kernel's name, by ncu, named by ``metrics``."""
    ncu = [tool("ncu"), "--csv", "--clock-control", "none", "--metrics", ",".join(metrics), *options]
    done = subprocess.run([*ncu, *command], capture_output=True, text=True, check=False, timeout=300)
    if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
        pytest.skip("no permission to read the GPU's counters (ERR_NVGPUCTRPERM)")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, tuple[str, Counted]] = {}
    for row in ncu_rows(done.stdout):
        _, counted = found.setdefault(row["ID"], (row["Kernel Name"].partition("(")[0], {}))
        counted[metrics[row["Metric Name"]]] = int(float(row["Metric Value"].replace(",", "")))
    return list(found.values())


@pytest.fixture(scope="session")
def counters(patterns: str) -> dict[str, Counted]:
    """Return the counters of each access pattern."""
    return dict(counters_of([patterns]))


@pytest.mark.exclusive
def test_nsight_compute_counts_no_kernel_of_ours(patterns: str, runner: Runner) -> None:
    ncu = [tool("ncu"), "--csv", "--clock-control", "none", "--metrics", next(iter(METRICS))]
    unprofiled, profiled = runner.unprofiled([*ncu, patterns]), runner.profiled([*ncu, patterns], "-p", "gmem_sectors")
    names = [[row["Kernel Name"] for row in ncu_rows(text)] for text in (unprofiled.stdout, profiled.outcome.stdout)]
    assert unprofiled.status == profiled.outcome.status == 0, profiled.outcome.stderr
    assert names[0] == names[1] != []
    assert {kernel.reason_code for kernel in open_trace(profiled.trace).kernels} == {"under-ncu"}


@pytest.mark.exclusive
def test_requests_and_sectors_equal_the_counters(patterns: str, counters: dict[str, Counted], runner: Runner) -> None:
    unprofiled = runner.unprofiled([patterns])
    profiled = runner.profiled([patterns], "-p", "gmem_sectors")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    probed: dict[str, Counted] = {}
    for kernel in open_trace(profiled.trace).kernels:
        assert kernel.status == "probed", f"{kernel.name}: {kernel.reason}"
        (path,) = kernel.results
        counts = gmem_sectors.analyse(read_result(path))
        assert counts.threads_missing == 0
        probed[kernel.name] = {name: getattr(counts, name) for name in METRICS.values()}
    assert len(probed) >= 20
    assert probed.keys() == counters.keys()
    for name, measured in counters.items():
        equal = "equal" if probed[name] == measured else "DIFFERENT"
        print(f"GPU-SECTORS\t{name}\t{equal}\tncu {measured}\tprobe {probed[name]}")
    assert probed["coalesced_store"] == dict.fromkeys(METRICS.values(), 0) | {
        "store_requests": 256, "store_sectors": 1024,
    }  # fmt: skip
    different = {name for name, counts in probed.items() if counts != counters[name]}
    # Accesses without a space are left out, and the probe says so. How many passes a loop takes that lanes leave one
    # after another depends on where the compiled code lets them meet again, and probed code is other code.
    assert different <= {"generic_copy", "loop_of_lanes"}


@pytest.mark.parametrize("probe", ["gmem_sectors", "smem_conflicts", "divergence"])
def test_lines_add_up_to_the_launch(probe: str, patterns: str, runner: Runner) -> None:
    """Counts of the instructions add up to the sums of the probe without lines."""
    whole, by_line = figures_of(patterns, runner, probe), figures_of(patterns, runner, f"{probe}_by_line")
    assert len(whole) >= 20
    assert whole.keys() == by_line.keys()
    for kernel, sums_of_kernel in whole.items():
        sums = {key: by_line[kernel].get(key) for key in sums_of_kernel}
        equal = "equal" if sums == sums_of_kernel else "DIFFERENT"
        print(f"GPU-LINES\t{probe}\t{kernel}\t{equal}\t{sums_of_kernel}\tby line {by_line[kernel]}")
    different = {
        kernel for kernel, sums_of_kernel in whole.items() if not sums_of_kernel.items() <= by_line[kernel].items()
    }
    assert different <= {"loop_of_lanes"}
    if probe == "gmem_sectors":
        assert by_line["strided_store"]["worst_value"] == 8


def figures_of(program: str, runner: Runner, probe: str) -> dict[str, dict[str, float | None]]:
    """The values of each kernel of a program that launches each once."""
    profiled = runner.profiled([program], "-p", probe)
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    trace = open_trace(profiled.trace)
    values = {}
    for kernel in trace.kernels:
        assert kernel.status == "probed", f"{kernel.name}: {kernel.reason}"
        (result,) = analyse_results(trace, kernel)
        assert result.analysis is not None, result.problem
        values[kernel.name] = {metric_value.key: metric_value.value for metric_value in result.metric_values}
    return values


def test_bytes_are_those_on_paper(patterns: str, runner: Runner) -> None:
    profiled = runner.profiled([patterns], "-p", "gmem_bytes")
    threads = 32 * 256
    paper = {
        "coalesced_store": (0, 4), "strided_store": (0, 4), "byte_copy": (1, 1), "half_copy": (2, 2),
        "pair_copy": (8, 8), "quad_copy": (16, 16), "gather": (4, 4), "quad_gather": (16, 16), "columns": (4, 4),
        "structures": (12, 4), "atomics": (0, 4),
    }  # fmt: skip
    counted = {}
    for kernel in open_trace(profiled.trace).kernels:
        if kernel.name in paper:
            (path,) = kernel.results
            counts = gmem_bytes.analyse(read_result(path))
            counted[kernel.name] = (counts.loaded // threads, counts.stored // threads)
    assert counted == paper


def test_triton_matrix_product_is_2_m_n_k(runner: Runner) -> None:
    """On Hopper Triton multiplies with wgmma, on older GPUs with mma."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    profiled = runner.profiled([sys.executable, str(PROGRAMS / "triton_product.py")], "-p", "tensorop_count")
    assert profiled.outcome.status == 0, profiled.outcome.stderr
    sizes = [tuple(map(int, line.split())) for line in profiled.outcome.stdout.splitlines()]
    (kernel,) = (k for k in open_trace(profiled.trace).kernels if k.name == "matmul")
    counts = [tensorop_count.analyse(read_result(path)) for path in kernel.results]
    print(f"GPU-TENSOR\t{sizes}\t{counts}")
    assert [count.operations for count in counts] == [2 * m * n * k for m, n, k in sizes]

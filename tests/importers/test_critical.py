"""Sectors against those of a tensor, names that are the same, and the critical kernel."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.importers.files import real
from tui_probe.cli.main import main
from tui_probe.nsight.analysis.critical import (
    CriticalKernel,
    ExpectedTensor,
    SectorMatch,
    bound_of,
    compare_sectors,
    data_type,
    find_critical,
)
from tui_probe.nsight.analysis.kernel_groups import Shape, function_name, match_kernels
from tui_probe.nsight.analysis.kernel_metrics import KernelMetrics, metrics_of
from tui_probe.nsight.analysis.launch_means import durations
from tui_probe.nsight.analysis.launch_selection import AUTOMATIC, iterated_shapes, select_launches
from tui_probe.nsight.importers.ncu import read_ncu

ATTENTION = ExpectedTensor(length=2048, width=64, dtype="fp16", heads=8, batch=2)


def kernel(name: str, **metrics: object) -> KernelMetrics:
    return KernelMetrics(Shape(name, (4, 1, 1), (64, 1, 1)), "ncu", "x.csv", 1, **metrics)  # type: ignore[arg-type]


@pytest.mark.parametrize(("dtype", "sectors"), [("fp32", 65536), ("bf16", 32768)])
def test_the_tensor_of_a_language_model(dtype: str, sectors: int) -> None:
    tensor = ExpectedTensor(length=128, width=4096, dtype=dtype)
    assert (tensor.sectors, tensor.elements) == (sectors, 524288)


def test_attention_in_32_heads_stores_its_row_sums_too() -> None:
    tensor = ExpectedTensor(length=128, width=128, dtype="bf16", heads=32)
    assert (tensor.sectors, tensor.sectors_with_row_sums) == (32768, 33280)
    assert compare_sectors(33280, tensor) == "with row sums"


@pytest.mark.parametrize("dtype", ["fp32", "int64"])
def test_an_array_has_no_row_sums_but_strides(dtype: str) -> None:
    array = ExpectedTensor(length=8192, width=1, dtype=dtype)
    assert array.sectors_with_row_sums is None
    assert compare_sectors(2 * array.sectors, array) == "within"


@pytest.mark.parametrize(
    ("sectors", "verdict"),
    [(32768, "equal"), (32767, "below"), (40000, "within"), (524288, "within"), (524800, "above"), (None, None)],
)
def test_verdicts(sectors: float | None, verdict: SectorMatch | None) -> None:
    assert compare_sectors(sectors, ExpectedTensor(length=128, width=4096, dtype="bf16")) == verdict


def test_the_two_stores(tmp_path: Path) -> None:
    coalesced, strided, saxpy = metrics_of(read_ncu([real(tmp_path, "ncu/vec_metrics.csv")]))
    assert (coalesced.launches, coalesced.store_requests, coalesced.sectors_per_store) == (3, 256, 4)
    assert (strided.store_sectors, strided.sectors_per_store) == (2048, 8)
    assert (saxpy.load_requests, saxpy.sectors_per_load) == (1024, 4)
    assert coalesced.sectors_per_load is None


def found(path: Path, tensor: ExpectedTensor | None = ATTENTION) -> CriticalKernel:
    table = read_ncu([path])
    iterated = iterated_shapes(table, select_launches(table, AUTOMATIC), durations(table), AUTOMATIC)
    return find_critical(metrics_of(table), tensor, iterated)


@pytest.mark.parametrize(
    ("backend", "name", "verdict"),
    [
        ("flash", "flash_fwd_kernel", "with row sums"),
        ("efficient", "fmha_cutlassF_f16", "equal"),
        ("triton", "flash_attention", "equal"),
        ("math", "sm80_xmma_gemm_f32f32", "above"),
    ],
)
@pytest.mark.parametrize("tensor", [ATTENTION, None], ids=["tensor", "no tensor"])
def test_the_critical_kernel_of_attention(
    tmp_path: Path, backend: str, name: str, verdict: str, tensor: ExpectedTensor | None
) -> None:
    result = found(real(tmp_path, f"h200/ncu/attention_{backend}.csv"), tensor)
    assert result.kernel is not None
    assert name in result.kernel.shape.kernel
    assert compare_sectors(result.kernel.store_sectors, ATTENTION) == verdict
    assert len(result.steps) == 4


def test_types_by_operations_then_name_then_arithmetic() -> None:
    tensor_types = {"bf16": 5.0, "tf32": 1.0}
    of = {
        "operations": kernel("gemm_f16", tensor_activity=50.0, tensor_types=tensor_types, arithmetic={"fp32": 9.0}),
        "name": kernel("ampere_bf16_s16816gemm_bf16_64x64", tensor_activity=50.0, arithmetic={"fp32": 9.0}),
        "template": kernel("flash<4, cutlass::half_t>(int)", tensor_activity=50.0),
        "fp64": kernel("daxpy", arithmetic={"fp64": 9.0, "fp32": 1.0}),
        "nothing": kernel("copy", arithmetic={"fp32": 0.0}),
    }
    types = {key: data_type(each) for key, each in of.items()}
    names = {key: None if each is None else each.name for key, each in types.items()}
    assert names == {"operations": "bf16", "name": "bf16", "template": "fp16", "fp64": "fp64", "nothing": None}


def test_constants_of_the_card_are_no_instructions(tmp_path: Path) -> None:
    coalesced, _, saxpy = metrics_of(read_ncu([real(tmp_path, "ncu/vec_raw.csv")]))
    assert data_type(coalesced) is None
    assert saxpy.arithmetic["fp32"] > 0
    assert saxpy.arithmetic["fp64"] == 0


@pytest.mark.parametrize(
    ("compute", "memory", "bound"),
    [(80.0, 20.0, "compute"), (70.0, 90.0, "memory"), (10.0, 50.0, "neither"), (None, 90.0, None)],
)
def test_limiter_of_a_kernel(compute: float | None, memory: float | None, bound: str | None) -> None:
    assert bound_of(kernel("f", compute=compute, memory=memory)) == bound


def test_counted_operations_tell_as_activity_does() -> None:
    kernels = [kernel("a", tensor_operations=0.0), kernel("b", tensor_operations=9.0), kernel("c", share=0.9)]
    assert find_critical(kernels).kernel is kernels[1]


def test_without_tensor_cores_time_decides() -> None:
    copies = kernel("copy", tensor_activity=0.0, store_sectors=131072.0, share=0.1)
    works = kernel("work", tensor_activity=1.0, store_sectors=5.0, share=0.9)
    assert find_critical([copies, works], ATTENTION).kernel is works


def test_nothing_tells() -> None:
    result = find_critical([kernel("a"), kernel("b")])
    assert result.kernel is None
    assert "neither" in result.steps[-1].answer


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("void at::<unnamed>::g<float, (int)4>(T1, a *)", "at::_::g"),
        ("void at::(anonymous namespace)::g<float, 4>(int, a*) const", "at::_::g"),
        ("saxpy(float *, const float *, float, int)", "saxpy"),
        ("flash_attention", "flash_attention"),
        ("", ""),
        (">)", ">)"),
    ],
)
def test_the_function_of_a_name(name: str, function: str) -> None:
    assert function_name(name) == function


def test_names_of_two_tools() -> None:
    shapes = [Shape(name, None, None) for name in ("f<(int)4>(T1 *)", "g(int *)", "h<1>()", "h<2>()")]
    others = [Shape(name, None, None) for name in ("g(int*)", "void f<4>(int*)", "void h<1>()", "void h<2>()", "k")]
    pairs = match_kernels(shapes, others, lambda shape: shape)
    assert pairs[:2] == [(shapes[0], others[1]), (shapes[1], others[0])]
    assert pairs[2:] == [(shapes[2], None), (shapes[3], None), (None, others[2]), (None, others[3]), (None, others[4])]


def test_two_that_do_as_much_do_not_stand_out(tmp_path: Path) -> None:
    result = found(real(tmp_path, "h200/ncu/stores.csv"), None)
    assert result.kernel is None
    assert "no clear winner" in result.steps[-1].answer


def test_a_program_without_kernels() -> None:
    assert find_critical([], ATTENTION).kernel is None


@pytest.mark.parametrize(("page", "name"), [("kernels", "time_ns"), ("critical", "launches")])
def test_shares_are_of_the_launches_kept(
    page: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four launches of the first lie outside of what repeats: with them its share would be 59 %."""
    assert main(["import", "ncu", str(real(tmp_path, "ncu/vec_full.csv")), "--page", page, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)[page]
    assert [round(row["share_of_time"], 2) for row in rows] == [0.37, 0.31, 0.31]
    assert all(row[name] for row in rows)


def test_kept_time_and_total_are_distinguished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "ncu", str(real(tmp_path, "ncu/vec_full.csv")), "--format", "json"]) == 0
    first, second, _ = json.loads(capsys.readouterr().out)["kernels"]
    assert first["launches"] > first["kept"]
    assert first["kept_time_ns"] < 0.5 * first["total_ns"]
    assert second["kept_time_ns"] == second["total_ns"]


def test_tensor_work_is_that_of_the_launches_kept() -> None:
    metrics = kernel("gemm", tensor_operations=100.0)
    assert metrics.tensor_work == 100.0
    assert replace(metrics, launches=7, counted_launches=3).tensor_work == 300.0


def test_a_narrow_table_keeps_the_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "ncu", str(real(tmp_path, "ncu/vec_full.csv")), "--width", "80"]) == 0
    assert " share " in capsys.readouterr().out

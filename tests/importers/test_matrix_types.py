"""Types of matrix instructions in PTX."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.files import REAL
from tui_probe.nsight.analysis.critical import matrix_types, matrix_types_of


@pytest.mark.parametrize(
    ("instruction", "name"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "bf16"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "tf32"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "fp16"),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", "int8"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "fp8"),
        ("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "fp16"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "fp16"),
        ("@%p1 wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64.rn", "fp64"),
    ],
)
def test_the_type_of_the_operands(instruction: str, name: str) -> None:
    assert matrix_types(f"\t{instruction} {{%f1}}, {{%r1}};\n") == {name: 1}


@pytest.mark.parametrize(
    "text",
    [
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1];",
        "wgmma.commit_group.sync.aligned;",
        "// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        ".visible .entry mma(.param .u64 mma_param_0)",
        "fma.rn.f32 %f1, %f2, %f3, %f4;",
    ],
)
def test_other_instructions_multiply_no_matrices(text: str) -> None:
    assert matrix_types(text) == {}


def test_an_attention_kernel_of_triton(tmp_path: Path) -> None:
    ptx = (REAL / "ptx" / "attn_fwd.sm_90a.ptx").read_text()
    (tmp_path / "pruned.ptx").write_text(ptx)
    types = matrix_types_of(tmp_path)
    assert types == {"fp16": ptx.count("wgmma.mma_async.sync")}
    assert matrix_types_of(tmp_path / "none") == matrix_types_of(None) == {}


def test_a_gemm_of_cutlass() -> None:
    ptx = lzma.decompress((REAL / "ptx" / "cutlass_gemm.sm_80.ptx.xz").read_bytes()).decode()
    assert matrix_types(ptx) == {"fp16": ptx.count("mma.sync.aligned")}


@given(st.text())
def test_any_text(text: str) -> None:
    assert all(count > 0 for count in matrix_types(text).values())

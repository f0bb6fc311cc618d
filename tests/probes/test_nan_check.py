"""Planted NaNs and infinities are found where they are, of every type, and nothing else is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.kernels import DATA, entry, inserted, probed
from tests.probes.metric_values import figures_in
from tests.probes.running import example, result_of, simulated
from tests.probes.specimens import Specimen
from tests.simgpu.warpgroup_products import PRODUCTS
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.refusals import no_match_reason
from tui_probe.errors import ProbeFileError, TraceError
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes.nan_check import NanCheck, UncheckedStore, analyse, findings
from tui_probe.probes.nan_check.birth import analyse as analyse_births
from tui_probe.probes.nan_check.birth import findings as birth_findings
from tui_probe.ptx.control_flow import basic_blocks
from tui_probe.ptx.parser import parse
from tui_probe.ptx.value_types import ValueTypes
from tui_probe.trace.sites import SiteInstruction

if TYPE_CHECKING:
    from pathlib import Path

X = np.arange(300, dtype=np.float32)
X[203] = math.nan
SPECIMEN = Specimen(
    example("saxpy"), (np.ones(300, np.float32), X, np.float32(2), np.int32(300)), (4, 1, 1), (96, 1, 1)
)


def checked(tmp_path: Path, text: str, *arguments: Any, name: str = "", **options: Any) -> NanCheck:
    name = name or parse(text).entries()[0].name
    (tmp_path / "pruned.ptx").write_text(Kernel.of(parse(text), name).pruned)
    with np.errstate(all="ignore"):
        result = result_of(tmp_path, "nan_check", text, *arguments, name=name, **options)
    return analyse(result, tmp_path)


def saxpy(tmp_path: Path, planted: dict[int, float], count: int = 300) -> NanCheck:
    x = np.arange(count, dtype=np.float32)
    for place, value in planted.items():
        x[place] = value
    y = np.ones(count, np.float32)
    return checked(tmp_path, example("saxpy"), y, x, np.float32(2), np.int32(count), grid=(4,), block=(96,))


def test_a_planted_nan(tmp_path: Path) -> None:
    analysis = saxpy(tmp_path, {203: math.nan})
    assert (analysis.stores, len(analysis.non_finite), analysis.unchecked) == (1, 1, ())
    first = analysis.first
    assert first is not None
    assert (first.block, first.thread, first.kind, first.words) == ((2, 0, 0), (11, 0, 0), "f32", "NaN (f32)")
    assert "st.global" in (tmp_path / "pruned.ptx").read_text().splitlines()[first.line - 1]
    assert first.source is not None
    assert first.source.file.endswith(".cu")


def test_all_finite(tmp_path: Path) -> None:
    analysis = saxpy(tmp_path, {})
    assert (analysis.stores, analysis.first) == (0, None)
    assert [metric_value.key for metric_value in figures_in("nan_check", analysis) if metric_value.is_shown] == [
        "stores"
    ]


def test_clean_launch_states_its_checked_stores() -> None:
    store = SiteInstruction(12, "st.global.f32", "store")
    (clean,) = findings(cast("Any", None), NanCheck(0, (), (), checked=(store,)))
    assert (clean.words, clean.numbers) == ("1 store instruction checked, no NaN or infinity", {"stores": 0})
    unchecked = UncheckedStore(12, "st.global.b32", None)
    nothing, kind = findings(cast("Any", None), NanCheck(0, (), (unchecked,)))
    assert (nothing.words, kind.label) == ("– no store instruction was checked", "not checked")


def test_the_earliest_of_several(tmp_path: Path) -> None:
    """Of one warp the lowest lane; of blocks the one that stores first by the simulated GPU's timer."""
    analysis = saxpy(tmp_path, {5: math.inf, 3: -math.inf, 100: math.nan, 299: math.nan})
    assert analysis.stores == 3
    times = [store.time_ns for store in analysis.non_finite]
    assert times == sorted(times)
    first = next(store for store in analysis.non_finite if store.block[0] == 0)
    assert (first.thread[0], first.value) == (3, -math.inf)
    assert {metric_value.key: metric_value.label for metric_value in figures_in("nan_check", analysis)}[
        "first_line"
    ].startswith("first ")


BITS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def store(kind: str, width: int, vector: int) -> str:
    """Each thread negates ``vector`` numbers and stores them together as plain bits."""
    numbers = range(vector)
    data = ", ".join(f"%n{i}" for i in numbers)
    load = [f"ld.global.b{width} %o{i}, [%rd3+{i * width // 8}];" for i in numbers]
    suffix = f".v{vector}.b{width}" if vector > 1 else f".b{width}"
    negate = [f"neg.{kind} %n{i}, %o{i};" for i in numbers]
    return entry(
        f"""
.reg .b32 %r<3>;
.reg .b{width} %o<{vector}>;
.reg .b{width} %n<{vector}>;
.reg .b64 %rd<5>;
mov.u32 %r1, %tid.x;
ld.param.u64 %rd1, [out];
ld.param.u64 %rd2, [values];
mul.wide.u32 %rd4, %r1, {vector * width // 8};
add.s64 %rd3, %rd2, %rd4;
add.s64 %rd4, %rd1, %rd4;
{chr(10).join(load)}
{chr(10).join(negate)}
st.global{suffix} [%rd4], {"{" + data + "}" if vector > 1 else data};
ret;
""",
        ".param .u64 out, .param .u64 values",
    )


@pytest.mark.parametrize(("kind", "vector"), [("f16", 1), ("f16", 4), ("f32", 1), ("f32", 4), ("f64", 1), ("f64", 2)])
@given(planted=st.dictionaries(st.integers(0, 31), st.sampled_from([math.nan, math.inf, -math.inf]), max_size=3))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
def test_any_type_and_vector(tmp_path: Path, kind: str, vector: int, planted: dict[int, float]) -> None:
    dtype = np.dtype(BITS[kind])
    values = np.linspace(-60000, 60000, 32 * vector).astype(dtype)
    for thread, value in planted.items():
        values[thread * vector + thread % vector] = value
    arguments = np.zeros(32 * vector, dtype), values
    analysis = checked(tmp_path, store(kind, dtype.itemsize * 8, vector), *arguments)
    assert analysis.stores == (1 if planted else 0)
    assert analysis.unchecked == ()
    if analysis.first:
        lowest = min(planted)
        assert analysis.first.thread == (lowest, 0, 0)
        assert analysis.first.kind == kind
        assert analysis.first.value == -planted[lowest] or math.isnan(planted[lowest])


PACKED = """
.reg .b16 %h<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<3>;
.reg .f32 %f<4>;
ld.param.u64 %rd1, [out];
ld.param.f32 %f1, [low];
ld.param.f32 %f2, [high];
cvt.rn.{kind}x2.f32 %r1, %f2, %f1;
st.global.u32 [%rd1], %r1;
ret;
"""


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize(("low", "high"), [(1, 2), (math.nan, 1), (2, math.inf), (-math.inf, math.nan), (65504, -3)])
def test_two_numbers_in_one_register(tmp_path: Path, kind: str, low: float, high: float) -> None:
    text = entry(PACKED.format(kind=kind), ".param .u64 out, .param .f32 low, .param .f32 high")
    analysis = checked(tmp_path, text, np.zeros(1, np.uint32), np.float32(low), np.float32(high))
    wrong = [value for value in (low, high) if not math.isfinite(value)]
    assert analysis.stores == bool(wrong)
    if analysis.first:
        assert analysis.first.kind == kind
        assert analysis.first.value == wrong[0] or math.isnan(wrong[0])


WIDE = """
.reg .f16x2 %h<3>;
.reg .b16 %s<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<3>;
.reg .f32 %f<4>;
ld.param.u64 %rd1, [out];
ld.param.f32 %f1, [value];
cvt.rn.f16x2.f32 %r1, %f1, 0f3F800000;
mov.b32 %h1, %r1;
{store}
ret;
"""


@pytest.mark.parametrize(
    ("store", "stores"),
    [("st.global.b32 [%rd1], %h1;", 1), ("st.global.b16 [%rd1], %r1;", 0), ("st.global.b8 [%rd1], %r1;", 0)],
)
def test_only_what_is_stored_is_looked_at(tmp_path: Path, store: str, stores: int) -> None:
    """The upper half is infinite; the lower half, which is all that 16 bits take, is 1."""
    text = entry(WIDE.format(store=store), ".param .u64 out, .param .f32 value")
    assert checked(tmp_path, text, np.zeros(1, np.uint32), np.float32(math.inf)).stores == stores


def test_whole_numbers_are_none(tmp_path: Path) -> None:
    """0x7fc00000 stored as a number is a NaN; counted up, it is a whole number."""
    body = """
.reg .b32 %r<3>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [out];
ld.global.u32 %r1, [%rd1];
add.u32 %r1, %r1, 1;
st.global.u32 [%rd1], %r1;
ret;
"""
    analysis = checked(tmp_path, entry(body, ".param .u64 out"), np.full(1, 0x7FC00000, np.uint32))
    assert (analysis.stores, analysis.unchecked) == (0, ())


def test_unknowable_counts_are_reported(tmp_path: Path) -> None:
    """Bits that are only copied may be anything."""
    body = """
.reg .b32 %r<5>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [out];
ld.global.v2.b32 {%r1, %r2}, [%rd1];
st.global.v2.b32 [%rd1+8], {%r2, %r1};
ret;
"""
    analysis = checked(tmp_path, entry(body, ".param .u64 out"), np.full(4, 0x7FC00000, np.uint32))
    assert analysis.stores == 0
    assert [site.opcode for site in analysis.unchecked] == ["st.global.v2.b32"]
    assert {metric_value.key for metric_value in figures_in("nan_check", analysis) if metric_value.is_shown} == {
        "stores",
        "unchecked",
    }


def test_triton_softmax(tmp_path: Path) -> None:
    """A row with an infinity is all NaN: every thread of its block stores them."""
    rows, columns = 3, 64
    values = np.zeros((rows, columns), np.float32)
    values[1, 7] = math.inf
    text, out = example("softmax"), np.zeros_like(values)
    analysis = checked(tmp_path, text, out, values, np.int32(columns), grid=(rows,), block=(64,), shared=256)
    assert {store.block for store in analysis.non_finite} == {(1, 0, 0)}
    assert analysis.stores == 2
    assert all(math.isnan(store.value) for store in analysis.non_finite)


def test_triton_matrix_product_in_half_precision(tmp_path: Path) -> None:
    """The product goes through shared memory, and its stores are of plain 16 bits."""
    m = n = k = 64
    a, b = np.ones((m, k), np.float16), np.ones((k, n), np.float16)
    a[5, 3] = np.inf
    extra = [np.zeros(1, np.uint64)] * 2
    arguments = a, b, np.zeros((m, n), np.float16), np.int32(m), np.int32(n), np.int32(k), *extra
    analysis = checked(tmp_path, simulated("triton_matmul"), *arguments, block=(128,), shared=3 * 8192)
    assert analysis.unchecked == ()
    assert analysis.stores > 0
    assert {store.kind for store in analysis.non_finite} == {"f16"}
    assert {store.value for store in analysis.non_finite} == {math.inf}


@pytest.mark.parametrize("name", ["attn_fwd.sm_90a", "triton_matmul.sm_80", "triton_softmax.sm_90a"])
def test_stores_of_the_corpus_are_looked_at(name: str) -> None:
    text = (DATA / f"{name}.ptx").read_text()
    lines = inserted(probed(text, parse(text).entries()[0].name, load_probe("nan_check")))
    assert sum("%tp__found" in line and line.startswith("setp") for line in lines) >= text.count("st.global")


def test_results_of_another_probe(tmp_path: Path) -> None:
    arguments = np.zeros(64, np.uint32), np.uint32(64)
    with pytest.raises(TraceError, match=r"another probe|nan_check"):
        analyse(result_of(tmp_path, "gmem_bytes", example("zero_fill"), *arguments, block=(64,)))


BORN = """.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .f32 %f<6>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd2, %rd1, %rd2;
ld.global.f32 %f1, [%rd2];
mov.u32 %r2, 0;
$again:
add.f32 %f1, %f1, 0fBF800000;
sqrt.rn.f32 %f2, %f1;
add.f32 %f3, %f2, %f1;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p1, %r2, 3;
@%p1 bra $again;
st.global.f32 [%rd2], %f3;
ret;"""


def test_birth_has_instruction_iteration_and_warp(tmp_path: Path) -> None:
    """Thread 40 begins with 2: its third root is that of a negative number. The sum only hands the NaN on."""
    values = np.full(64, 9, np.float32)
    values[40], values[5] = 2, math.nan
    text = entry(BORN, ".param .u64 out")
    (tmp_path / "pruned.ptx").write_text(Kernel.of(parse(text), "kernel").pruned)
    with np.errstate(all="ignore"):
        births = analyse_births(result_of(tmp_path, "nan_check_birth", text, values, block=(64,)), tmp_path)
    assert births.total == 1
    birth = births.births[0]
    assert (birth.thread, birth.warp, birth.iterations, birth.text) == ((40, 0, 0), 1, 3, "NaN (f32)")
    assert (tmp_path / "pruned.ptx").read_text().splitlines()[birth.line - 1].startswith("sqrt.rn.f32")


def test_birth_in_an_accumulator(tmp_path: Path) -> None:
    """The product of a matrix overflows f16 where its inputs are finite."""
    text = entry(
        """.reg .b32 %r<10>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];
mov.b32 %r1, 0x7bff7bff;
mov.b32 %r2, 0;
mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r3, %r4}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%r2, %r2};
st.global.b32 [%rd1], %r3;
ret;""",
        ".param .u64 out",
    )
    with np.errstate(all="ignore"):
        result = result_of(tmp_path, "nan_check_birth", text, np.zeros(1, np.uint32), block=(32,))
    births = analyse_births(result)
    assert (births.total, births.births[0].text) == (1, "inf (f16)")


LITERALS = """.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .f32 %f<9>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
mad.wide.u32 %rd2, %r1, 4, %rd1;
ld.global.f32 %f1, [%rd2];
mov.f32 %f2, 0f7F800000;
mov.f32 %f3, 0f7FFFFFFF;
setp.lt.f32 %p1, %f1, 0f00000000;
{body}
st.global.f32 [%rd2], %f8;
ret;"""


@pytest.mark.parametrize(
    ("body", "value", "birth"),
    [
        ("fma.rn.f32 %f8, %f1, %f2, %f2;", -5, "NaN (f32) from finite inputs"),  # as in logf
        ("fma.rn.f32 %f8, %f1, %f2, %f2;", math.inf, ""),
        ("fma.rn.f32 %f8, %f1, %f2, %f2;", math.nan, ""),
        ("sub.f32 %f8, %f1, %f1;", -math.inf, "NaN (f32) from an infinite input"),
        ("mul.f32 %f8, %f1, 0f00000000;", math.inf, "NaN (f32) from an infinite input"),
        ("add.f32 %f8, %f1, 0f3F800000;", -math.inf, ""),
        ("mul.f32 %f8, %f1, 0f7F000000;", -8, "-inf (f32) from finite inputs"),
        ("mov.f32 %f8, %f1;\n@%p1 mov.f32 %f8, 0f7FFFFFFF;", -5, "NaN (f32) from finite inputs"),  # as in powf
        ("mov.f32 %f8, %f1;\n@%p1 mov.f32 %f8, 0f7FFFFFFF;", 5, ""),
        ("selp.f32 %f8, %f3, %f1, %p1;", -5, "NaN (f32) from finite inputs"),
        ("selp.f32 %f8, %f3, %f1, %p1;", math.nan, ""),
        ("selp.f32 %f8, 0fFF800000, %f1, %p1;", -5, ""),  # a mask
    ],
)
def test_birth_of_literal_or_infinite_inputs(tmp_path: Path, body: str, value: float, birth: str) -> None:
    text = entry(LITERALS.format(body=body), ".param .u64 out")
    with np.errstate(all="ignore"):
        values = np.full(32, value, np.float32)
        births = analyse_births(result_of(tmp_path, "nan_check_birth", text, values, block=(32,)), tmp_path)
    assert births.total == len(births.births) == bool(birth)
    assert [f"{own.text} {own.origin}" for own in births.births] == [f"{birth} at"] * births.total


HALVES = """.reg .b32 %r<4>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [out];
ld.global.b32 %r1, [%rd1];
ld.global.b32 %r2, [%rd1+4];
{opcode}.{kind} %r3, %r1, %r2;
st.global.b32 [%rd1], %r3;
ret;"""


@pytest.mark.parametrize(
    ("kind", "numbers", "birth"),
    [
        ("f16x2", (0x7C00_3C00, 0xFC00_3C00), "NaN (f16)"),  # inf - inf in the upper half
        ("f16x2", (0x7BFF_3C00, 0x7BFF_3C00), "inf (f16)"),
        ("f16x2", (0x7BFF_7C00, 0x7BFF_3C00), ""),  # the upper half overflows next to an infinity
        ("f16x2", (0x7BFF_7E00, 0x7BFF_3C00), ""),
        ("bf16x2", (0x3F80_7F80, 0x3F80_FF80), "NaN (bf16)"),
        ("bf16x2", (0x3F80_7FC0, 0x3F80_3F80), ""),
    ],
)
def test_birth_in_packed_halves(tmp_path: Path, kind: str, numbers: tuple[int, int], birth: str) -> None:
    text = entry(HALVES.format(opcode="add", kind=kind), ".param .u64 out")
    with np.errstate(all="ignore"):
        births = analyse_births(
            result_of(tmp_path, "nan_check_birth", text, np.array(numbers, np.uint32), block=(1,)), tmp_path
        )
    assert [own.text for own in births.births] == [birth] * births.total
    assert births.total == bool(birth)


FUSED = """.reg .f32 %f<5>;
.reg .b64 %rd<3>;
.reg .b32 %r<3>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
mad.wide.u32 %rd2, %r1, 4, %rd1;
ld.global.f32 %f1, [%rd2];
mul.f32 %f2, %f1, %f1;
ld.global.f32 %f3, [%rd1];
sqrt.rn.f32 %f3, %f3;
add.f32 %f4, %f2, %f3;
st.global.f32 [%rd2], %f4;
ret;"""


def test_birth_in_product_that_ptxas_fuses_is_at_its_sum(tmp_path: Path) -> None:
    """Thread 5 overflows in the product; thread 7 hands a NaN from memory on."""
    values = np.full(32, 2, np.float32)
    values[5], values[7] = 3e38, math.nan
    text = entry(FUSED, ".param .u64 out")
    (tmp_path / "pruned.ptx").write_text(Kernel.of(parse(text), "kernel").pruned)
    with np.errstate(all="ignore"):
        births = analyse_births(result_of(tmp_path, "nan_check_birth", text, values, block=(32,)), tmp_path)
    assert [(birth.thread[0], birth.opcode) for birth in births.births] == [(5, "add.f32")]
    lines = [line.strip() for line in probed(text, "kernel", load_probe("nan_check_birth")).splitlines()]
    own = [number for number, line in enumerate(lines) if line.startswith("add.f32 %f4")]
    assert lines[own[0] - 1].startswith("mul.f32 %f2, %f1, %f1;")
    assert not any("%f2" in line and not line.startswith(("mul.f32", "add.f32")) for line in lines)


def test_birth_in_an_accumulator_of_a_warpgroup(tmp_path: Path) -> None:
    """An infinite factor in shared memory makes row 17 of the product infinite, and 0 * inf in it a NaN."""
    product = next(own for own in PRODUCTS.values() if own.a and own.types == ("f32", "f16", "f16"))
    assert product.a is not None
    image = product.image(np.random.default_rng(1))
    place = product.a.place(17, 0, product.size)
    image[place : place + 2] = np.array([np.inf], np.float16).view(np.uint8)
    operands = np.uint64(product.a.descriptor), np.uint64(product.b.descriptor)
    arguments = np.zeros((128, 8), np.float32), image, np.zeros((128, 4), np.uint32), *operands
    (tmp_path / "pruned.ptx").write_text(Kernel.of(parse(product.source), "multiplies").pruned)
    with np.errstate(all="ignore"):
        result = result_of(tmp_path, "nan_check_birth", product.source, *arguments, block=(128,))
    births = analyse_births(result, tmp_path)
    (birth,) = births.births
    assert (birth.warp, birth.thread[0] % 32 // 4, birth.is_of_product) == (1, 1, True)
    assert not math.isfinite(birth.value)
    first, _ = birth_findings(cast("Any", None), births)
    assert "computed by a wgmma and detected at wgmma.wait_group" in first.words


WAITS = """.reg .b64 %rd<3>; .reg .pred %p; .reg .f32 %f<12>;
setp.ne.u32 %p, 0, 1;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, p, 1, 1, 0, 0;
wgmma.wait_group.sync.aligned 1;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, p, 1, 1, 0, 0;
wgmma.wait_group.sync.aligned 0;
$loop:
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f5, %f6, %f7, %f8}, %rd1, %rd2, p, 1, 1, 0, 0;
@%p bra $loop;
wgmma.wait_group.sync.aligned 0;
ret;"""


def test_full_waits_have_accumulators_since_the_one_before() -> None:
    (function,) = parse(entry(WAITS, "")).entries()
    values = ValueTypes(function)
    waits = [own for own in basic_blocks(function) for own in own if own.opcode == "wgmma" and len(own.operands) == 1]
    registers = [[name for name, _ in values.result_elements(wait)] for wait in waits]
    assert registers == [[], ["%f1", "%f2", "%f3", "%f4"], ["%f5", "%f6", "%f7", "%f8"]]


FRAGMENTS = """.reg .b32 %r<30>; .reg .f32 %f<10>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];
mov.b32 %r1, 0x7bff7bff;
mov.b32 %r2, 0;
wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r3, %r4, %r5, %r6}, {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1},
 {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}, {%r2, %r2, %r2, %r2};
st.global.b32 [%rd1], %r3;
ret;"""


def test_birth_in_a_fragment(tmp_path: Path) -> None:
    text = entry(FRAGMENTS, ".param .u64 out")
    with np.errstate(all="ignore"):
        result = result_of(tmp_path, "nan_check_birth", text, np.zeros(1, np.uint32), block=(32,))
    births = analyse_births(result)
    assert (births.total, births.births[0].text) == (1, "inf (f16)")


LINES = """.reg .b32 %r<3>; .reg .f32 %f<4>; .reg .b64 %rd<3>;
.loc 1 5 1
ld.param.u64 %rd1, [out];
ld.global.f32 %f1, [%rd1];
.loc 1 6 1
sqrt.rn.f32 %f2, %f1;
.loc 1 7 1
rcp.rn.f32 %f3, %f1;
.loc 1 8 1
st.global.f32 [%rd1], %f2;
st.global.f32 [%rd1+4], %f3;
ret;"""


def test_probe_is_limited_to_chosen_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root in line 6 makes a NaN, the reciprocal in line 7 an infinity; only the second line is chosen."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    probe = load_probe("nan_check_birth@numbers.cu:7")
    text = entry(LINES, ".param .u64 out").replace(".visible", '.file 1 "/home/a/numbers.cu"\n.visible')
    for value, lines in ((-1, []), (0, ["rcp.rn.f32"])):
        (tmp_path / "pruned.ptx").write_text(Kernel.of(parse(text), "kernel").pruned)
        with np.errstate(all="ignore"):
            result = result_of(tmp_path, probe, text, np.array([value, 0], np.float32), block=(1,))
        births = analyse_births(result, tmp_path)
        assert [birth.opcode for birth in births.births] == lines
    bare = Kernel.of(parse(entry(LINES.replace(".loc", "//"), ".param .u64 out")), "kernel")
    reason = no_match_reason(probe, bare).text
    assert reason.endswith("in numbers.cu:7: it has no source lines (compile with -lineinfo)")


def test_limited_probe_in_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(
        ProbeFileError, match=r"@LINES needs a probe in TOML, not Python; in .*, set 'pos' of the functions to "
    ):
        load_probe(f"{tmp_path / 'mine.py'}@a.cu:3")

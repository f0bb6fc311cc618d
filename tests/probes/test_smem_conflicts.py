"""Passes and conflicts are those of the rule, worked out lane by lane."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.kernels import entry
from tests.probes.running import example, result_of
from tests.probes.specimens import Specimen
from tui_probe.probes.smem_conflicts import BankConflicts, analyse

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = 4000


def access(kind: str, size: int) -> str:
    """Each thread loads and stores the element of shared memory that its index names, unless that is NOWHERE."""
    registers = ", ".join(f"%v{i}" for i in range(max(size // 4, 1)))
    data = f"{{{registers}}}" if size > 4 else registers
    return entry(
        f"""
.shared .align 16 .b8 tile[16384];
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b32 {registers};
.reg .b64 %rd<9>;
mov.u32 %r1, %tid.x;
ld.param.u64 %rd1, [indices];
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd2, %rd1, %rd2;
ld.global.u32 %r2, [%rd2];
setp.ne.u32 %p1, %r2, {NOWHERE};
mov.u32 %r3, tile;
mad.lo.u32 %r3, %r2, {size}, %r3;
@%p1 ld.shared.{kind} {data}, [%r3];
@!%p1 bra $end;
st.shared.{kind} [%r3], {data};
$end:
ret;
""",
        ".param .u64 indices",
    )


SPECIMEN = Specimen(access("b32", 4), (np.arange(32, dtype=np.uint32) * 32,), (1, 1, 1), (32, 1, 1))


def by_the_rule(indices: np.ndarray[Any, Any], size: int) -> tuple[int, int, int]:
    """Accesses, passes and conflicts of one load in each warp, one word of one lane at a time."""
    accesses = passes = conflicts = 0
    for warp in indices.reshape(-1, 32):
        banks: dict[int, set[int]] = defaultdict(set)
        for index in warp[warp != NOWHERE].tolist():
            for byte in range(0, size, 4):
                word = (index * size + byte) // 4
                banks[word % 32].add(word)
        if banks:
            now, distinct = max(map(len, banks.values())), sum(map(len, banks.values()))
            accesses, passes, conflicts = accesses + 1, passes + now, conflicts + now - -(-distinct // 32)
    return accesses, passes, conflicts


KINDS = pytest.mark.parametrize(
    ("kind", "size"), [("u8", 1), ("u16", 2), ("b32", 4), ("v2.b32", 8), ("v4.b32", 16)], ids=lambda kind: str(kind)
)
lanes = st.lists(st.one_of(st.integers(0, 1000), st.integers(0, 5), st.just(NOWHERE)), min_size=64, max_size=64)


@KINDS
@given(picked=lanes)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
def test_any_addresses(tmp_path: Path, kind: str, size: int, picked: list[int]) -> None:
    indices = np.array(picked, np.uint32)
    analysis = analyse(result_of(tmp_path, "smem_conflicts", access(kind, size), indices, block=(64,)))
    assert (analysis.accesses, analysis.passes, analysis.conflicts) == tuple(
        2 * count for count in by_the_rule(indices, size)
    )


@pytest.mark.parametrize(
    ("stride", "kind", "size", "passes", "conflicts"),
    [
        (0, "b32", 4, 1, 0),
        (1, "b32", 4, 1, 0),
        (2, "b32", 4, 2, 1),
        (3, "b32", 4, 1, 0),
        (32, "b32", 4, 32, 31),
        (33, "b32", 4, 1, 0),
        (1, "u8", 1, 1, 0),
        (1, "v2.b32", 8, 2, 0),
        (1, "v4.b32", 16, 4, 0),
        (8, "v4.b32", 16, 32, 28),
    ],
)
def test_strides(tmp_path: Path, stride: int, kind: str, size: int, passes: int, conflicts: int) -> None:
    indices = np.arange(32, dtype=np.uint32) * stride
    assert indices[-1] * size < 16384
    analysis = analyse(result_of(tmp_path, "smem_conflicts", access(kind, size), indices))
    assert analysis == BankConflicts(accesses=2, passes=2 * passes, conflicts=2 * conflicts, threads_missing=0)
    assert analysis.degree == passes / (passes - conflicts)


def test_tiled_matrix_product(tmp_path: Path) -> None:
    """A warp is two rows of 16. It stores 32 words side by side, and reads 2 words of a, 16 apart, and 16 of b."""
    size, tiles = 64, 4
    a = np.ones((size, size), np.float32)
    arguments = np.zeros_like(a), a, a, np.int32(size)
    options: dict[str, Any] = {"grid": (tiles, tiles), "block": (16, 16)}
    analysis = analyse(result_of(tmp_path, "smem_conflicts", example("matmul"), *arguments, **options))
    accesses = tiles * tiles * 8 * tiles * (2 + 32)
    assert analysis == BankConflicts(accesses, accesses, 0, 0)

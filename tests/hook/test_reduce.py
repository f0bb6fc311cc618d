"""Reduced maps: what the hook leaves of any records is what their variant in Python says."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.reduced_maps import reduced_bytes, reduced_size
from tests.turns import examples
from tui_probe.probe_model.probe import (
    FIELD_BYTES,
    REDUCTION_GROUPS,
    REDUCTION_OPERATIONS,
    Field,
    ReducedField,
    Reduction,
)

from .conftest import Build
from .object_files import compile_with_hook

HERE = Path(__file__).resolve().parent
REFUSED = 0xFFFFFFFF


@pytest.fixture(scope="module")
def program(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reduce") / "reduce"
    flags = ["-g1", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compile_with_hook(built, HERE / "reduce_program.c", path, *flags)
    return path


@dataclass
class Case:
    """A map of one launch. ``slots`` has shape (blocks, slots per block, bytes), ``saved`` all but the last."""

    reduction: Reduction
    by_warp: bool
    marked: bool
    threads: int
    window: int
    slots: np.ndarray[Any, np.dtype[np.uint8]]
    saved: np.ndarray[Any, np.dtype[np.bool_]]

    def device(self) -> bytes:
        """Slots as on the device: behind each the mark, padded to the unit of its record."""
        if not self.marked:
            return self.slots.tobytes()
        blocks, slots, record = self.slots.shape
        unit = next(unit for unit in (16, 8, 4) if record % unit == 0)
        marks = np.full((blocks, slots, unit), 0xAA, np.uint8)
        marks[:, :, :4] = self.saved[:, :, np.newaxis].astype("<u4").view(np.uint8)
        return np.concatenate([self.slots, marks], axis=2).tobytes()

    def request(self, text: str) -> bytes:
        blocks, _, record = self.slots.shape
        device, line = self.device(), text.encode()
        numbers = int(self.by_warp), int(self.marked), record, blocks, self.threads, self.window, len(line), len(device)
        return struct.pack("<8I", *numbers) + line + device


def answers(program: Path, requests: list[bytes]) -> list[bytes | None]:
    """Return the reduced records of each case; None where the line is refused."""
    run = subprocess.run([program], input=b"".join(requests), capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    found: list[bytes | None] = []
    at = 0
    for _ in requests:
        (size,) = struct.unpack_from("<I", run.stdout, at)
        at += 4
        found.append(None if size == REFUSED else run.stdout[at : at + size])
        at += 0 if size == REFUSED else size
    assert at == len(run.stdout)
    return found


@st.composite
def reductions(draw: st.DrawFn, fields: list[Field], group: str) -> Reduction:
    """One to five fields of what is left, in any order, with a gap at the end at times."""
    made, offset = [], 0
    for number in range(draw(st.integers(1, 5))):
        operation = draw(st.sampled_from(REDUCTION_OPERATIONS))
        source = draw(st.sampled_from(fields))
        kind = "u64" if operation == "sum" else source.type
        base = draw(st.sampled_from(fields)) if operation == "span" else None
        made.append(ReducedField(Field(f"f{number}", kind, offset), operation, source, base))
        offset += FIELD_BYTES[kind]
    return Reduction(group, tuple(made), offset + draw(st.sampled_from((0, 4))))  # type: ignore[arg-type]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    by_warp = draw(st.booleans())
    types = draw(st.lists(st.sampled_from(("u32", "u64")), min_size=1, max_size=4))
    fields, offset = [], 0
    for number, kind in enumerate(types):
        fields.append(Field(f"s{number}", kind, offset))  # type: ignore[arg-type]
        offset += FIELD_BYTES[kind]  # type: ignore[index]
    reduction = draw(reductions(fields, draw(st.sampled_from(REDUCTION_GROUPS[by_warp:]))))
    blocks, threads = draw(st.integers(1, 20)), draw(st.integers(1, 200))
    slots = -(-threads // 32) if by_warp else threads
    noise = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = noise.integers(0, draw(st.sampled_from((2, 256))), (blocks, slots, offset), np.uint8)
    marked = draw(st.booleans())
    saved = noise.random((blocks, slots)) < draw(st.sampled_from((0.0, 0.05, 0.7, 1.0))) if marked else True
    window = draw(st.sampled_from((64, 200, 4096, 1 << 20)))
    return Case(reduction, by_warp, marked, threads, window, values, np.broadcast_to(saved, (blocks, slots)))


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(some=st.lists(cases(), min_size=1, max_size=10))
def test_any_records(program: Path, some: list[Case]) -> None:
    """A map stays as it is if its reduced form takes no less room than the records."""
    reduced = answers(program, [case.request(case.reduction.line) for case in some])
    for case, left in zip(some, reduced, strict=True):
        size = reduced_size(case.reduction, len(case.slots), case.threads)
        expected = reduced_bytes(case.reduction, case.slots, case.saved) if size < case.slots.size else b""
        assert left == expected


LINE = "block record 16 min:u64@0:u64@0 span:u32@8:u32@8:u64@0 same:u32@12:u32@12"


@pytest.mark.parametrize(
    ("line", "understood"),
    [
        (LINE, True),
        ("launch record 8 sum:u64@0:u32@12", True),
        ("", False),
        ("block record 16", False),
        ("thread record 8 sum:u64@0:u64@0", False),
        ("block record 0 sum:u64@0:u64@0", False),
        ("block record 8 mean:u64@0:u64@0", False),
        ("block record 8 sum:u16@0:u64@0", False),
        ("block record 8 sum:u64@4:u64@0", False),  # outside of what is left
        ("block record 8 sum:u64@0:u64@12", False),  # outside of the records
        ("block record 8 sum:u64@0:u32@4294967295", False),
        ("block record 8 sum:u64@0", False),
        ("block record 8 span:u64@0:u64@0", False),
        ("block record 8 sum:u64@0:u64@0:u64@0", False),
        ("block record 8 sum:u64@0:u64@0 ", False),
        ("block record 8  sum:u64@0:u64@0", False),
        (f"{LINE} x", False),
    ],
)
def test_lines(program: Path, line: str, understood: bool) -> None:
    nothing = np.zeros((4, 8, 16), np.uint8)
    reduction = Reduction("block", (), 16)
    case = Case(reduction, True, False, 256, 4096, nothing, np.ones((4, 8), bool))
    assert (answers(program, [case.request(line)]) != [None]) == understood

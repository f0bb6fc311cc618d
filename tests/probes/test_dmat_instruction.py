"""The accesses of one instruction only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.probes.dmat_example import BLOCKS, LOAD_A, LOAD_B, STEPS, STORE_C, THREADS, write_dmat
from tests.probes.dmat_view import opened, prepared
from tui_probe.pages.view_output import run_commands
from tui_probe.probes.dmat.accesses import Selection
from tui_probe.probes.dmat.coalescing import by_line
from tui_probe.trace.kernel_files import Offset

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probes.dmat.view import Dmat

SIZE = (80, 24)
MADE = {LOAD_A: BLOCKS * THREADS * STEPS, LOAD_B: BLOCKS * THREADS * STEPS, STORE_C: BLOCKS * THREADS}


@pytest.fixture
def view(tmp_path: Path) -> Dmat:
    write_dmat(tmp_path / "dmat")
    return opened(tmp_path / "dmat")


def counted(view: Dmat) -> int:
    """All accesses of the picture."""
    frame = prepared(view, *SIZE).frame
    assert frame is not None
    return int(frame.counts.sum())


def test_one_after_another_and_then_all(view: Dmat) -> None:
    assert counted(view) == sum(MADE.values())
    seen = []
    for _ in range(3):
        view.press("select")
        seen.append((view.selection.line, counted(view)))
    assert seen == list(MADE.items())
    assert view.selection_text() == f"st.global.f32 PTX:{STORE_C} of the whole grid"
    assert view.press("select") == "the whole grid"
    assert counted(view) == sum(MADE.values())


def test_accesses_under_the_cursor_belong_to_the_instruction(view: Dmat) -> None:
    run_commands(view, ["select", "select", "select", "colour", "colour"], SIZE)
    counted(view)
    frame = view.frame
    assert frame is not None
    assert frame.sectors is not None
    assert np.nanmin(frame.sectors) == np.nanmax(frame.sectors) == 32
    row, column = divmod(int(frame.cell_counts.argmax()), frame.cell_counts.shape[1])
    view._set_cursor(frame, row, column)
    counted(view)
    assert view.ptx_line() == STORE_C
    assert next(iter(view.read_out(frame).origin_texts())).startswith(f"st.global.f32 PTX:{STORE_C}")


def test_accesses_of_a_block_and_a_warp(view: Dmat) -> None:
    run_commands(view, ["select", "level"], SIZE)
    assert (view.selection.line, view.selection.warp) == (LOAD_A, None)
    assert counted(view) == THREADS * STEPS
    run_commands(view, ["level"], SIZE)
    assert counted(view) == 32 * STEPS
    assert view.record()["selection"]["ptx_line"] == LOAD_A
    run_commands(view, ["level"], SIZE)
    assert view.selection == Selection(line=LOAD_A)


def test_compact_records_name_no_instruction(tmp_path: Path) -> None:
    write_dmat(tmp_path / "compact", compact=True)
    view = opened(tmp_path / "compact")
    assert "select" not in view.commands()
    assert view.painter.recorded_lines == []


def test_instructions_of_a_large_result_come_from_the_code(view: Dmat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.probes.dmat.frame._MAX_RECORDS_PER_KEY", 10)
    assert view.painter.recorded_lines == list(MADE)


def test_parts_know_how_many_records_are_left(view: Dmat) -> None:
    for line, made in MADE.items():
        parts = view.map.accesses.parts(Selection(line=line))
        assert sum(part.record_count for part in parts) == made
        assert all((part.lines() == line).all() for part in parts)  # type: ignore[union-attr]
        pieces = [piece for part in parts for piece in part.pieces()]
        assert sum(len(piece.addresses()) for piece in pieces) == made


def test_instructions_of_machine_code_are_named_by_their_offsets(tmp_path: Path) -> None:
    write_dmat(tmp_path / "dmat")
    (folder,) = (tmp_path / "dmat" / "kernel").iterdir()
    kinds = {LOAD_A: ("LDG", "load"), LOAD_B: ("LDG", "load"), STORE_C: ("STG", "store")}
    sites = [
        {"offset": at, "at": "instruction", "points": ["access"], "opcode": opcode, "class": access, "space": "global",
         "access": access, "bytes": 4}
        for at, (opcode, access) in kinds.items()
    ]  # fmt: skip
    own = {"probe": "dmat", "way": "graft", "sites": sites, "maps": {}, "unchecked": []}
    (folder / "sites.json").write_text(json.dumps({"version": 1, "files": [], "probes": [own]}))
    view = opened(tmp_path / "dmat")
    assert view.target_view() == "sass"
    run_commands(view, ["select", "select", "select"], SIZE)
    assert counted(view) == MADE[STORE_C]
    assert view.selection_text() == f"STG {STORE_C:#06x} of the whole grid"
    table = by_line(view.map.accesses, folder)
    assert {(type(row.line), row.line) for row in table.rows} == {(Offset, at) for at in kinds}
    assert [row.excessive_sectors for row in table.rows if row.line == STORE_C] != [None]

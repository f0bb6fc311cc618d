"""Results that are not as a probe writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.probes.dmat_example import LOAD_A, A, write_dmat
from tests.probes.dmat_files import Launch
from tests.probes.dmat_view import drawn, opened
from tests.turns import examples
from tui_probe.errors import TraceError
from tui_probe.probes.dmat.view import Dmat

CONTENT = Launch(2, 40, {(0, 3): [(7, A, LOAD_A)]}, [0, 9]).content(3)


def view_of(folder: Path, content: bytes) -> Dmat | str:
    """The view of a result, or what is said of it."""
    write_dmat(folder / "trace")
    (path,) = (folder / "trace" / "result").iterdir()
    path.write_bytes(content)
    try:
        return opened(folder / "trace")
    except TraceError as error:
        return str(error).replace(str(folder), "")


@settings(max_examples=examples(60))
@given(st.binary(min_size=1, max_size=400), st.integers(0, 2))
def test_any_records_are_drawn_or_refused(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int) -> None:
    warps = 32 + 16 * 3
    records = warps + 2 * 2 * 24
    at = (warps, records, records + 2 * 40 * 3 * 16)[place]
    damaged = (CONTENT[:at] + noise + CONTENT[at + len(noise) :])[: len(CONTENT)]
    view = view_of(tmp_path_factory.mktemp("dmat"), damaged)
    if isinstance(view, str):
        assert "/trace/result/0.001000.bin" in view
        return
    for command in ("zoom_in", "colour", "colour", "colour", "level", "zoom_in_rows"):
        assert len(drawn(view, 60, 16)) == 16
        view.press(command)
    json.dumps(view.record(), allow_nan=False)


def test_an_address_that_no_gpu_has_is_named(tmp_path: Path) -> None:
    content = Launch(1, 32, {(0, 0): [(7, 1 << 60, LOAD_A)]}, [0]).content(3)
    assert view_of(tmp_path, content) == (
        "/trace/result/0.001000.bin is damaged: the address of an access is 0x1000000000000000, which no GPU has"
    )


def test_a_result_of_another_probe_is_refused(tmp_path: Path) -> None:
    view = view_of(tmp_path, CONTENT[:28] + b"\0" * 4)
    assert isinstance(view, str)
    assert "another probe wrote the file" in view

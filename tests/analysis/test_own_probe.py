"""Figures of probes that have no analysis, from files made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.trace.make import result_bytes
from tui_probe.errors import TraceError
from tui_probe.probekit.custom_probe import CustomMap, analyse_custom, field_values
from tui_probe.trace.results import Result, read_result

if TYPE_CHECKING:
    from pathlib import Path

RECORD = np.dtype([("a", "<u8"), ("b", "<u4"), ("c", "<u4")])
SUMS = CustomMap("sums", np.dtype([("n", "<u8")]), sums=True)
ONCE = CustomMap("once", RECORD)
MANY = CustomMap("many", np.dtype([("x", "<u4")]))


@pytest.fixture
def result(tmp_path: Path) -> Result:
    """Two blocks of two warps: sums, one record per slot of which three were saved, up to two records per slot."""
    once = np.zeros((2, 2), RECORD)
    once["a"], once["b"] = [[5, 0], [7, 2**63]], [[1, 0], [3, 2]]
    many = np.array([[[4, 0], [9, 6]], [[0, 0], [0, 0]]], "<u4")
    attempts = np.array([[[1], [5]], [[0], [0]]], "<u4")
    maps = [
        (32, np.arange(4, dtype="<u8").reshape(2, 2, 1).view(np.uint8)),
        (32, once.view(np.uint8).reshape(2, 2, 16)),
        (32, many.view(np.uint8).reshape(2, 2, 8)),
        (32, attempts.view(np.uint8).reshape(2, 2, 4)),
    ]
    about = [(0, 8, b""), (1, 16, bytes([0b1101])), (2, 4, b""), (3, 4, b"")]
    path = tmp_path / "1.bin"
    path.write_bytes(result_bytes((2, 1, 1), (64, 1, 1), maps, about=about))
    return read_result(path)


def test_figures(result: Result) -> None:
    values = {
        metric_value.key: metric_value.value
        for metric_value in analyse_custom(result, (SUMS, ONCE, MANY)).metric_values()
    }
    assert values == {
        "sums.n": 6,
        "once.written": 3, "once.slots": 4,
        "once.a.least": 5, "once.a.most": 2**63, "once.b.least": 1, "once.b.most": 3,
        "once.c.least": 0, "once.c.most": 0, "once.a.median": 7, "once.b.median": 2, "once.c.median": 0,
        "many.kept": 3, "many.attempts": 6, "many.x.least": 4, "many.x.median": 6, "many.x.most": 9,
    }  # fmt: skip


def test_records_too_many_to_look_at(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted all the same."""
    monkeypatch.setattr("tui_probe.probekit.custom_probe.MAX_READ_BYTES", 10)
    values = {
        metric_value.key: (metric_value.value, metric_value.is_shown)
        for metric_value in analyse_custom(result, (SUMS, ONCE, MANY)).metric_values()
    }
    assert (values["once.written"], values["once.a.least"]) == ((3, True), (None, False))


@pytest.mark.parametrize("maps", [(SUMS,), (SUMS, ONCE), (SUMS, ONCE, MANY, MANY), (ONCE, SUMS, MANY)])
def test_maps_of_another_probe(result: Result, maps: tuple[CustomMap, ...]) -> None:
    with pytest.raises(TraceError, match=r"1\.bin: .*another"):
        analyse_custom(result, maps)
    with pytest.raises(TraceError, match=r"1\.bin: .*another"):
        list(field_values(result, maps))

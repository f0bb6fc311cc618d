"""Reading a saved measurement: all that was written comes back, and anything else is an error of tui-probe."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bandwidth.made_up import CARD, measured, write_result
from tui_probe.bandwidth.rates import Rate
from tui_probe.errors import ImportFileError
from tui_probe.nsight.pages.opening import open_imported
from tui_probe.pages.bandwidth_page import open_bandwidth
from tui_probe.pages.view_output import view_lines
from tui_probe.verdicts.bandwidth import read_bandwidth

FIELDS = ("key", "what", "size", "seconds", "repeats", "spread", "blocks", "in_flight", "limit")


def values(rate: Rate) -> list[object]:
    return [getattr(rate, name) for name in FIELDS] + [pytest.approx(rate.bytes_per_second)]


def test_written_file_is_read_back(tmp_path: Path) -> None:
    before, after = measured(), read_bandwidth(write_result(tmp_path / "bw.json"))
    assert after.card is not None
    assert {**asdict(after.card), "shared_bytes": CARD.shared_bytes} == {
        **asdict(CARD),
        "memory_bandwidth": CARD.memory_bandwidth,
    }
    assert [values(rate) for rate in after.rates] == [values(rate) for rate in before.rates]
    assert [values(rate) for rate in after.swept] == [values(rate) for rate in before.swept]


def test_disk_only_result_has_no_card(tmp_path: Path) -> None:
    path = tmp_path / "disk.json"
    path.write_text(json.dumps({"device": None, "bandwidth": [{"key": "disk_read", "bytes_per_second": 3e9}]}))
    read = read_bandwidth(path)
    assert (read.card, read.rates[0].what, read.rates[0].seconds) == (None, "disk_read", None)
    (text,) = [line for line in opened(path)[0].text(100) if "disk_read" in line]
    assert text.split() == ["disk_read", "3.00", "GB/s"], "columns without values are hidden"


def opened(path: Path) -> list[Any]:
    return [page.make() for page in open_imported([path]).pages]


@pytest.mark.parametrize(
    "content",
    [
        "[]", "{}", '{"bandwidth": []}', '{"bandwidth": {}}', '{"bandwidth": [1]}', '{"bandwidth": [{"key": "a"}]}',
        '{"bandwidth": [{"key": "a", "bytes_per_second": 0}]}', '{"bandwidth": [{"key": "a", "bytes_per_second": -1}]}',
        '{"bandwidth": [{"key": "a", "bytes_per_second": true}]}', '{"bandwidth": [{"key": 1, "bytes_per_second": 1}]}',
        '{"bandwidth": [{"key": "a", "bytes_per_second": 1e400}]}', "[" * 100_000,
        '{"bandwidth": [{"key": "a", "bytes_per_second": NaN}]}',
        '{"device": 3, "bandwidth": [{"key": "a", "bytes_per_second": 1}]}', "{", "{" * 100_000, "\xff",
        '{"device": {}, "bandwidth": [{"key": "a", "bytes_per_second": 1}]}',
    ],
)  # fmt: skip
def test_anything_else_says_how_to_make_one(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ImportFileError, match=r"x\.json: .*tui-probe bandwidth --auto --format json"):
        read_bandwidth(path)


def test_two_results_are_not_opened_at_once(tmp_path: Path) -> None:
    paths = [write_result(tmp_path / name) for name in ("a.json", "b.json")]
    with pytest.raises(
        ImportFileError, match=r"a\.json: a bandwidth result cannot be opened together with other files"
    ):
        open_imported(paths)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"none\.json: No such file"):
        read_bandwidth(tmp_path / "none.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)
NAMES = st.sampled_from(["key", "what", "bytes", "seconds", "repeats", "spread", "blocks", "bytes_in_flight",
                         "bytes_per_second", "specified_bytes_per_second"])  # fmt: skip
GOOD = st.fixed_dictionaries({"key": st.sampled_from(["memory_read", "l2_read", "to_shared"]),
                              "bytes_per_second": st.floats(1e-3, 1e17)})  # fmt: skip
RATES = st.builds(
    lambda good, more: {**more, **good},
    GOOD,
    st.dictionaries(NAMES, st.integers(0, 2000) | st.floats(0, 1e9) | st.none() | JSON, max_size=10),
)
DEVICES = st.none() | st.dictionaries(
    st.sampled_from(["name", "sms", "l2_bytes", "memory_bytes", "memory_bytes_per_second"]),
    st.text(max_size=4) | st.integers(0, 10**6) | JSON,
    max_size=5,
)
RESULTS = JSON | st.fixed_dictionaries({"bandwidth": st.lists(RATES | JSON, max_size=8), "device": DEVICES})


@given(RESULTS)
def test_any_json_gives_pages_or_an_error_of_ours(record: object) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_text(json.dumps(record))
        try:
            read = read_bandwidth(path)
        except ImportFileError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017 - any other error is the failure
            return
        for page in open_bandwidth(read, "x.json").pages:
            view = page.make()
            assert all(line is not None for line in view_lines(view, 80, None))
            json.dumps(view.record(), allow_nan=False)


@given(st.binary(max_size=60))
def test_any_bytes(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_bytes(b"{" + content)
        with pytest.raises(ImportFileError):
            open_imported([path])

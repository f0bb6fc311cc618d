"""JSON files are distinguished by content; files that are packed, cut off or damaged are named as that."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tui_probe.cli.main import main
from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.file_kinds import is_chrome, json_file, tool_of
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.pages.opening import open_imported

KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"device": 0}}
TRACE = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": [KERNEL]}
BANDWIDTH = {"device": None, "bandwidth": [{"key": "disk_read", "bytes_per_second": 3e9}]}
REPORT = {"schema": "tui-probe.report", "version": 2, "page": "kernels", "trace": ".", "kernels": [KERNEL]}
LATE = {"metadata": "x" * 200_000, "traceEvents": [KERNEL]}
"""A trace whose events begin behind what is read to look at a file."""


def written(folder: Path, value: object, name: str = "some.json") -> Path:
    path = folder / name
    data = (value if isinstance(value, str) else json.dumps(value)).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (REPORT | {"page": "bandwidth"}, "bandwidth"),
        (TRACE, "chrome"), ([KERNEL], "chrome"), (LATE, "chrome"), (BANDWIDTH, "bandwidth"), (REPORT, "report"),
        (REPORT | {"page": '"traceEvents"'}, "report"), (dict(sorted(REPORT.items())), "report"),
        ({"schema": "tui-probe.view", "view": "x"}, "report"), ({"schema": "other"}, "other"), ({}, "other"),
        ([{"frame": {}, "metrics": {}}], "proton"), ('{"traceEvents": [{"ph":', "chrome"), ("[" * 100_000, "other"),
        ("ID,Process ID", None), ("", None),
    ],
)  # fmt: skip
def test_kind_of_a_json_file(tmp_path: Path, value: Any, kind: str | None) -> None:
    file = json_file(written(tmp_path, value))
    assert (None if file is None else file.kind) == kind


@pytest.mark.parametrize("words", [("open",), ("import",), ("import", "chrome"), ("import", "nsys"), ("import", "ncu")])
@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (REPORT, "JSON from tui-probe (page kernels), not a profile; tui-probe open ."),
        (
            REPORT | {"trace": "no such"},
            "JSON from tui-probe (page kernels), not a profile; open the described trace or file",
        ),
        (BANDWIDTH, "a bandwidth result: tui-probe open "),
        ({"a": 1}, "JSON that is neither a Chrome trace (no traceEvents) nor a bandwidth result; make a trace with "),
    ],
    ids=["report", "report without trace", "bandwidth", "other"],
)
def test_other_json_is_refused_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], value: Any, sentence: str
) -> None:
    path = written(tmp_path, value)
    if words == ("open",) and value is BANDWIDTH:
        assert main([*words, str(path)]) == 0
        return
    assert main([*words, str(path)]) == 4
    assert f"some.json: {sentence}" in capsys.readouterr().err.replace("\n", "")


def test_chrome_trace_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = written(tmp_path, TRACE)
    assert (tool_of(trace), is_chrome(tmp_path / "none.json")) == ("chrome", False)
    assert open_imported([trace]).pages[0].name == "totals"
    assert main(["import", str(trace)]) == 0
    assert "k" in capsys.readouterr().out
    assert main(["import", "ncu", str(trace)]) != 0
    assert "tui-probe import chrome" in capsys.readouterr().err


def test_files_of_several_kinds_are_refused(tmp_path: Path) -> None:
    trace, bandwidth = written(tmp_path, TRACE), written(tmp_path, BANDWIDTH, "bw.json")
    with pytest.raises(ImportFileError, match=r"bw\.json: a bandwidth result.*import files of one kind"):
        read_nsys([trace, bandwidth])
    with pytest.raises(ImportFileError, match=r"some\.json: a Chrome trace cannot be opened with other"):
        open_imported([trace, bandwidth])


@pytest.mark.parametrize("words", [("open",), ("import",), ("import", "chrome"), ("import", "ncu")])
@pytest.mark.parametrize("size", [4, 15, 40, -9, -1])
def test_small_packed_file_that_is_cut_off_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], size: int
) -> None:
    path = written(tmp_path, TRACE, "trace.json.gz")
    path.write_bytes(path.read_bytes()[:size])
    main([*words, str(path)])
    shown = "".join(capsys.readouterr()).replace("\n", " ")
    assert "truncated" in shown
    assert "gzip -d" not in shown


@pytest.mark.parametrize("words", [("open",), ("import", "chrome"), ("import", "ncu")])
def test_damaged_packed_file_is_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    path = written(tmp_path, TRACE, "trace.json.gz")
    content = path.read_bytes()
    for place in range(10, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        assert main([*words, str(path)]) in (0, 4)
        capsys.readouterr()

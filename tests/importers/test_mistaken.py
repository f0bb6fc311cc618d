"""A file of something else is reported as what it is, with what to do."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from tests.importers.files import real
from tui_probe.cli.main import main


def refused(capsys: pytest.CaptureFixture[str], tool: str, path: Path) -> str:
    assert main(["import", tool, str(path)]) != 0
    return capsys.readouterr().err


@pytest.mark.parametrize("tool", ["ncu", "nsys"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"text"), "compressed; decompress it with gzip -d "),
        (lzma.compress(b"text"), "compressed; decompress it with xz -d "),
    ],
    ids=["empty", "gzip", "xz"],
)
def test_nothing_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: str, content: bytes, words: str
) -> None:
    path = tmp_path / "my profile.csv"
    path.write_bytes(content)
    message = refused(capsys, tool, path)
    assert words in message
    assert "compressed" not in message or f"'{path}'" in message


@pytest.mark.parametrize("comma", [";", "\t"])
def test_cells_without_commas(tmp_path: Path, capsys: pytest.CaptureFixture[str], comma: str) -> None:
    path = tmp_path / "saved.csv"
    path.write_text(real(tmp_path, "ncu/vec_metrics.csv").read_text().replace('","', f'"{comma}"'))
    assert "cells are not separated by commas" in refused(capsys, "ncu", path)


@pytest.mark.parametrize("comma", [";", "\t"])
def test_cells_of_nsys_without_commas(tmp_path: Path, capsys: pytest.CaptureFixture[str], comma: str) -> None:
    path = tmp_path / "saved.csv"
    path.write_text(comma.join(['"Time (%)"', '"Total Time (ns)"', '"Name"']) + "\n" + comma.join(["50,0", "7", "k"]))
    assert "cells are not separated by commas; pass the file as nsys wrote it" in refused(capsys, "nsys", path)


def test_a_file_of_the_other_profiler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ncu, nsys = real(tmp_path, "ncu/vec_metrics.csv"), real(tmp_path, "nsys/sample.sqlite")
    assert f"a file of Nsight Compute: tui-probe import ncu {ncu}" in refused(capsys, "nsys", ncu)
    assert f"a file of Nsight Systems: tui-probe import nsys {nsys}" in refused(capsys, "ncu", nsys)
    stats = tmp_path / "trace.csv"
    stats.write_text("Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,Strm,Name\n1,2,3,1,1,1,7,saxpy\n")
    assert "a file of Nsight Systems: tui-probe import nsys" in refused(capsys, "ncu", stats)
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"\1\2\3")
    assert "nsys export --type sqlite" in refused(capsys, "ncu", report)


@pytest.mark.parametrize("words", [("open",), ("import", "ncu"), ("import", "nsys")], ids=" ".join)
@pytest.mark.parametrize(("name", "content"), [
    ("kernel.cubin", b"\x7fELF\2\1\1\x33"),
    ("kernel.fatbin", b"\x50\xed\x55\xba\1\0\x10\0"),
    ("kernel.ptx", b"//\n.version 8.0\n.target sm_90\n"),
    ("kernel.txt", b"//\n.version 8.0\n.target sm_90\n"),
])  # fmt: skip
def test_code_is_for_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert main([*words, str(path)]) == 4
    assert f"not a profile; to test a probe on its kernels, use tui-probe check PROBE {path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"a": 1}', "JSON that is neither a Chrome trace"),
        ("[]", "JSON that is neither a Chrome trace (no traceEvents) nor a bandwidth result"),
        ('[{"children": [], "frame": {"name": "ROOT"}, "metrics": {"count": 0}}]', "a tree of Proton"),
    ],
)
def test_json_without_a_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: str) -> None:
    path = tmp_path / "profile.json"
    path.write_text(content)
    assert words in refused(capsys, "chrome", path)

"""``tui-probe report`` and ``tui-probe probes`` as a user calls them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.pages.example import write_example
from tests.recorded import H200
from tui_probe.cli.main import main
from tui_probe.pages.page_registry import report_lines
from tui_probe.trace.follow import open_trace


@pytest.fixture
def example(tmp_path: Path) -> str:
    write_example(tmp_path / "traces" / "example")
    return str(tmp_path / "traces" / "example")


@pytest.mark.parametrize("page", ["kernels", "launches", "blocks", "events"])
def test_a_page_goes_to_stdout_and_nothing_to_stderr(
    example: str, page: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", example, "--page", page, "--width", "100"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert out.splitlines() == list(report_lines(open_trace(example), page, width=100))  # type: ignore[arg-type]


def test_json_of_the_newest_trace_in_a_folder(example: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(Path(example).parent), "--format", "json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["trace"], len(document["kernels"])) == (example, 5)


def test_ascii_tables(example: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", example, "--ascii", "--page", "blocks"]) == 0
    assert capfd.readouterr().out.isascii()


def test_other_path_has_exit_status_4(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "nowhere")]) == 4
    out, err = capfd.readouterr()
    assert out == ""
    message = f"{tmp_path}/nowhere does not exist; pass a trace directory (it contains event.log)"
    assert err == f"tui-probe: error: {message}\n"


@pytest.mark.parametrize("words", [["nowhere"], ["nowhere:0"], ["nowhere.sqlite"], ["nowhere.csv", "other.csv"]])
def test_unknown_name_lists_candidates(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["open", *words]) == 4
    err = capfd.readouterr().err
    assert err.startswith(f"tui-probe: error: {words[0].partition(':')[0]} does not exist; open accepts a trace ")
    assert all(word in err for word in ("event.log", "CSV files of ncu", "sqlite or CSV files of nsys", "bandwidth"))


@pytest.mark.parametrize("words", [["--width", "7"], ["--width", "x"], ["--format", "xml"]])
def test_wrong_options_have_exit_status_2(example: str, words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["report", example, *words])
    assert stopped.value.code == 2
    assert words[0] in capfd.readouterr().err


def test_a_page_that_there_is_not_has_exit_status_2(example: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", example, "--page", "nonsense"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "there is no page 'nonsense'. Pages: kernels, summary, launches, results" in err
    assert "blocks" in err, "the pages of probes are named too"


def test_the_list_of_probes(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["probes"]) == 0
    out = capfd.readouterr().out
    assert "block_sched: block scheduling\n    measures  " in out


def test_one_probe_with_its_source(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["probes", "block_sched"]) == 0
    out = capfd.readouterr().out
    (path,) = (line.removeprefix("file      ") for line in out.splitlines() if line.startswith("file "))
    assert out.endswith("\n\n" + Path(path).read_text())


def test_a_probe_that_does_not_exist(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["probes", "nonesuch"])
    assert stopped.value.code == 2
    assert "nonesuch" in capfd.readouterr().err


def test_open_names_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "x.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    assert main(["open", str(picture)]) != 0
    assert "x.png is a picture (PNG), which open does not show. open accepts a trace" in capsys.readouterr().err


def test_page_name_of_a_directory_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEUTRINO_TRACEDIR", str(tmp_path / "none"))
    (tmp_path / "dmat").mkdir()
    assert main(["show", "dmat"]) != 0
    assert (
        "dmat is a page; to list the pages of the trace in directory dmat: tui-probe show ./dmat"
        in capsys.readouterr().err
    )


def test_list_of_pages_has_no_page_of_compressed_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(H200 / "dmat")]) == 0
    pages = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert re.search(r"no data: result/.*unpack all results with xz -d .*/result/\*\.xz$", pages["dmat"])
    assert "7 of 7 kernels" in pages["ptx"]

"""Every page in every form, against texts that were looked at."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.formats import check_formats
from tests.golden import golden
from tests.importers.files import line, real, write
from tests.patience import HANG
from tests.sizes import golden_widths, widest
from tui_probe.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
ATTENTION = [f"h200/ncu/attention_{name}.csv" for name in ("efficient", "flash", "math", "triton")]
TENSOR = ["--seq-len", "2048", "--head-dim", "64", "--heads", "8", "--batch", "2"]
PAGES = {
    "ncu-kernels": (["ncu", "--page", "kernels", "--warmup", "3"], ["ncu/t6_sdpa_flash.csv"]),
    "ncu-metrics": (["ncu", "--page", "metrics"], ["ncu/vec_metrics.csv"]),
    "ncu-traffic": (["ncu", "--page", "traffic", "--warmup", "3", "--expect", "middle_rows"], ATTENTION),
    "ncu-traffic-derived": (["ncu", "--page", "traffic"], ["ncu/vec_full.csv", "ncu/sdpa_flash.csv"]),
    "ncu-sectors": (["ncu", "--page", "sectors", *TENSOR], [ATTENTION[1], "ncu/vec_metrics.csv"]),
    "ncu-critical": (["ncu", "--page", "critical", *TENSOR], [ATTENTION[1], ATTENTION[2]]),
    "ncu-sectors-raw": (["ncu", "--page", "sectors"], ["ncu/vec_raw.csv"]),
    "ncu-critical-raw": (["ncu", "--page", "critical"], ["ncu/vec_raw.csv"]),
    "ncu-averages": (["ncu", "--page", "averages", "--warmup", "3"], ["ncu/sdpa_flash.csv", "ncu/t6_sdpa_flash.csv"]),
    "nsys-kernels": (["nsys", "--page", "kernels", "--search", "residual 0"], ["nsys/sample.sqlite"]),
    "nsys-ranges": (["nsys", "--page", "ranges", "--search", "step 100 to"], ["nsys/sample.sqlite"]),
    "nsys-gaps": (["nsys", "--page", "gaps", "--search", "cupy_fill"], ["nsys/sample.sqlite"]),
}
Shown = Callable[..., str]


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Return the output of ``tui-probe import`` for recorded files, run in their directory."""
    monkeypatch.chdir(tmp_path)

    def run(options: list[str], files: list[str]) -> str:
        names = []
        for file in files:
            path = real(tmp_path, file)
            local = tmp_path / path.name
            if path != local:
                local.write_bytes(path.read_bytes())
            names.append(path.name)
        assert main(["import", options[0], *names, *options[1:]]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


@pytest.mark.parametrize("page", PAGES)
def test_pages_as_text(shown: Shown, page: str) -> None:
    options, files = PAGES[page]

    def text(width: int, ascii_only: bool) -> str:
        return shown([*options, "--width", str(width), *(["--ascii"] if ascii_only else [])], files)

    golden_widths(f"{page}.txt", text, (80, 200))


@pytest.mark.parametrize("page", ["kernels", "metrics", "sectors", "averages"])
def test_rows_of_several_files_name_their_own(shown: Shown, page: str) -> None:
    files = [ATTENTION[1], ATTENTION[2]]
    lines = shown(["ncu", "--page", page, "--width", "80"], files).splitlines()
    heading = next(number for number, line in enumerate(lines) if " file  " in f" {line}" and "kernel" in line)
    place = lines[heading].split().index("file")
    rows = lines[heading + 2 : lines.index("", heading)] if "" in lines[heading:] else lines[heading + 2 :]
    assert len({row.split()[place] for row in rows}) == len(files)


@pytest.mark.parametrize("page", PAGES)
def test_pages_as_data(shown: Shown, page: str) -> None:
    options, files = PAGES[page]
    text = shown([*options, "--format", "json"], files)
    record = json.loads(text)
    assert (record["schema"], record["page"]) == ("tui-probe.report", page.split("-")[1])
    assert record[record["page"]]
    golden(f"{page}.json", text)
    check_formats(lambda form: shown([*options, "--format", form, "--width", "400"], files), record["page"])


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_the_timeline(shown: Shown, width: int, height: int, ascii_only: bool) -> None:
    size = ["--width", str(width), "--height", str(height)]
    text = shown(["nsys", "--page", "timeline", *size, *(["--ascii"] if ascii_only else [])], ["nsys/sample.sqlite"])
    lines = text.splitlines()
    assert len(lines) == height
    golden("nsys-timeline.txt", text, f"{width}x{height}", ascii_only=ascii_only, width=width)


def test_the_timeline_as_data(shown: Shown) -> None:
    files = ["nsys/sample.sqlite"]
    record = json.loads(shown(["nsys", "--page", "timeline", "--format", "json"], files))
    assert record["lanes"][0]["label"] == "stream 7"
    assert sum(len(lane["names"]) for lane in record["lanes"]) == 3689 + 698
    rows = list(csv.reader(io.StringIO(shown(["nsys", "--page", "timeline", "--format", "csv"], files))))
    assert len(rows) == 1 + 3689 + 698


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_how_to_read_it(shown: Shown, page: str) -> None:
    options, files = PAGES[page]
    plain, explained = (shown([*options, "--width", "80", *more], files) for more in ([], ["--explain"]))
    assert explained.startswith(plain)
    assert len(explained) > len(plain) + 200
    assert widest(explained) <= 80


@pytest.mark.parametrize("command", [["ncu"], ["ncu", "x.csv", "--seq-len", "3"], ["ncu", "--warmup", "-1"], ["nsys"]])
def test_wrong_usage(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["import", *command])
    assert caught.value.code == 2
    assert "usage: tui-probe import" in capsys.readouterr().err


@pytest.mark.parametrize("tool", ["ncu", "nsys"])
def test_a_file_that_cannot_be_used(tool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    assert main(["import", tool, str(path)]) == 4
    assert f"{path}: n" in capsys.readouterr().err


def test_asking_for_help_imports_nothing_heavy() -> None:
    program = "import sys; from tui_probe.cli.main import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    program += "print('HEAVY', *({'textual', 'numpy', 'rich', 'sqlite3'} & {*sys.modules}))"
    for words in (["import", "--help"], ["import", "ncu", "--help"], ["import", "nsys", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=HANG
        )
        assert "usage: tui-probe import" in done.stdout
        assert done.stdout.splitlines()[-1].strip() == "HEAVY"


def test_a_summary_has_kernels_and_no_iterations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    headings = (
        "Process ID", "Process Name", "Host Name", "Kernel Name", "Block Size", "Grid Size", "Device", "CC",
        "Invocations", "Section Name", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average",
    )  # fmt: skip
    cells = ("7", "app", "host", "f(int)", "(64, 1, 1)", "(4, 1, 1)", "0", "9.0", "8", "S", "dram__bytes.sum", "Kbyte",
             "1", "3", "2")  # fmt: skip
    path = write(tmp_path, f"{line(headings)}\n{line(cells)}\n")
    assert main(["import", "ncu", str(path), "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["kernel"], row["launches"], row["kept"]) == ("f(int)", "8", "")
    assert main(["import", "ncu", str(path), "--page", "traffic", "--width", "200"]) == 0
    text = capsys.readouterr().out
    assert "nothing to show" in text
    assert "averages over all launches of a kernel, including the warm-up" in text
    assert main(["import", "ncu", str(path), "--page", "metrics", "--format", "csv"]) == 0
    values = {row["metric"]: row["value"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert values == {
        "dram__bytes.sum": "2000",
        "dram__bytes.sum (minimum)": "1000",
        "dram__bytes.sum (maximum)": "3000",
    }

"""Rows of imported pages: their order, the launches that count, names and times that can be distinguished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.files import details, identity, real, write
from tui_probe.cli.main import main
from tui_probe.draw.shorten import shorten_apart

DURATION = ("GPU Speed Of Light Throughput", "Duration", "ns")
OTHER = ("Occupancy", "Achieved Occupancy", "%")
UNTIMED = "launch times were not collected"


def page_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["import", *words, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def profile(folder: Path, metric: tuple[str, str, str], kernels: list[str]) -> Path:
    launches = [(identity(number, kernel), {metric: "10"}) for number, kernel in enumerate(kernels)]
    return write(folder, details(launches))


def test_kept_rows_come_first_without_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = page_of(capsys, "ncu", str(profile(tmp_path, OTHER, ["init", *["a", "b"] * 4])), "--page", "kernels")
    assert [(row["kernel"], row["kept"]) for row in page["kernels"]] == [("a", 4), ("b", 4), ("init", 0)]
    (note,) = [note for note in page["notes"] if UNTIMED in note]
    assert "ncu --metrics gpu__time_duration.sum" in note


def test_timed_rows_need_no_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = page_of(capsys, "ncu", str(profile(tmp_path, DURATION, ["init", *["a", "b"] * 4])), "--page", "kernels")
    assert not [note for note in page["notes"] if UNTIMED in note]


@pytest.mark.parametrize("plan", [(), ("--warmup", "5", "--runs", "100")])
def test_without_iterations_all_launches_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plan: tuple[str, ...]
) -> None:
    """Counts and times are of the same launches."""
    file = profile(tmp_path, DURATION, ["one", "two", "three", "two"])
    rows = page_of(capsys, "ncu", str(file), "--page", "kernels", *plan)["kernels"]
    assert [(row["kernel"], row["kept"], row["kept_time_ns"]) for row in rows] == [
        ("two", 2, 20.0),
        ("one", 1, 10.0),
        ("three", 1, 10.0),
    ]
    assert all(row["reason"].startswith("all launches kept: launched ") for row in rows)


def test_starts_that_are_microseconds_apart_look_different(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = str(real(tmp_path, "nsys/sample.sqlite"))
    rows = page_of(capsys, "nsys", file, "--page", "kernels")["kernels"]
    assert main(["import", "nsys", file, "--page", "kernels"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("─")) + 1
    shown = [line.split(" ms")[0].strip() for line in lines[first : first + len(rows)]]
    assert [float(text.replace(" ", "")) for text in shown] == [round(row["start_ns"] / 1e6, 3) for row in rows]
    assert len(set(shown)) == len(rows)


def add(types: str) -> str:
    functor = f"at::native::CUDAFunctor_add<{types}>"
    return f"void at::native::elementwise_kernel<4, {functor}, at::detail::Array<char*, 3>>(int)"


@pytest.mark.parametrize("cells", [12, 16, 24, 40, 200])
def test_instances_of_a_template_are_distinguished(cells: int) -> None:
    names = [add(types) for types in ("float", "double", "c10::BFloat16", "c10::Half")]
    cut = shorten_apart([*names, "saxpy"])
    short = [cut(name, cells) for name in names]
    assert len(set(short)) == len(names)
    assert all(len(text) <= cells for text in short)
    assert cut("saxpy", cells) == "saxpy"
    if cells == 24:
        assert short == [
            "elementwise…float>, Arr…",
            "elementwise…double>, Ar…",
            "elementwise_…BFloat16>,…",
            "elementwise…Half>, Arra…",
        ]


def test_later_difference_is_shown_in_place() -> None:
    """Two of three begin alike for longer than the third."""
    names = [f"gemm<float, {kind}, 128>" for kind in ("row, 64", "row, 32", "column, 64")]
    assert [shorten_apart(names)(name, 16) for name in names] == ["gemm…row, 64…", "gemm…row, 32…", "gemm…column,…"]


def test_one_broken_line_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = profile(tmp_path, DURATION, ["one", "two"]).read_text()
    file = write(tmp_path, text + '"3","7","app"\n')
    notes = page_of(capsys, "ncu", str(file), "--page", "kernels")["notes"]
    assert any("1 table row could not be read" in note for note in notes)

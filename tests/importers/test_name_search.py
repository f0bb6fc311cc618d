"""Ranges and kernels that a search of a profile selects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.importers.files import real
from tui_probe.cli.main import main
from tui_probe.nsight.analysis.kernel_groups import search_names


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Step 40", {"Step 40", "Step 40 to 50"}),
        ("step 400", {"Step 400 to 410"}),
        ("ep 40", {"Step 40", "Step 40 to 50", "Step 400 to 410"}),
        ("[", {"[step]"}),
        ("nowhere", set()),
    ],
)
def test_whole_words_come_before_parts(text: str, meant: set[str]) -> None:
    assert search_names(["Step 40", "Step 40 to 50", "Step 400 to 410", "[step]"], text) == meant


@pytest.mark.parametrize("page", ["totals", "kernels", "ranges", "gaps"])
def test_a_step_is_not_added_to_another(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = str(real(tmp_path, "nsys/sample.sqlite"))
    command = ["import", "nsys", export, "--page", page, "--search", "Step 40"]
    assert main([*command, "--width", "160"]) == 0
    text = capsys.readouterr().out
    assert "“Step 40”, ranges: Step 40 to 50" in text
    assert "85 of 3 689 kernels" in text
    assert "Step 400" not in text
    assert main([*command, "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["search"], record["ranges_meant"]) == ("Step 40", ["Step 40 to 50"])
    assert record[page]


def test_a_search_in_parts_of_names_names_the_ranges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = str(real(tmp_path, "nsys/sample.sqlite"))
    assert main(["import", "nsys", export, "--search", "ep 40", "--width", "160"]) == 0
    assert "ranges: Step 40 to 50, Step 400 to 410" in capsys.readouterr().out
    assert main(["import", "nsys", export, "--search", "gemv2T", "--width", "160"]) == 0
    assert "“gemv2T”, found in kernel names, but in no range name" in capsys.readouterr().out

"""Lines of source as positions: which instructions they are, and how long warps are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.pages.measured_example import COALESCED, STORED, STRIDED, STRIDES
from tests.probes.running import EXAMPLES, result_of
from tui_probe.cli.main import main
from tui_probe.engine.function_sites import source_runs
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.refusals import no_match_reason
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_files.option_probes import line_range_text
from tui_probe.probe_model.positions import parse_positions
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import prune_to_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence


def runs(position: str, text: str = STRIDES, name: str = "strides") -> list[list[int]]:
    """The lines of PTX of each run."""
    tree = parse(text)
    kernel = Kernel.of(tree, name)
    (matches,) = parse_positions(position)
    assert matches.source is not None
    return [
        [kernel.line_of(instruction) for instruction in run]
        for run in source_runs(kernel, kernel.entry, matches.source)
    ]


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ("strides.cu:6", [[COALESCED, COALESCED + 1]]),
        ("strides.cu:6-7", [[COALESCED, COALESCED + 1, STRIDED, STRIDED + 1]]),
        ("/src/strides.cu:11", [[STORED]]),
        ("src/strides.cu:11", [[STORED]]),
        ("other.cu:6", []),
        ("ides.cu:6", []),
        ("strides.cu:100", []),
    ],
)
def test_runs_are_the_instructions_of_the_lines(position: str, expected: Sequence[Sequence[int]]) -> None:
    assert runs(position)[: len(expected)] == expected
    assert bool(runs(position)) is bool(expected)


@pytest.mark.parametrize(
    ("position", "calls"),
    [("softmax.cu:23", {23}), ("softmax.cu:26", {26}), ("softmax.cu:22-27", {23, 26}), ("softmax.cu:8", {23, 26})],
)
def test_inlined_instructions_have_the_line_of_the_call(position: str, calls: set[int]) -> None:
    """Both calls of a function with three barriers; the first barrier is in its line 8."""
    text = prune_to_kernel(parse((EXAMPLES / "softmax.ptx").read_text()), "softmax")
    lines = ["", *text.splitlines()]
    matches = [line for run in runs(position, text, "softmax") for line in run if "bar.sync" in lines[line]]
    inlined = [int(lines[line - 1].split()[-2]) for line in matches]
    assert set(inlined) == calls
    assert len(inlined) == len(calls) * (1 if position == "softmax.cu:8" else 3)


@pytest.mark.parametrize("wrong", ["a.py:0", "a.py:9-3"])
def test_lines_that_cannot_be(wrong: str) -> None:
    with pytest.raises(ValueError, match="lines count from 1"):
        parse_positions(wrong)


def test_opcodes_are_no_files() -> None:
    assert [position.opcode for position in parse_positions("ld.global:st.global")] == ["ld", "st"]


def spent(folder: Path, position: str) -> int:
    """The cycles that the only warp spends there."""
    path = folder / "between.py"
    path.write_text(line_range_text(position))
    data = np.zeros(32 * 64, np.float32)
    result = result_of(folder, load_probe(str(path)), STRIDES, data, data.copy(), np.uint32(32), block=(32,))
    return int(result.records(0, np.dtype([("cycles", "<u8")]))["cycles"][0, 0, 0])


def test_the_time_between_two_lines_is_that_of_the_lines_between(tmp_path: Path) -> None:
    first, both = spent(tmp_path, "strides.cu:6"), spent(tmp_path, "strides.cu:6-7")
    assert 0 < first < both
    assert spent(tmp_path, "strides.cu:999") == 0


def test_check_says_how_many_places_each_part_matched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "strides.ptx").write_text(STRIDES)
    probe = tmp_path / "between.py"
    probe.write_text(line_range_text("strides.cu:6-7"))
    assert main(["check", str(probe), str(tmp_path / "strides.ptx")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["matched", "enter:", "1"] in lines
    assert ["leave:", "1"] in lines
    probe.write_text(line_range_text("nowhere.cu:1"))
    assert main(["check", str(probe), str(tmp_path / "strides.ptx")]) == 0
    assert ["matched", "enter:", "0"] in [line.split() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("position", "text", "instead"),
    [
        ("strides.cu:999", STRIDES, ""),
        ("other.cu:6", STRIDES, ": its source lines are in strides.cu"),
        (
            "strides.cu:6",
            re.sub(r"(?m)^\s*\.loc.*$", "", STRIDES),
            ": it has no source lines (compile with -lineinfo)",
        ),
    ],
)
def test_a_kernel_without_the_lines_says_what_it_has(position: str, text: str, instead: str, tmp_path: Path) -> None:
    path = tmp_path / "between.py"
    path.write_text(line_range_text(position))
    kernel = Kernel.of(parse(text), "strides")
    assert no_match_reason(load_probe(str(path)), kernel).parameters["positions"] == position + instead

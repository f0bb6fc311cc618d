"""Alignment of PTX texts: insertions of the engine are found exactly; any two texts align without losing a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.pages.code.alignment import PARAMETER, Alignment, align, align_probed, normalised_ptx, normalised_sass

RECORDED = sorted((Path(__file__).parents[1] / "data" / "h200").glob("*/kernel/*/probed.ptx"))
LINES = st.lists(st.sampled_from(["mov.u32 %r1, 0;", "mov.u32 %r2, 0;", "add.s32 %r1, %r2, 7;", "ret;", "", "L:"]))


def sides(alignment: Alignment) -> tuple[list[int], list[int]]:
    """The lines of both texts in the order of the pairs."""
    left = [pair.left for pair in alignment.pairs if pair.left is not None]
    right = [pair.right for pair in alignment.pairs if pair.right is not None]
    return left, right


def assert_whole(alignment: Alignment, left: list[str], right: list[str]) -> None:
    assert sides(alignment) == (list(range(len(left))), list(range(len(right))))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name[:12])
def test_probed_ptx_without_what_was_added_is_the_pruned_ptx(path: Path) -> None:
    pruned, probed = (path.with_name(name).read_text().split("\n") for name in ("pruned.ptx", "probed.ptx"))
    alignment = align_probed(pruned, probed)
    assert alignment.is_exact
    assert_whole(alignment, pruned, probed)
    assert alignment.count("removed") == 0
    for pair in alignment.pairs:
        if pair.change == "added":
            assert pair.right is not None
            marked = probed[pair.right].endswith(f"// tui-probe: {pair.owner}")
            assert marked or (pair.owner == PARAMETER and ".param .u64 tp_" in probed[pair.right])
        if pair.change == "changed":
            assert pair.left is not None
            assert pair.right is not None
            assert probed[pair.right] == pruned[pair.left] + ","


def test_replaced_line_pairs_with_the_quoted_one() -> None:
    pruned = [".global .u32 counter;", ".entry k()", "{", "\tatom.add.u32 %r1, [counter], 1;", "\tret;", "}"]
    probed = [
        "// tui-probe: the original module has counter",
        ".entry k(",
        "\t.param .u64 tp_variable_counter",
        ")",
        "{",
        "\tld.param.u64 %tp0, [tp_variable_counter]; // tui-probe: module variables",
        "\tatom.add.u32 %r1, [%tp0], 1; // tui-probe: instead of: atom.add.u32 %r1, [counter], 1;",
        "\tret;",
        "}",
    ]
    alignment = align_probed(pruned, probed)
    assert_whole(alignment, pruned, probed)
    pairs = {(pair.left, pair.right): (pair.change, pair.owner) for pair in alignment.pairs}
    assert pairs[3, 6] == ("changed", "module variables")
    assert pairs[None, 5] == ("added", "module variables")
    assert pairs[0, 0] == ("changed", "module variables")
    assert pairs[4, 7] == ("same", "")


def test_without_marks_lines_are_matched_by_what_they_say() -> None:
    left = ["mov.u32 %r1, %tid.x;", "add.s32 %r2, %r1, 1;", "ret;"]
    right = ["mov.u32 %r4, %tid.x;", "mov.u32 %r9, %clock;", "add.s32 %r5, %r4, 1;", "ret;"]
    alignment = align_probed(left, right)
    assert not alignment.is_exact
    assert [pair.change for pair in alignment.pairs] == ["renamed", "added", "renamed", "same"]


@given(LINES, LINES)
def test_no_line_is_lost(left: list[str], right: list[str]) -> None:
    for alignment in (align(left, right, normalised_ptx), align_probed(left, right)):
        assert_whole(alignment, left, right)


@given(LINES, st.data())
def test_marked_lines_are_found_wherever_they_stand(pruned: list[str], data: st.DataObject) -> None:
    probed, expected = [], []
    for line in [*pruned, None]:
        for number in range(data.draw(st.integers(0, 2))):
            expected.append(len(probed))
            probed.append(f"\tmov.u32 %tp{number}, 0; // tui-probe: some")
        if line is not None:
            probed.append(line)
    alignment = align_probed(pruned, probed)
    assert_whole(alignment, pruned, probed)
    assert [pair.right for pair in alignment.pairs if pair.change == "added"] == expected
    assert alignment.count("same") == len(pruned) or not expected


def test_beyond_the_limit_nothing_is_matched_and_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.pages.code.alignment.MAX_LINES", 4)
    left, right = ["a", "b", "c", "d", "z"], ["a", "c", "b", "e", "f", "z"]
    alignment = align(left, right, normalised_ptx)
    assert "not matched" in alignment.problem
    assert_whole(alignment, left, right)


def test_machine_code_is_compared_but_for_registers_and_addresses() -> None:
    one, other = "@!P0 LDG.E R29, [R14.64+0x10] ;", "@!P2 LDG.E R4, [R6.64+0x20] ;"
    assert normalised_sass(one) == normalised_sass(other)
    assert normalised_sass(one) != normalised_sass(other.replace("LDG.E", "LDG.E.64"))

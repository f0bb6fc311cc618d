"""Machine code paired by the lines of PTX that it came from."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tui_probe.pages.code.alignment import _longest_rising_part, align_sass, with_labels
from tui_probe.pages.code.sass_text import parse_sass

if TYPE_CHECKING:
    from tui_probe.pages.code.alignment import Alignment

CODES = st.sampled_from(["    MOV R1, R2", "    LDG.E R3, [R4]", "    IADD3 R5, R6, R7, RZ", ".L_x_1:", "    EXIT"])
LINES = st.lists(st.tuples(CODES, st.none() | st.integers(1, 6), st.booleans()), max_size=12)


def unique(lines: list[tuple[str, int | None, bool]]) -> list[int | None]:
    """Each line of PTX once, as ``doing`` gives it."""
    seen: set[int | None] = set()
    pairs = []
    for _, line, inserted in lines:
        pairs.append(None if inserted or line in seen else line)
        seen.add(line)
    return pairs


@given(LINES, LINES)
def test_each_line_appears_once_and_in_order(
    left: list[tuple[str, int | None, bool]], right: list[tuple[str, int | None, bool]]
) -> None:
    left = [(text, line, False) for text, line, _ in left]
    owners = ["probe" if inserted else None for _, _, inserted in right]
    texts = [text for text, _, _ in left], [text for text, _, _ in right]
    aligned = align_sass(*texts, (unique(left), unique(right)), owners)
    assert [pair.left for pair in aligned.pairs if pair.left is not None] == list(range(len(left)))
    assert [pair.right for pair in aligned.pairs if pair.right is not None] == list(range(len(right)))
    for pair in aligned.pairs:
        if pair.right is not None and owners[pair.right]:
            assert (pair.left, pair.change, pair.owner) == (None, "added", "probe")
        if pair.change == "same":
            assert pair.left is not None
            assert pair.right is not None
            assert texts[0][pair.left] == texts[1][pair.right]


@given(st.lists(st.integers(0, 9), max_size=8, unique=True))
def test_maximum_number_of_lines_is_aligned(seconds: list[int]) -> None:
    pairs = list(enumerate(seconds))
    chain = _longest_rising_part(pairs)
    assert set(chain) <= set(pairs)
    assert chain == sorted(chain)
    assert [second for _, second in chain] == sorted(second for _, second in chain)
    rising = (
        some for size in range(len(pairs), 0, -1) for some in combinations(seconds, size) if list(some) == sorted(some)
    )
    assert len(chain) == len(next(rising, ()))


def texts_of(found: Alignment, left: list[str], right: list[str]) -> list[tuple[str, str, str]]:
    return [
        (
            pair.change,
            "" if pair.left is None else left[pair.left].strip(),
            "" if pair.right is None else right[pair.right].strip(),
        )
        for pair in found.pairs
    ]


def test_labels_between_instructions_of_the_probe_are_of_the_probe() -> None:
    code = parse_sass(
        "/*0000*/ MOV R1, R2 ;\n.L_x_1:\n/*0010*/ MOV R3, R4 ;\n.L_x_2:\n.L_x_3:\n/*0020*/ EXIT ;\n/*0030*/ NOP ;\n"
    )
    assert with_labels([None, None, "dmat", None, None, "dmat"], code) == [None, None, "dmat", "dmat", "dmat", "dmat"]


def test_load_pairs_with_load_and_probe_with_nothing() -> None:
    left = ["    MOV R1, R2", "    LDG.E R3, [R4]", "    LDG.E R5, [R6]"]
    right = ["    LDG.E R9, [R8]", "    MOV R1, R2", "    LDG.E.64 R3, [R4]"]
    aligned = align_sass(left, right, ([None, 7, 9], [None, None, 9]), ["dmat", None, None])
    assert texts_of(aligned, left, right) == [
        ("added", "", "LDG.E R9, [R8]"),
        ("same", "MOV R1, R2", "MOV R1, R2"),
        ("removed", "LDG.E R3, [R4]", ""),
        ("changed", "LDG.E R5, [R6]", "LDG.E.64 R3, [R4]"),
    ]

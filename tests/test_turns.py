"""Cases that take turns: together the turns are all cases, and no test is left without one."""

from __future__ import annotations

import pytest

from tests import turns


@pytest.fixture
def by_turn(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(turns, "_full", [])
    return monkeypatch


@pytest.mark.parametrize("count", range(1, 8))
def test_turns_cover_all_cases(by_turn: pytest.MonkeyPatch, count: int) -> None:
    seen: list[list[int]] = []
    for turn in range(turns.TURNS):
        by_turn.setattr(turns, "_turn", [turn])
        seen.append(turns.due(range(count)))
    assert all(seen)
    assert {case for cases in seen for case in cases} == set(range(count))


@pytest.mark.parametrize("kernels", [2, 4, 9])
def test_pairs_of_a_turn_have_every_probe(by_turn: pytest.MonkeyPatch, kernels: int) -> None:
    pairs: set[tuple[int, int]] = set()
    for turn in range(turns.TURNS):
        by_turn.setattr(turns, "_turn", [turn])
        mine = turns.due_pairs(range(10), range(kernels))
        assert {probe for probe, _ in mine} == set(range(10))
        assert {kernel for _, kernel in mine} == set(range(kernels))
        assert len(mine) <= 20
        pairs.update(mine)
    assert pairs == {(probe, kernel) for probe in range(10) for kernel in range(kernels)}


def test_all_examples_are_drawn_in_full(by_turn: pytest.MonkeyPatch) -> None:
    assert turns.examples(100) == 40
    by_turn.setattr(turns, "_full", [True])
    assert turns.examples(100) == 100


def test_commit_has_a_turn() -> None:
    assert turns.turn_of_commit() in range(turns.TURNS)

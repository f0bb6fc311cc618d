"""Instruction words: fields where ptxas puts them, and branches as it encodes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sass.moves import move_word
from tui_probe.sass.words import Word, branch_target, branch_word, code_of, nop_word, without_guard, words_of

LDG = Word(0x000EA2000C1E19000000000402027981)
"""LDG.E R2, desc[UR4][R2.64] on sm_90, its result behind barrier 2."""
GUARDED_EXIT = Word(0x000FEA0003800000000000000000094D)
"""@P0 EXIT"""


def test_the_fields_of_a_load() -> None:
    assert (LDG.opcode, LDG.operation, LDG.form) == (0x981, 0x181, 4)
    assert (LDG.rd, LDG.ra, LDG.write_barrier, LDG.read_barrier, LDG.wait_mask, LDG.stall) == (2, 2, 2, 7, 0, 1)
    assert LDG.is_unconditional
    assert LDG.is_uniform_operand


def test_the_fields_of_an_exit_with_a_guard() -> None:
    assert (GUARDED_EXIT.guard, GUARDED_EXIT.guard_negated, GUARDED_EXIT.stall) == (0, False, 5)
    assert not GUARDED_EXIT.is_unconditional
    assert without_guard(GUARDED_EXIT.with_field(87, 3, 1)) == GUARDED_EXIT.with_guard(7)


@pytest.mark.parametrize(
    ("arch", "at", "bits"),
    [
        (80, 0xF0, 0x000FC0000383FFFFFFFFFFF000007947),
        (90, 0x130, 0x000FC0000383FFFFFFFFFFFC00FC7947),
        (120, 0x130, 0x000FC0000383FFFFFFFFFFFC00FC7947),
    ],
)
def test_a_branch_to_itself_is_that_of_ptxas(arch: int, at: int, bits: int) -> None:
    control = 105, 17
    assert branch_word(arch, at, at).with_field(*control, 0) == Word(bits).with_field(*control, 0)
    assert branch_target(arch, at, Word(bits)) == at


def test_a_branch_takes_over_the_guard_and_what_is_waited_for() -> None:
    exit_ = GUARDED_EXIT.with_guard(3, negated=True).with_wait_mask(0x15)
    word = branch_word(90, 0x70, 0x4000, exit_)
    assert (word.guard, word.guard_negated, word.wait_mask, word.stall) == (3, True, 0x15, 5)
    assert branch_target(90, 0x70, word) == 0x4000
    assert branch_word(90, 0x70, 0x4000, exit_.with_field(87, 4, 9)).field(87, 4) == 9


@given(st.sampled_from([80, 86, 89, 90, 100, 120]), st.integers(0, 1 << 24), st.integers(0, 1 << 24))
def test_every_branch_leads_where_it_should(arch: int, at: int, target: int) -> None:
    at, target = at * 16, target * 16
    assert branch_target(arch, at, branch_word(arch, at, target)) == target


def test_a_branch_that_is_too_far() -> None:
    with pytest.raises(ValueError, match="too far"):
        branch_word(80, 0, 1 << 50)


@given(st.integers(0, (1 << 128) - 1), st.integers(0, 120), st.integers(1, 8), st.data())
def test_setting_a_field_changes_nothing_else(bits: int, low: int, width: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, (1 << width) - 1))
    changed = Word(bits).with_field(low, width, value)
    assert changed.field(low, width) == value
    assert changed.with_field(low, width, Word(bits).field(low, width)) == Word(bits)


def test_a_value_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        LDG.with_wait_mask(64)


@given(st.lists(st.integers(0, (1 << 128) - 1).map(Word)))
def test_code_and_words(words: list[Word]) -> None:
    assert words_of(code_of(words)) == tuple(words)


def test_code_that_is_cut_off() -> None:
    with pytest.raises(ValueError, match="not a multiple"):
        words_of(b"\0" * 17)


def test_made_instructions() -> None:
    assert nop_word() == Word(0x000FC000000000000000000000007918)
    assert (move_word(7, 9).rd, move_word(7, 9).rb) == (7, 9)

"""Uniform registers: none that a kernel uses is missed, and snippets name others once they are renamed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.ptx.corpus import DATA
from tests.sass.conftest import ARCHITECTURES, code_texts
from tests.sass.kernels import SAXPY, VARIABLES
from tui_probe.binaries.cubin import Cubin
from tui_probe.errors import UnsupportedKernelError
from tui_probe.sass.snippets import assign_uniform_registers
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.uniform_registers import (
    UNIFORM_REGISTERS,
    exact_uniform_fields,
    named_uniform_registers,
    used_uniform_registers,
    with_uniform_registers,
)
from tui_probe.sass.words import Word

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = re.compile(r"\bUR(\d+)\b")


def named_in(text: str) -> set[int]:
    return {int(number) for number in _NAME.findall(text)}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_register_that_a_kernel_uses_is_missed(assembled: Callable[[str, int], Cubin], arch: int) -> None:
    codes = [
        GraftTarget.from_cubin(assembled(text, arch), name).words
        for text, name in ((SAXPY, "saxpy"), (VARIABLES, "varied"))
    ]
    for words, texts in zip(codes, code_texts(arch, *codes), strict=True):
        for word, shown in zip(words, texts, strict=True):
            assert named_in(shown) <= used_uniform_registers([word], arch), shown
            if (exact := named_uniform_registers(word, arch)) is not None:
                assert named_in(shown) <= exact, shown


def test_matrix_products_and_copies_of_tensors(disassembled: Callable[[bytes], dict[int, str]]) -> None:
    cubin = Cubin.read((DATA / "attn_fwd.sm_90a.cubin").read_bytes())
    target = GraftTarget.from_cubin(cubin, "attn_fwd")
    shown = disassembled(cubin.image)
    assert any("HGMMA" in text for text in shown.values())
    for at, text in shown.items():
        assert named_in(text) <= used_uniform_registers([target.words[at // 16]], 90), text


def test_words_of_one_kind_may_use_other_registers() -> None:
    target = GraftTarget.from_cubin(Cubin.read((DATA / "attn_fwd.sm_90a.cubin").read_bytes()), "attn_fwd")
    of_words = [used_uniform_registers([word], 90) for word in target.words]
    assert used_uniform_registers(target.words, 90) == frozenset().union(*of_words) != of_words[0]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_renamed_they_are_read_as_renamed(
    assembled: Callable[[str, int], Cubin], disassembled: Callable[[bytes], dict[int, str]], arch: int
) -> None:
    cubin = assembled(SAXPY, arch)
    target = GraftTarget.from_cubin(cubin, "saxpy")
    before = disassembled(cubin.image)
    numbers = {number: number + 40 for number in range(20)}
    image = cubin.image
    for word in target.words:
        if exact_uniform_fields(word) is not None:
            image = image.replace(
                word.bits.to_bytes(16, "little"),
                with_uniform_registers(word, numbers, arch).bits.to_bytes(16, "little"),
            )
    after = disassembled(image)
    for at, text in before.items():
        assert after[at] == _NAME.sub(lambda found: f"UR{int(found[1]) + 40}", text)
    assert any("UR" in text for text in before.values())


def test_registers_of_32_bits_are_single_ones() -> None:
    """``ULDC UR61``, ``ULDC.64 UR60``, and ``IMAD R7, R7, UR61, R17``, as nvdisasm reads them."""
    load, pair = (Word(0xAB9 | 7 << 12 | at << 16 | width << 73) for at, width in ((61, 4), (60, 5)))
    product = Word(0xC24 | 7 << 12 | 7 << 16 | 7 << 24 | 61 << 32 | 17 << 64 | 1 << 91)
    unknown = Word(0xC25 | 7 << 12 | 61 << 32 | 1 << 91)
    assert [sorted(used_uniform_registers([word], 90)) for word in (load, pair, product)] == [[61], [60, 61], [61]]
    assert sorted(used_uniform_registers([unknown], 90)) == [61, 62]
    assert sorted(used_uniform_registers([product], 100)) == [61, 62]


def test_an_instruction_that_is_not_known_is_not_renamed() -> None:
    barrier = Word(0x7B1D | 7 << 12)
    matrix = Word(0x79F0)
    assert named_uniform_registers(barrier, 90) == frozenset()
    assert named_uniform_registers(matrix, 90) is None


def test_registers_that_a_kernel_leaves() -> None:
    taken = {62, 61, 57, 4}
    places = assign_uniform_registers([4], [4, 6], taken, 1, None)
    assert len(places.exits) == 2
    assert not {number + half for number in places.exits.values() for half in (0, 1)} & taken
    (kept,) = places.carried
    assert kept.is_uniform
    assert kept.number not in taken | set(places.exits.values())
    assert kept.number & ~1 not in {*places.exits.values(), *places.entry.values()}
    assert min(places.pairs) >= 4


def test_a_kernel_that_leaves_no_uniform_register_keeps_values_in_ordinary_ones() -> None:
    taken = set(range(UNIFORM_REGISTERS))
    places = assign_uniform_registers([4], [], taken, 2, 40)
    assert [(place.is_uniform, place.number) for place in places.carried] == [(False, 40), (False, 41)]
    assert len(places.entry) == 1, "nothing is in uniform registers yet"
    with pytest.raises(UnsupportedKernelError, match="too few uniform registers"):
        assign_uniform_registers([4], [], taken, 1, None)
    with pytest.raises(UnsupportedKernelError, match="too few uniform registers"):
        assign_uniform_registers([], [4], taken - {31, 32}, 0, 40)


def test_products_name_the_descriptors_of_their_form_only() -> None:
    in_shared = Word(0x000FE20008700838 << 64 | 0x00E00000083879F0)  # HGMMA R56, gdesc[UR8], R56
    in_registers = Word(0x000FE20008700878 << 64 | 0x40E0000C98787DF0)  # HGMMA R120, R152, gdesc[UR12], R120
    assert used_uniform_registers([in_shared], 90) == {8, 9, 10, 11}
    assert used_uniform_registers([in_registers], 90) == {12, 13, 14, 15}

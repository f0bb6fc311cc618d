"""Uniform registers: none that a kernel uses is missed, and snippets name others once they are renamed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.ptx.corpus import DATA
from tests.sass.conftest import ARCHITECTURES
from tests.sass.kernels import SAXPY, VARIABLES
from tui_probe.errors import UnsupportedKernelError
from tui_probe.sass.cubin import Cubin
from tui_probe.sass.snippets import uniform_places
from tui_probe.sass.target import Target
from tui_probe.sass.uniform import REGISTERS, exact_fields, named, renamed, used
from tui_probe.sass.words import Word

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = re.compile(r"\bUR(\d+)\b")


def named_in(text: str) -> set[int]:
    return {int(number) for number in _NAME.findall(text)}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_register_that_a_kernel_uses_is_missed(
    assembled: Callable[[str, int], Cubin], disassembled: Callable[[bytes], dict[int, str]], arch: int
) -> None:
    for text, name in ((SAXPY, "saxpy"), (VARIABLES, "varied")):
        target = Target.of(assembled(text, arch), name)
        for at, shown in disassembled(target.cubin.image).items():
            word = target.words[at // 16]
            assert named_in(shown) <= used([word], arch), shown
            if (exact := named(word, arch)) is not None:
                assert named_in(shown) <= exact, shown


def test_matrix_products_and_copies_of_tensors(disassembled: Callable[[bytes], dict[int, str]]) -> None:
    cubin = Cubin.read((DATA / "attn_fwd.sm_90a.cubin").read_bytes())
    target = Target.of(cubin, "attn_fwd")
    shown = disassembled(cubin.image)
    assert any("HGMMA" in text for text in shown.values())
    for at, text in shown.items():
        assert named_in(text) <= used([target.words[at // 16]], 90), text


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_renamed_they_are_read_as_renamed(
    assembled: Callable[[str, int], Cubin], disassembled: Callable[[bytes], dict[int, str]], arch: int
) -> None:
    cubin = assembled(SAXPY, arch)
    target = Target.of(cubin, "saxpy")
    before = disassembled(cubin.image)
    numbers = {number: number + 40 for number in range(20)}
    image = cubin.image
    for word in target.words:
        if exact_fields(word) is not None:
            image = image.replace(
                word.bits.to_bytes(16, "little"), renamed(word, numbers, arch).bits.to_bytes(16, "little")
            )
    after = disassembled(image)
    for at, text in before.items():
        assert after[at] == _NAME.sub(lambda found: f"UR{int(found[1]) + 40}", text)
    assert any("UR" in text for text in before.values())


def test_an_instruction_that_is_not_known_is_not_renamed() -> None:
    barrier = Word(0x7B1D | 7 << 12)
    matrix = Word(0x79F0)
    assert named(barrier, 90) == frozenset()
    assert named(matrix, 90) is None


def test_pairs_that_a_kernel_leaves() -> None:
    places, carried = uniform_places([4, 6], {62, 61, 57, 4}, 1, "kernel")
    taken = {*places.values(), *carried}
    assert len(taken) == 3
    assert all(number % 2 == 0 and not {number, number + 1} & {62, 61, 57, 4} for number in taken)
    assert min(taken) >= 4
    with pytest.raises(UnsupportedKernelError, match="leaves 1 pairs"):
        uniform_places([4], set(range(REGISTERS)) - {30, 31, 33, 34}, 1, "kernel")

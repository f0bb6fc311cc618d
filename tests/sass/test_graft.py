"""Grafts: what is replaced, what is added, what the file records about it, and what stays as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.sass.conftest import ARCHITECTURES
from tests.sass.kernels import (
    MANY_PARAMETERS,
    NO_PARAMETERS,
    PASSES_REGISTERS_ON,
    SAXPY,
    TEXTURE,
    VARIABLES,
)
from tests.sass.moves import move_word
from tui_probe.binaries.cubin import Cubin
from tui_probe.errors import UnsupportedKernelError
from tui_probe.sass.graft import Splice, apply_splices
from tui_probe.sass.graft_check import refuse_changes
from tui_probe.sass.scoreboards import with_read_barriers
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.variables import calls_outside, shared_variables
from tui_probe.sass.words import BRA, EXIT, PT, Word, branch_target, branch_word, nop_word

if TYPE_CHECKING:
    from collections.abc import Callable

ADDED = (move_word(2, 3), move_word(4, 5))


def everywhere(target: GraftTarget) -> list[Splice]:
    return [Splice(0, ADDED), *(Splice(at, ADDED) for at in target.exits())]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_entry_and_exits(
    assembled: Callable[[str, int], Cubin], disassembled: Callable[[bytes], dict[int, str]], arch: int
) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, arch), "saxpy")
    grafted = apply_splices(target, everywhere(target), 2, 40, with_read_barriers(target.words))
    after = GraftTarget.from_cubin(Cubin.read(grafted.image), "saxpy")
    assert grafted.branches == (0, *target.exits())
    assert (after.registers, after.parameters, after.parameter_bytes) == (40, 6, 40)
    assert after.constants.size == target.base + 40
    assert after.symbol.size == after.code.size
    refuse_changes(target, grafted, set())
    shown = disassembled(grafted.image)
    for at in grafted.branches:
        begin = branch_target(arch, at, after.words[at // 16])
        assert [shown[begin], shown[begin + 16]] == ["MOV R2, R3", "MOV R4, R5"]
    assert shown[target.exits()[0]].startswith("@P0 BRA")
    assert [at for at, text in shown.items() if "EXIT" in text] == after.exits()
    entry = branch_target(arch, 0, after.words[0])
    assert after.words[entry // 16 + 2] == target.words[0].with_field(122, 4, 0)
    assert branch_target(arch, entry + 48, after.words[entry // 16 + 3]) == 16


def test_equal_exits_share_their_code(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, 90), "saxpy")
    grafted = apply_splices(target, everywhere(target), 1, 8)
    assert grafted.added_count == 2 + 2 + 2 + 1


def test_code_in_the_middle_of_a_kernel(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, 90), "saxpy")
    at = next(index * 16 for index, word in enumerate(target.words) if word.opcode == 0x981)
    grafted = apply_splices(target, [Splice(at, (nop_word(),), (nop_word(), nop_word()))], 0, 8)
    after = GraftTarget.from_cubin(Cubin.read(grafted.image), "saxpy")
    begin = branch_target(90, at, after.words[at // 16]) // 16
    assert after.words[begin + 1].with_field(122, 4, 0) == target.words[at // 16].with_field(122, 4, 0)
    assert branch_target(90, (begin + 4) * 16, after.words[begin + 4]) == at + 16
    assert after.exits() == target.exits()
    assert after.parameter_bytes == target.parameter_bytes


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_kernel_without_parameters(
    assembled: Callable[[str, int], Cubin], disassembled: Callable[[bytes], dict[int, str]], arch: int
) -> None:
    target = GraftTarget.from_cubin(assembled(NO_PARAMETERS, arch), "bare")
    grafted = apply_splices(target, everywhere(target), 1, 8)
    after = GraftTarget.from_cubin(Cubin.read(grafted.image), "bare")
    assert (after.base, after.parameter_bytes, after.parameters) == (target.base, 8, 1)
    assert disassembled(grafted.image)


def test_more_than_4096_bytes_of_parameters(assembled: Callable[[str, int], Cubin]) -> None:
    new = GraftTarget.from_cubin(assembled(MANY_PARAMETERS, 90), "many")
    after = GraftTarget.from_cubin(Cubin.read(apply_splices(new, everywhere(new), 1, 8).image), "many")
    assert [attribute.words()[1:] for attribute in after.attributes if attribute.number == 0x45] == [
        [1 | 4096 << 16, 8],
        [0, 4092],
    ]
    assert not [attribute for attribute in after.attributes if attribute.number == 0x17]
    old = GraftTarget.from_cubin(assembled(MANY_PARAMETERS, 80), "many")
    with pytest.raises(UnsupportedKernelError) as refused:
        apply_splices(old, everywhere(old), 1, 8)
    assert refused.value.reason.code == "graft-parameters"


@pytest.mark.parametrize("arch", [80, 90])
def test_variables_are_those_of_the_original(assembled: Callable[[str, int], Cubin], arch: int) -> None:
    target = GraftTarget.from_cubin(assembled(VARIABLES, arch), "varied")
    shared = shared_variables(target)
    assert {patch.name for patch in shared.patches} - {"unused"} == {"seen", "counted", "managed"}, "not the string"
    assert shared.constants == (("factors", 16),)
    grafted = apply_splices(target, everywhere(target), 1, 8)
    cubin = Cubin.read(grafted.image)
    addresses = cubin.section(".nv.constant4")
    left = {
        cubin.symbol(relocation.symbol).name
        for table in cubin.relocation_sections()
        if table.info == addresses.number
        for relocation in cubin.relocations(table)
    }
    assert left == {"$str", "vprintf"}
    assert all(patch.kind == "abs64" and addresses.offset <= patch.offset < addresses.end for patch in grafted.patches)
    assert calls_outside(target) == "vprintf"


def test_texture_references_are_refused(assembled: Callable[[str, int], Cubin]) -> None:
    with pytest.raises(UnsupportedKernelError) as refused:
        shared_variables(GraftTarget.from_cubin(assembled(TEXTURE, 90), "textured"))
    assert refused.value.reason.code in ("graft-variable", "graft-parameters")


@pytest.mark.parametrize(
    ("code", "size", "reason"),
    [(EXIT, 16, "graft-function"), (BRA, 16, None), (BRA, 5 << 20, "graft-large")],
    ids=["exit", "branch", "large"],
)
def test_functions_that_a_kernel_may_call(
    assembled: Callable[[str, int], Cubin], code: int, size: int, reason: str | None
) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, 90), "saxpy")
    image = target.cubin.image + Word(code).with_guard(PT).bits.to_bytes(16, "little")
    function = target.code._replace(name=".text.other", offset=len(target.cubin.image), size=size)
    calling = replace(target, cubin=replace(target.cubin, image=image), functions=(function,))
    if reason is None:
        calling.refuse_functions()
        return
    with pytest.raises(UnsupportedKernelError) as refused:
        calling.refuse_functions()
    assert refused.value.reason.code == reason


def test_registers_that_warps_pass_on(assembled: Callable[[str, int | str], Cubin]) -> None:
    plain = GraftTarget.from_cubin(assembled(SAXPY, 90), "saxpy")
    assert plain.min_registers == plain.registers
    specialised = GraftTarget.from_cubin(assembled(PASSES_REGISTERS_ON, "90a"), "specialised")
    assert (specialised.registers, specialised.min_registers) == (168, 40)


def test_stores_whose_operands_may_still_be_read(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, 90), "saxpy")
    changed = with_read_barriers(target.words)
    assert {target.words[at // 16].opcode for at in changed} == {0x986}
    for at, word in changed.items():
        assert word.read_barrier != 7
        assert word.with_read_barrier(7) == target.words[at // 16]
    twice = [changed.get(index * 16, word) for index, word in enumerate(target.words)]
    assert with_read_barriers(twice) == {}


@pytest.mark.parametrize(
    ("at", "splice"), [(0x70, Splice(0x70, ADDED, ADDED)), (0x130, Splice(0x130, ADDED))], ids=["exit", "branch"]
)
def test_places_that_cannot_be_replaced(assembled: Callable[[str, int], Cubin], at: int, splice: Splice) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, 90), "saxpy")
    assert target.words[at // 16].opcode in (0x94D, 0x947)
    with pytest.raises(UnsupportedKernelError):
        apply_splices(target, [splice], 1, 8)


def test_a_loop_to_the_first_instruction(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, 90), "saxpy")
    code = (*target.words[:5], branch_word(90, 5 * 16, 0), *target.words[6:])
    with pytest.raises(UnsupportedKernelError) as refused:
        apply_splices(replace(target, words=code), [Splice(0, ADDED)], 1, 8)
    assert refused.value.reason.code == "graft-position"


@pytest.mark.parametrize("name", [".text.saxpy", ".nv.constant0.saxpy", ".debug_frame", ".nv.callgraph"])
def test_a_change_that_no_graft_makes_is_found(assembled: Callable[[str, int], Cubin], name: str) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, 90), "saxpy")
    grafted = apply_splices(target, everywhere(target), 1, 8)
    section = Cubin.read(grafted.image).section(name)
    image = bytearray(grafted.image)
    image[section.offset + min(0x20, section.size - 1)] ^= 1
    with pytest.raises(UnsupportedKernelError) as refused:
        refuse_changes(target, replace(grafted, image=bytes(image)), set())
    assert refused.value.reason.code == "graft-changed"


def test_added_code_may_not_use_registers_of_the_kernel(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, 90), "saxpy")
    uses = next(word for word in target.words if word.opcode == 0xAB9)
    grafted = apply_splices(target, [Splice(0, (uses,))], 1, 8)
    refuse_changes(target, grafted, {uses.rd & ~1})
    with pytest.raises(UnsupportedKernelError, match="uniform registers at"):
        refuse_changes(target, grafted, {40})

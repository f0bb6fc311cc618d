"""Cubins: what ptxas wrote is read, garbage is refused, and sections grow without harm to what lies behind them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ptx.corpus import DATA
from tests.sass.conftest import ARCHITECTURES
from tests.sass.kernels import SAXPY, VARIABLES
from tui_probe.binaries.cubin import Cubin, is_cubin
from tui_probe.binaries.elf import SECTION_HEADER
from tui_probe.errors import ImageError, UnsupportedKernelError
from tui_probe.sass.layout import lay_out
from tui_probe.sass.nv_info import attribute_bytes, read_attributes
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.uniform_registers import used_uniform_registers
from tui_probe.sass.variables import shared_variables

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = [DATA / "image.no_ptx.cubin", DATA / "attn_fwd.sm_90a.cubin", DATA / "triton_add.sm_90a.cubin"]
IMAGES = [path.read_bytes() for path in FILES]


@pytest.mark.parametrize(
    ("image", "kernels"), list(zip(IMAGES, [("zero_strided", "zero"), ("attn_fwd",), ("add",)], strict=True))
)
def test_both_versions_of_the_abi(image: bytes, kernels: tuple[str, ...]) -> None:
    cubin = Cubin.read(image)
    assert (cubin.arch, cubin.kernels) == (90, kernels)
    target = GraftTarget.from_cubin(cubin, kernels[0])
    assert (target.base, target.code.name) == (0x210, f".text.{kernels[0]}")


@pytest.mark.parametrize(("arch", "base"), [(80, 0x160), (90, 0x210), (100, 0x380)])
def test_parameter_offsets(assembled: Callable[[str, int], Cubin], arch: int, base: int) -> None:
    target = GraftTarget.from_cubin(assembled(SAXPY, arch), "saxpy")
    assert (target.arch, target.base, target.parameter_bytes, target.parameters) == (arch, base, 24, 4)
    assert target.added_offset == 24
    assert len(target.exits()) == 2


@pytest.mark.parametrize("image", IMAGES)
def test_laid_out_without_changes_it_is_the_same(image: bytes) -> None:
    cubin = Cubin.read(image)
    assert lay_out(cubin, {}) == image
    for section in cubin.sections:
        if section.name.startswith(".nv.info"):
            assert attribute_bytes(read_attributes(cubin.content(section))) == cubin.content(section)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sections_behind_a_growing_one_move(assembled: Callable[[str, int], Cubin], arch: int) -> None:
    cubin = assembled(VARIABLES, arch)
    grown = {section.number: cubin.content(section) + b"\1" * 20 for section in cubin.sections[4:8]}
    again = Cubin.read(lay_out(cubin, grown))
    for before, after in zip(cubin.sections, again.sections, strict=True):
        assert again.content(after) == grown.get(before.number, cubin.content(before))
        assert after.offset % max(after.align, 1) == 0
    assert again.symbols == cubin.symbols


def test_one_that_shrinks(assembled: Callable[[str, int], Cubin]) -> None:
    cubin = assembled(SAXPY, 90)
    info = cubin.section(".nv.info.saxpy")
    again = Cubin.read(lay_out(cubin, {info.number: b""}))
    assert again.section(".nv.info.saxpy").size == 0
    assert again.content(again.section(".text.saxpy")) == cubin.content(cubin.section(".text.saxpy"))


@pytest.mark.parametrize("garbage", [b"", b"hello", b"\x7fELF", b"\x7fELF\2\1" + bytes(100)])
def test_invalid_cubins(garbage: bytes) -> None:
    assert not is_cubin(garbage)
    with pytest.raises(ImageError):
        Cubin.read(garbage)


@given(
    st.sampled_from(IMAGES),
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), max_size=6),
    st.data(),
)
def test_a_damaged_cubin_is_an_error_that_says_so(
    image: bytes, damages: list[tuple[float, bytes]], data: st.DataObject
) -> None:
    """Nothing but errors for people, no matter what the bytes are; most damage goes to tables, which are at both
    ends.
    """
    damaged = bytearray(image)
    for where, junk in damages:
        near = int(where * 64) if data.draw(st.booleans()) else int(where * (len(image) - 8))
        damaged[near : near + len(junk)] = junk
    cut = data.draw(st.sampled_from([len(damaged), len(damaged) // 2, len(damaged) - 1]))
    read_all(bytes(damaged[:cut]))


@given(st.sampled_from(IMAGES), st.integers(0, 2000), st.integers(0, 255))
def test_damaged_section_headers(image: bytes, place: int, value: int) -> None:
    at = Cubin.read(image).header.sections_offset
    damaged = bytearray(image)
    damaged[min(at + place, len(image) - 1)] = value
    read_all(bytes(damaged))


@pytest.mark.parametrize("kind", [8, 0x70000007, 0x70000009, 0x7000000A])
def test_memory_without_initial_values_takes_nothing_of_the_file(
    assembled: Callable[[str, int], Cubin], kind: int
) -> None:
    cubin = assembled(VARIABLES, 90)
    (empty,) = [section for section in cubin.sections if section.name == ".nv.global"]
    image = bytearray(cubin.image)
    at = cubin.header.sections_offset + empty.number * SECTION_HEADER.size
    image[at : at + SECTION_HEADER.size] = SECTION_HEADER.pack(
        empty.name_offset, kind, *empty[4:7], 1 << 30, *empty[8:]
    )
    assert Cubin.read(bytes(image)).kernels == cubin.kernels
    read_all(bytes(image))


def read_all(image: bytes) -> None:
    with contextlib.suppress(ImageError, UnsupportedKernelError):
        cubin = Cubin.read(image)
        for name in cubin.kernels:
            with contextlib.suppress(ImageError, UnsupportedKernelError):
                target = GraftTarget.from_cubin(cubin, name)
                used_uniform_registers(target.all_words(), target.arch)
                target.exits()
                shared_variables(target)
                lay_out(cubin, {target.code.number: cubin.content(target.code) + bytes(16)})


def test_variables_of_the_kind_that_is_cudas_own(assembled: Callable[[str, int], Cubin]) -> None:
    """As other compilers write them: the same is shared with the original."""
    cubin = assembled(VARIABLES, 90)
    table = next(section for section in cubin.sections if section.type == 2)
    image = bytearray(cubin.image)
    changed = 0
    for at in range(table.offset + 4, table.offset + table.size, 24):
        if image[at] & 0xF == 1:
            image[at] += 12
            changed += 1
    assert changed
    for name in cubin.kernels:
        assert shared_variables(GraftTarget.from_cubin(Cubin.read(bytes(image)), name)) == shared_variables(
            GraftTarget.from_cubin(cubin, name)
        )

"""Addresses and sizes of atomics and reductions equal what nvdisasm writes of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tui_probe.errors import UnsupportedKernelError
from tui_probe.sass.accesses import ATOM, ATOMG, RED, Address, atomic_of
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import Word

from .conftest import ARCHITECTURES, code_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.binaries.cubin import Cubin

_TYPES = (
    ("add.u32", "r", 4), ("add.u64", "d", 8), ("max.s32", "r", 4), ("max.s64", "d", 8), ("add.f32", "f", 4),
    ("add.f64", "g", 8), ("add.noftz.f16x2", "r", 4), ("or.b32", "r", 4),
)  # fmt: skip
_ATOMIC = re.compile(
    r"^(?:@!?P\d )?(?P<name>ATOMG?|REDG?)\.(?P<parts>[\w.]+) (?:PT, |P\d, )?.*?"
    r"(?:desc\[UR\d+\])?\[(?P<register>R\d+|RZ)(?:\.64)?(?:\+UR(?P<uniform>\d+))?\+?(?P<offset>-?0x[0-9a-f]+)?\]"
)
_SIZES = {"64": 8, "S64": 8, "F64": 8, "128": 16, "F32x2": 8, "F32x4": 16}


def changing(arch: int) -> str:
    """Atomics and reductions of many types, of global memory and of addresses of any space."""
    lines = []
    for number, (operation, kind, _) in enumerate(_TYPES):
        for space in (".global", ""):
            place = 64 * number - 128 + (32 if space else 0)
            lines.append(f"red{space}.{operation} [%rd1+{place}], %{kind}1;")
            if operation != "or.b32":
                lines.append(f"atom{space}.{operation} %{kind}1, [%rd2+{place + 16}], %{kind}1;")
    for kind in ("b32", "b64"):
        value = "%r" if kind == "b32" else "%d"
        lines.append(f"atom.global.cas.{kind} {value}1, [%rd2+4096], {value}1, {value}2;")
        lines.append(f"atom.global.exch.{kind} {value}1, [%rd2+-4096], {value}1;")
        lines.append(f"atom.cas.{kind} {value}1, [%rd1+1024], {value}1, {value}2;")
    lines += [
        f"red.global.add.v{count}.f32 [%rd1+{2048 + 64 * count}], {{{', '.join(['%f1'] * count)}}};"
        for count in ((2, 4) if arch >= 90 else ())
    ]
    return f"""
.visible .entry changing(.param .u64 x, .param .u64 y, .param .u64 z)
{{
	.reg .b32 %r<10>; .reg .b64 %d<4>; .reg .b64 %rd<5>; .reg .f32 %f<4>; .reg .f64 %g<4>;
	ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %d1, [z]; mov.u32 %r9, %tid.x;
	mul.wide.u32 %rd3, %r9, 4096; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
	cvt.u32.u64 %r1, %d1; cvt.rn.f32.u32 %f1, %r1; cvt.f64.f32 %g1, %f1; mov.b32 %r2, 7; mov.b64 %d2, 9;
	{" ".join(lines)}
	st.global.b32 [%rd1], %r1; st.global.b64 [%rd1+8], %d1; st.global.f32 [%rd1+16], %f1; st.global.f64 [%rd1+24], %g1;
	ret;
}}
"""


@pytest.mark.parametrize("arch", [75, *ARCHITECTURES])
def test_atomics_are_as_nvdisasm_reads_them(
    arch: int, assembled: Callable[[str, int], Cubin], disassembled: Callable[[bytes], dict[int, str]]
) -> None:
    cubin = assembled(changing(arch), arch)
    texts, seen = disassembled(cubin.image), set()
    for index, word in enumerate(GraftTarget.from_cubin(cubin, "changing").words):
        access, match = atomic_of(word, arch), _ATOMIC.search(texts[index * 16])
        assert (access is None) == (match is None), texts[index * 16]
        if access is None or match is None:
            continue
        sizes = [_SIZES[part] for part in match["parts"].split(".") if part in _SIZES]
        assert access.bytes == (sizes or [4])[0], texts[index * 16]
        assert access.address.offset == int(match["offset"] or "0", 16), texts[index * 16]
        assert access.address.is_wide
        assert f"R{access.address.register}".replace("R255", "RZ") == match["register"]
        assert access.address.uniform == (int(match["uniform"]) if match["uniform"] else None)
        assert access.operation in {"ATOM": ATOM, "ATOMG": ATOMG}.get(match["name"], RED)
        seen.add(access.operation)
    assert seen == (ATOM | ATOMG | RED if arch >= 90 else {0x18A, 0x18B, 0x1A8, 0x1A9, 0x18E})


ADDED = {
    80: (0x0000_0402_0609_79A8, 0x000E_A800_081E_E144),
    90: (0x0000_440D_0600_798E, 0x0009_E800_0C10_E106),
    100: (0x8000_040D_060B_79A8, 0x002E_A200_081E_E106),
    120: (0x0000_4403_0600_798E, 0x0009_E800_0C10_E106),
}
"""``[R6.64+UR+…]``: a pair of uniform registers is added, which is not a descriptor."""


@pytest.mark.parametrize("arch", ADDED)
def test_uniform_registers_that_are_added(arch: int) -> None:
    low, high = ADDED[arch]
    access = atomic_of(Word(low | high << 64), arch)
    assert access is not None
    assert access.address.uniform == (4 if arch == 80 else 6)
    assert access.address.offset == (0x44 if arch in (90, 120) else 4)


PLAIN = {
    "REDG.E.ADD.S32.STRONG.GPU [R4+0x8], R3": (0x0003E2000010E300_000008030400798E, (4, 8, 4)),
    "ATOMG.E.ADD.F64.RN.STRONG.GPU PT, RZ, [R134+0x400], R6": (0x00032800001EFF00_0004000686FF73A3, (134, 0x400, 8)),
}
"""Atomics without a uniform register: address register, offset and bytes."""


def test_atomics_without_a_uniform_register() -> None:
    assert code_texts(90, [Word(bits) for bits, _ in PLAIN.values()]) == [list(PLAIN)]
    for bits, (register, offset, size) in PLAIN.values():
        access = atomic_of(Word(bits), 90)
        assert access is not None
        assert (access.address, access.bytes) == (Address(register, True, None, offset), size)


@pytest.mark.parametrize(("arch", "bits"), [(80, 7 << 73), (80, 1 << 70), (80, 1 << 91), (90, 1 << 72), (100, 1 << 63)])
def test_forms_that_are_not_known_are_refused(arch: int, bits: int) -> None:
    low, high = {80: (0x000004020609_79A8, 0x000EA800081EE1C4), 90: (0x0000440D0600_798E, 0x0009E8000C10E186),
                 100: (0x8000040D060B_79A8, 0x002EA200081EF106)}[arch]  # fmt: skip
    word = low | high << 64
    assert atomic_of(Word(word), arch) is not None
    with pytest.raises(UnsupportedKernelError) as caught:
        atomic_of(Word(word ^ bits), arch)
    assert caught.value.reason.code == "graft-access"

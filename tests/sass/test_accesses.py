"""Accesses and multiplications of instructions equal what nvdisasm writes of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import pytest

from tui_probe.binaries.cubin import Cubin
from tui_probe.sass.accesses import LD, LDG, LDGSTS, ST, STG, access_of
from tui_probe.sass.operations import PRODUCT_OPERATIONS, matrix_product
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import Word

from .conftest import ARCHITECTURES, code_texts

_TYPES = ("u8", "s8", "u16", "s16", "b32", "b64", "v2.b32", "v4.b32", "v2.b64")
_MEMORY = re.compile(
    r"(?P<name>LDGSTS|LD[GS]?|ST[GS]?)(?P<parts>(?:\.\w+)*) .*?\[(?:R(?P<register>\d+|Z)(?:\.(?P<width>64|U32|X\d+))?)?"
    r"\+?(?:UR(?P<uniform>\d+))?\+?(?P<offset>-?0x[0-9a-f]+)?\](?P<rest>[^\[]*)$"
)
_SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_SHAPE = re.compile(r"MMA(?:\.SP)?\.(\d+)|64x(\d+)x(\d+)")
_EXTENTS = {
    "1688": (16, 8, 8), "16816": (16, 8, 16), "1684": (16, 8, 4), "16832": (16, 8, 32), "8816": (8, 8, 16),
    "8832": (8, 8, 32), "16864": (16, 8, 64), "88128": (8, 8, 128), "168128": (16, 8, 128), "168256": (16, 8, 256),
    "884": (8, 8, 4),
}  # fmt: skip


def accesses(copies: bool = True) -> str:
    """Loads and stores of every type with and without a space and of a uniform address, and copies to shared memory."""
    lines = []
    for space in ("", ".global"):
        for number, kind in enumerate(_TYPES):
            vector, _, scalar = kind.rpartition(".")
            bits = scalar[1:] if scalar not in ("u8", "s8") else "16"
            name = f"%{'h' if bits == '16' else 'r' if bits == '32' else 'd'}"
            value = f"{{{', '.join(f'{name}{index}' for index in range(int(vector[1:])))}}}" if vector else f"{name}0"
            lines.append(f"ld{space}.{kind} {value}, [%rd1+{number * 64}];")
            lines.append(f"st{space}.{kind} [%rd2+-{number * 64}], {value};")
    lines += ["ld.global.b32 %r1, [%rd0+-24];", "st.b32 [%rd0+-32], %r1;", "ld.b32 %r1, [%rd0+40];"]
    copying = [f"cp.async.ca.shared.global [%r9], [%rd1+{size * 8}], {size};" for size in (4, 8, 16)]
    copying += ["cp.async.ca.shared.global [%r9], [%rd1], 4, %r8;", "cp.async.cg.shared.global [%r9], [%rd1], 16;"]
    # Where there are no descriptors, a sum with a parameter is made by the access itself, with a uniform register.
    sums = "add.s64 %rd{0}, %rd{0}, %rd3;" if copies else "mad.lo.s64 %rd{0}, %rd3, %rd3, %rd{0};"
    placed = " ".join(sums.format(number) for number in (1, 2))
    return f"""
.visible .entry accessing(.param .u64 x, .param .u64 y, .param .u32 n)
{{
	.reg .b16 %h<4>; .reg .b32 %r<10>; .reg .b64 %d<4>; .reg .b64 %rd<4>;
	ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r8, [n]; mov.u32 %r9, %tid.x; mov.b64 %rd0, %rd1;
	shl.b32 %r9, %r9, 4; cvt.u64.u32 %rd3, %r9; {placed}
	{" ".join([*lines, *copying, "cp.async.wait_all;"] if copies else lines)}
	ret;
}}
"""


def sharing() -> str:
    """Loads and stores of shared memory: of every type, and with addresses of each kind."""
    kinds = [("u8", "h"), ("u16", "h"), ("b32", "r"), ("b64", "d")]
    places = ["%r4", "%r5+64", "%r6+-128", "buffer+24"]
    lines = [
        f"ld.shared.{kind} %{name}0, [{place}]; st.shared.{kind} [{place}], %{name}0;"
        for kind, name in kinds
        for place in places
    ]
    return f"""
.visible .entry accessing(.param .u64 x, .param .u32 n)
{{
	.reg .b16 %h<4>; .reg .b32 %r<10>; .reg .b64 %d<4>; .shared .align 16 .b8 buffer[8192];
	mov.u32 %r1, buffer; mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; ld.param.u32 %r8, [n];
	shl.b32 %r9, %r2, 3; add.u32 %r4, %r9, %r1; shl.b32 %r7, %r3, 3; add.u32 %r5, %r7, %r1; add.u32 %r6, %r5, %r9;
	{" ".join(lines)}
	ret;
}}
"""


def multiplying(shape: str, types: str, *counts: int) -> str:
    """A kernel with one ``mma``, whose operands have that many registers."""
    names = iter(range(sum(counts)))
    operands = ", ".join(f"{{{', '.join(f'%r{next(names)}' for _ in range(count))}}}" for count in counts)
    total = sum(counts)
    loads = " ".join(f"ld.global.b32 %r{index}, [%rd1+{4 * index}];" for index in range(counts[0], total))
    stores = " ".join(f"st.global.b32 [%rd1+{4 * index}], %r{index};" for index in range(counts[0]))
    return f"""
.visible .entry multiplying(.param .u64 x)
{{
	.reg .b32 %r<{total}>; .reg .b64 %rd1; ld.param.u64 %rd1, [x]; {loads}
	mma.sync.aligned.{shape}.row.col.{types} {operands};
	{stores}
	ret;
}}
"""


PRODUCTS = [
    multiplying("m16n8k8", "f16.f16.f16.f16", 2, 2, 1, 2),
    multiplying("m16n8k16", "f16.f16.f16.f16", 2, 4, 2, 2),
    multiplying("m16n8k16", "s32.s8.s8.s32", 4, 2, 1, 4),
    multiplying("m16n8k32", "s32.s8.u8.s32", 4, 4, 2, 4),
    multiplying("m8n8k16", "s32.s8.s8.s32", 2, 1, 1, 2),
]


Assemble = Callable[[str, int], Cubin]


@functools.cache
def accessing(arch: int, assembled: Assemble) -> dict[str, list[tuple[Word, str]]]:
    """Words of kernels that access memory, by kind, each as nvdisasm writes it: all by one start of it."""
    codes = {
        kind: list(GraftTarget.from_cubin(assembled(text, arch), "accessing").words)
        for kind, text in (("any", accesses(arch >= 80)), ("shared", sharing()))
    }
    codes["other form"] = [other for word in codes["any"] for other in without_descriptor(word, arch)]
    return {
        kind: list(zip(code, texts, strict=True))
        for (kind, code), texts in zip(codes.items(), code_texts(arch, *codes.values()), strict=True)
    }


@pytest.mark.parametrize("arch", [75, *ARCHITECTURES])
@pytest.mark.parametrize("kind", ["any", "shared"])
def test_accesses_are_as_nvdisasm_reads_them(kind: str, arch: int, assembled: Assemble) -> None:
    copies = 5 if arch >= 80 else -1  # ptxas merges two loads of the same address
    least = 4 * len(_TYPES) + 3 + copies if kind == "any" else 24
    assert sum(is_read_alike(word, arch, text) for word, text in accessing(arch, assembled)[kind]) >= least


def is_read_alike(word: Word, arch: int, text: str) -> bool:
    """True for an access, which must be read as nvdisasm reads it; False for what both take for another instruction."""
    access, match = access_of(word, arch), _MEMORY.search(text)
    assert (access is None) == (match is None), text
    if access is None or match is None:
        return False
    parts, address = match["parts"].split("."), access.address
    sizes = [_SIZES[part] for part in parts if part in _SIZES]
    assert access.bytes == (sizes or [4])[0], text
    assert address.offset == int(match["offset"] or "0", 16)
    assert address.register == (255 if match["register"] in (None, "Z") else int(match["register"]))
    is_pair = (
        (arch < 80 or not word.is_uniform_operand)
        and "E" in parts
        and match["width"] is None
        and match["name"][2:] != "S"
    )
    assert address.is_wide == (match["width"] == "64" or is_pair)
    scale = (match["width"] or "").partition("X")[2]
    assert 1 << address.shift == int(scale or 1), text
    assert address.is_shared == (match["name"][2:] == "S")
    assert address.uniform == (int(match["uniform"]) if match["uniform"] else None)
    assert (access.read_predicate != 7) == (access.operation == LDGSTS and "P" in match["rest"])
    return True


def without_descriptor(word: Word, arch: int) -> list[Word]:
    """The forms that older compilers made of an access: with a uniform register to add, or of others with none."""
    if word.operation == LDGSTS:
        forms = (6, 7) if arch < 100 else (7,)
        return [word.with_field(76, 1, 0).with_field(9, 3, form) for form in forms]
    plain = word.with_field(76, 1, 0).with_field(91, 1, 0)
    if word.operation in (LDG, STG):
        return [plain.with_field(9, 3, 1)]
    if word.operation in (LD, ST):
        return [plain.with_field(32, 32, 0xFFFFFF80).with_field(9, 3, 4 if word.operation == LD else 1)]
    return []


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_accesses_without_descriptors_are_as_nvdisasm_reads_them(arch: int, assembled: Assemble) -> None:
    changed = accessing(arch, assembled)["other form"]
    assert all("desc[" not in text for _, text in changed)
    copies = 5 if arch >= 100 else 10
    assert sum(is_read_alike(word, arch, text) for word, text in changed) >= 4 * len(_TYPES) + copies


@pytest.mark.parametrize("arch", [80, 86, 90])
def test_products_are_as_nvdisasm_reads_them(arch: int, assembled: Assemble) -> None:
    codes = [GraftTarget.from_cubin(assembled(text, arch), "multiplying").words for text in PRODUCTS]
    for code, texts in zip(codes, code_texts(arch, *codes), strict=True):
        products = [pair for pair in zip(code, texts, strict=True) if pair[0].operation in PRODUCT_OPERATIONS]
        assert products
        for word, text in products:
            match = _SHAPE.search(text)
            assert match, text
            m, n, k = _EXTENTS[match[1]]
            assert matrix_product(word, arch) == (m * n * k // 32, False), text


@pytest.mark.parametrize(
    ("arch", "extents"), [(80, {0: "884"}), (90, dict(enumerate(("8x8x4", "16x8x4", "16x8x8", "16x8x16"))))]
)
def test_products_of_doubles_are_as_nvdisasm_reads_them(arch: int, extents: dict[int, str]) -> None:
    products = [Word(0x000F620000000008000000882008723F | shape << 76) for shape in extents]
    (texts,) = code_texts(arch, products)
    for word, text, extent in zip(products, texts, extents.values(), strict=True):
        assert text.startswith(f"DMMA.{extent} ")
        m, n, k = map(int, extent.split("x")) if arch >= 90 else extent
        assert matrix_product(word, arch).share == int(m) * int(n) * int(k) // 32

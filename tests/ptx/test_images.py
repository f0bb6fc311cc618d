"""PTX out of images of every kind."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ptx.corpus import DATA, corpus
from tests.ptx.images import fatbin_of, program, ptx
from tui_probe.binaries import elf
from tui_probe.errors import ImageError
from tui_probe.ptx.images import choose_ptx, find_ptx, held_ptx, image_kind, ptx_texts
from tui_probe.ptx.operands import tokens

if TYPE_CHECKING:
    from collections.abc import Callable

FATBINS = ("none", "speed", "balance", "size")
IMAGES = sorted(path.name for path in DATA.iterdir() if path.suffix in (".fatbin", ".cubin", ".o"))


def image(name: str) -> bytes:
    return (DATA / name).read_bytes()


@pytest.mark.parametrize("mode", FATBINS)
def test_fatbins_of_nvcc(mode: str) -> None:
    data = image(f"image.{mode}.fatbin")
    assert image_kind(data) == "fatbin"
    texts = ptx_texts(data)
    assert [text.arch for text in texts] == [80, 90]
    assert all(list(text.entry_names) == ["zero", "zero_strided"] for text in texts)
    assert ".target sm_90\n" in find_ptx(data, "zero")
    assert ".target sm_80\n" in find_ptx(data, "zero_strided", arch=89)
    assert "\0" not in find_ptx(data)


def test_all_ways_of_packing_hold_the_same_text() -> None:
    first, *others = (ptx_texts(image(f"image.{mode}.fatbin")) for mode in FATBINS)
    assert all(other == first for other in others)


def test_host_object() -> None:
    data = image("image.host.o")
    assert image_kind(data) == "elf"
    assert ".target sm_80\n" in find_ptx(data, "zero")


def test_cubin_without_ptx() -> None:
    data = image("image.no_ptx.cubin")
    assert ptx_texts(data) == []
    with pytest.raises(ImageError, match="no PTX in image"):
        find_ptx(data)


@pytest.mark.parametrize(("name", "entry"), [("attn_fwd.sm_90a", "attn_fwd"), ("triton_add.sm_90a", "add")])
def test_cubin_of_triton_gives_its_ptx_line_by_line(name: str, entry: str) -> None:
    """The assembler keeps each line without comments, but for those of debug information, which it leaves empty."""
    ptx_lines = find_ptx(image(f"{name}.cubin"), entry, arch=90).split("\n")
    written = corpus(f"{name}.ptx").split("\n")
    assert len(ptx_lines) == len(written)
    for ptx_line, line in zip(ptx_lines, written, strict=True):
        assert tokens(ptx_line) == tokens(line) or (
            not ptx_line and line.split()[0] in (".loc", ".file", ".b8", ".b32", ".b64")
        )


def test_ptx_text() -> None:
    text = "\n  // generated\n/* by hand */ " + ptx("sm_80", "k") + "\0\0"
    assert image_kind(text.encode()) == "ptx"
    assert find_ptx(text.encode(), "k") == text.rstrip("\0")


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert '.file 1 "\ufffd"' in find_ptx(ptx("sm_80", "k").encode() + b'.file 1 "\xff"\n')


@pytest.mark.parametrize("compress", ["", "lz4", "zstd"])
def test_several_containers_with_padding_between(compress: str) -> None:
    first, two = ptx("sm_80", "a"), ptx("sm_80", "b", "c")
    data = fatbin_of((80, first), compress=compress) + b"\0" * 24 + fatbin_of((80, two), compress=compress) + b"\0" * 8
    assert [text.text for text in ptx_texts(data)] == [first, two]
    assert find_ptx(data, "c") == two
    assert find_ptx(data, "a") == first


def test_names_match_exactly() -> None:
    data = fatbin_of((80, ptx("sm_80", "gemm_splitk")), (80, ptx("sm_80", "gemm")))
    assert ".entry gemm(" in find_ptx(data, "gemm")
    with pytest.raises(ImageError, match="no PTX for the kernel gem in the image, which has PTX for gemm"):
        find_ptx(data, "gem")


@pytest.mark.parametrize(
    ("device", "chosen"),
    [
        (80, "sm_80"),
        (86, "sm_80"),
        (90, "sm_90a"),
        (100, "sm_100f"),
        (103, "sm_100f"),
        (110, "sm_89"),
        (None, "sm_100f"),
    ],
)
def test_newest_that_the_device_can_run(device: int | None, chosen: str) -> None:
    texts = [ptx(target, "k") for target in ("sm_80", "sm_90a", "sm_89", "sm_100f")]
    data = fatbin_of(*((80, text) for text in texts))
    assert f".target {chosen}\n" in choose_ptx(held_ptx(data), "k", device).text


def test_too_old_device() -> None:
    with pytest.raises(ImageError, match="for sm_80, sm_90, which sm_75 cannot run"):
        find_ptx(image("image.none.fatbin"), "zero", arch=75)


def test_wrapper() -> None:
    wrapper = struct.pack("<IIQQ", 0x466243B1, 1, 0x7F0000001000, 0)
    assert image_kind(wrapper) == "warpped_fatbin"
    with pytest.raises(ImageError, match="save the fatbin"):
        ptx_texts(wrapper)
    assert find_ptx(wrapper + fatbin_of((80, ptx("sm_80", "k"))), "k") == ptx("sm_80", "k")


@pytest.mark.parametrize("data", [b"", b"\0\0", b"MZ\x90", b"// nothing more", b".versions 1"])
def test_no_image(data: bytes) -> None:
    with pytest.raises(ImageError, match="not a cubin, fatbin or PTX"):
        image_kind(data)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (8, struct.pack("<Q", 1 << 40), "truncated"),
        (6, struct.pack("<H", 3), "truncated"),
        (16 + 4, struct.pack("<I", 8), "truncated"),
        (16 + 8, struct.pack("<Q", 1 << 62), "truncated"),
        (16 + 16, struct.pack("<I", 1 << 30), "shorter"),
        (16 + 56, struct.pack("<Q", 1 << 50), "corrupt"),
        (16 + 56, struct.pack("<Q", 9), "corrupt|cannot be decompressed"),
        (16 + 64, b"\xff" * 30, "corrupt|cannot be decompressed"),
    ],
)
@pytest.mark.parametrize("compress", ["lz4", "zstd"])
def test_damaged_fatbin(compress: str, offset: int, value: bytes, message: str) -> None:
    data = bytearray(fatbin_of((80, ptx("sm_80", "k")), compress=compress))
    data[offset : offset + len(value)] = value
    with pytest.raises(ImageError, match=message):
        ptx_texts(bytes(data))


@pytest.mark.parametrize("compress", ["lz4", "zstd"])
@pytest.mark.parametrize("packed", [bytes, program])
def test_images_for_other_gpus_are_not_decompressed(compress: str, packed: Callable[[bytes], bytes]) -> None:
    ours, newer = ptx("sm_90", "k"), ptx("sm_120", "k", "newer")
    container = fatbin_of((90, ours), (120, newer), compress=compress)
    at = container.index(fatbin_of((120, newer), compress=compress)[16 + 64 :][:24])  # behind the headers
    data = packed(container[:at] + b"\xff" * 16 + container[at + 16 :])
    assert find_ptx(data, "k", arch=90) == ours
    assert find_ptx(data, "k", arch=100) == ours
    with pytest.raises(ImageError, match="no PTX for the kernel newer in the image, which has PTX for k"):
        find_ptx(data, "newer", arch=90)
    with pytest.raises(ImageError, match="the image has PTX for sm_90, sm_120, which sm_80 cannot"):
        find_ptx(data, "k", arch=80)
    with pytest.raises(ImageError, match=r"corrupt|cannot be decompressed"):
        find_ptx(data, "k", arch=120)


def test_older_ptx_is_not_decompressed_where_newer_will_do() -> None:
    older, ours = ptx("sm_80", "k", "old"), ptx("sm_90", "k")
    container = fatbin_of((80, older), (90, ours), compress="lz4")
    data = container[: 16 + 64] + b"\xff" * 16 + container[16 + 64 + 16 :]
    assert find_ptx(data, "k", arch=90) == ours
    with pytest.raises(ImageError, match=r"corrupt|cannot be decompressed"):
        find_ptx(data, "old", arch=90)


def test_text_is_decompressed_once() -> None:
    (held,) = held_ptx(fatbin_of((90, ptx("sm_90", "k")), compress="zstd"))
    assert held.texts is held.texts
    assert choose_ptx([held], "k", 90) is choose_ptx([held], "k", 90)


def test_truncated_elf() -> None:
    data = image("triton_add.sm_90a.cubin")
    for size in (4, 40, 64, len(data) // 2):
        with pytest.raises(ImageError):
            elf.Sections(data[:size])


@given(st.data())
def test_any_bytes_end_in_texts_or_an_error(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([b"", elf.MAGIC + b"\2\1", b"\x50\xed\x55\xba", b".version 8.0 "]))
    _try(kind + data.draw(st.binary(max_size=300)))


@given(st.sampled_from(IMAGES), st.data())
def test_mutated_images_end_in_texts_or_an_error(name: str, data: st.DataObject) -> None:
    content = bytearray(image(name))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, 200) | st.integers(0, len(content)))
        patch = data.draw(st.binary(max_size=9) | st.sampled_from([b"\xff" * 8, b"\0" * 8]))
        content[at : at + len(patch)] = patch
    _try(bytes(content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))]))


def _try(content: bytes) -> None:
    try:
        texts = ptx_texts(content)
    except ImageError:
        return
    assert all(".version" in text.text for text in texts)
    for arch in (80, 90, None):
        try:
            assert find_ptx(content, "zero", arch) in [text.text for text in texts]
        except ImageError as error:
            assert error.reason.code in ("no-ptx", "ptx-for-other-gpu", "no-ptx-for-kernel")  # noqa: PT017

"""Captured images, and the part of each that is stored."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from .conftest import Host

PTX = b".version 8.0\n.target sm_80\n"


def elf(sections: dict[str, bytes]) -> bytes:
    """A 64-bit ELF file with these sections."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    body, headers, offset, at = b"", b"\0" * 64, 64, 1
    for name, data in [*sections.items(), (".shstrtab", names)]:
        headers += struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, offset, len(data), 0, 0, 1, 0)
        body += data
        offset += len(data)
        at += len(name) + 1
    count = len(sections) + 2
    header = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    header += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, offset, 0, 64, 0, 0, 64, count, count - 1)
    return header + body + headers


def entry(kind: int, payload: bytes) -> bytes:
    header = struct.pack("<HHIQ", kind, 0x101, 64, len(payload))
    return header.ljust(64, b"\x11") + payload


def fatbin(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


PLAIN = entry(1, PTX + b"\0" * 5)
PACKED = entry(1, b"\x28\xb5\x2f\xfd compressed \0\xff")
CODE = entry(2, elf({".text.add": b"\1\2\3\4"}))

LOAD = """
import sys
image = open(sys.argv[1], "rb").read()
context()
"""
FORMS = {
    "data": "m = module(image)\nlaunch(function(m, 'add'))",
    "library": "lib = library(image)\nlaunch(kernel(lib, 'add'))",
    "file": "m = c_void_p()\ncall('cuModuleLoad', byref(m), sys.argv[1].encode())\nlaunch(function(m, 'add'))",
    "library file": (
        "lib = c_void_p()\n"
        "call('cuLibraryLoadFromFile', byref(lib), sys.argv[1].encode(), None, None, 0, None, None, 0)\n"
        "launch(kernel(lib, 'add'))"
    ),
    "options": (
        "m = c_void_p()\ncall('cuModuleLoadDataEx', byref(m), ctypes.c_char_p(image), 0, None, None)\n"
        "launch(function(m, 'add'))"
    ),
    "wrapped": (
        "keep = ctypes.create_string_buffer(image, len(image))\n"
        "import struct\nwrapper = struct.pack('<IIQQ', 0x466243B1, 1, ctypes.addressof(keep), 0)\n"
        "m = c_void_p()\ncall('cuModuleLoadFatBinary', byref(m), wrapper)\nlaunch(function(m, 'add'))"
    ),
}


def captured(
    host: Host, tmp_path: Path, image: bytes, form: str = "data", **more: str
) -> tuple[str, str, bytes | None]:
    """Loads an image; what the log calls it, the kernel's reason, and what was kept of it."""
    path = tmp_path / "image.bin"
    path.write_bytes(image)
    script = "from host import *\n" + LOAD + FORMS[form]
    run = host.command(sys.executable, "-c", script, str(path), **more)
    assert (run.status, run.stderr) == (0, "")
    (line,) = run.lines(r"\[bin\]")
    ((_, _, reason),) = run.outcomes()
    copies = list((run.directory / "kernel").glob("*/original.bin"))
    return line.removeprefix("[bin] type "), reason, copies[0].read_bytes() if copies else None


@pytest.mark.parametrize("form", ["data", "library", "file", "library file", "options"])
def test_ptx_text_in_every_form(host: Host, tmp_path: Path, form: str) -> None:
    assert captured(host, tmp_path, PTX, form) == (f"ptx size {len(PTX)}", "-", PTX)


@pytest.mark.parametrize("image", [b"\n   " + PTX, b"//\n" + PTX, b"\t/* by hand */\n" + PTX])
def test_ptx_text_after_space_and_comments(host: Host, tmp_path: Path, image: bytes) -> None:
    assert captured(host, tmp_path, image) == (f"ptx size {len(image)}", "-", image)


@pytest.mark.parametrize("form", ["data", "library", "file", "wrapped"])
def test_fatbin_keeps_only_its_ptx(host: Host, tmp_path: Path, form: str) -> None:
    image = fatbin(CODE, PLAIN, CODE, PACKED)
    name = "warpped_fatbin" if form == "wrapped" else "fatbin"
    assert captured(host, tmp_path, image, form) == (f"{name} size {len(image)}", "-", fatbin(PLAIN, PACKED))


def test_fatbin_without_ptx(host: Host, tmp_path: Path) -> None:
    image = fatbin(CODE)
    assert captured(host, tmp_path, image) == (f"fatbin size {len(image)}", "no PTX in image", None)


@pytest.mark.parametrize("form", ["data", "library", "file"])
def test_elf_with_its_ptx_is_kept_whole(host: Host, tmp_path: Path, form: str) -> None:
    image = elf({".text.add": b"\1\2\3\4", ".nv_debug_ptx_txt": PTX.replace(b"\n", b"\0")})
    assert captured(host, tmp_path, image, form) == (f"elf size {len(image)}", "-", image)


def test_a_linked_elf_with_numbered_ptx_is_kept_whole(host: Host, tmp_path: Path) -> None:
    image = elf({".text.add": b"\1\2\3\4", ".nv_debug_ptx_txt.3366120627": PTX.replace(b"\n", b"\0")})
    assert captured(host, tmp_path, image, TUI_PROBE_MACHINE_CODE="off") == (f"elf size {len(image)}", "-", image)


@pytest.mark.parametrize("form", ["data", "library", "file"])
def test_elf_without_ptx_is_kept_for_its_machine_code(host: Host, tmp_path: Path, form: str) -> None:
    image = elf({".text.add": b"\1\2\3\4", ".nv_debug_ptx_txt_not": b"x"})
    assert captured(host, tmp_path, image, form) == (f"elf size {len(image)}", "-", image)


def test_machine_code_is_skipped_when_switched_off(host: Host, tmp_path: Path) -> None:
    image = elf({".text.add": b"\1\2\3\4"})
    capture = captured(host, tmp_path, image, TUI_PROBE_MACHINE_CODE="off")
    assert capture == (f"elf size {len(image)}", "no PTX in image", None)


WHOLE_ELF = elf({".nv_debug_ptx_txt": PTX})
WHOLE_FATBIN = fatbin(PLAIN, PACKED)


@pytest.mark.parametrize("size", [4, 20, 63, 64, 80, len(WHOLE_ELF) - 65, len(WHOLE_ELF) - 1])
def test_truncated_elf_file(host: Host, tmp_path: Path, size: int) -> None:
    _, reason, copies = captured(host, tmp_path, WHOLE_ELF[:size], "file")
    assert (reason, copies) == ("no PTX in image", None)


@pytest.mark.parametrize("size", [4, 15, 16, 40, len(WHOLE_FATBIN) - 1])
def test_truncated_fatbin_file(host: Host, tmp_path: Path, size: int) -> None:
    _, reason, copies = captured(host, tmp_path, WHOLE_FATBIN[:size], "file")
    assert (reason, copies) == ("no PTX in image", None)


def test_fatbin_entry_that_reaches_beyond_its_container(host: Host, tmp_path: Path) -> None:
    liar = struct.pack("<HHIQ", 1, 0x101, 64, 1 << 40).ljust(64, b"\0")
    assert captured(host, tmp_path, fatbin(PLAIN, liar))[2] == fatbin(PLAIN)


@pytest.mark.parametrize("image", [b"\0\0\0\0 something else", b"// ", b".vers"])
def test_anything_else(host: Host, tmp_path: Path, image: bytes) -> None:
    name, reason, _ = captured(host, tmp_path, image.ljust(16, b"\0"), "file")
    assert name.startswith(("unknown", "ptx"))
    assert reason in {"no PTX in image", "-"}


def test_image_that_the_driver_refuses(host: Host) -> None:
    run = host.python(
        """
context()
bad = c_void_p(7)
print(cuda.cuModuleLoadData(byref(bad), b"\\xad\\xdb\\xba\\0 broken"), bad.value)
launch(function(module(), "add"))
"""
    )
    assert run.stdout == "200 7\n", run.stderr
    assert run.lines(r"\[mod\] cuModuleLoadData 200 module \(nil\)")
    assert len(run.lines(r"\[bin\]")) == 1

"""Source line in PTX of each SASS instruction, and the one of several that does the work of the line."""

from __future__ import annotations

import lzma
from collections import Counter
from pathlib import Path

import pytest

from tui_probe.pages.code.sass_text import SassCode, instruction_purposes, parse_sass, ptx_lines

DATA = Path(__file__).parents[1] / "data" / "sass" / "strides"


@pytest.mark.parametrize("side", ["pruned", "probed"])
def test_each_access_came_from_its_line(tmp_path: Path, side: str) -> None:
    cubin = tmp_path / "kernel.bin"
    cubin.write_bytes(lzma.decompress((DATA / f"{side}.bin.xz").read_bytes()))
    code = parse_sass((DATA / f"{side}.txt").read_text())
    lines = ptx_lines(cubin, code)
    ptx = (DATA / f"{side}.ptx").read_text().split("\n")
    rows = [
        (text.split()[0], ptx[line - 1])
        for text, line in zip(code.lines, instruction_purposes(code, lines), strict=True)
        if line
    ]
    assert [row for row in rows if row[0].startswith("LDG")] == [
        ("LDG.E", "ld.global.f32 %f1, [%rd4];"),
        ("LDG.E", "ld.global.f32 %f2, [%rd5];"),
    ]
    assert ("STG.E.64", "st.global.v2.f32 [%rd6], {%f3, %f3};") in rows
    assert lines[code.lines.index("strides:")] is None


def code_of(*lines: str) -> SassCode:
    return SassCode(
        [f"    {line}" for line in lines], [16 * i for i in range(len(lines))], [""] * len(lines), Counter()
    )


def test_only_one_instruction_stands_for_a_line() -> None:
    code = code_of("IADD3 R1, R1, 1, RZ", "LDC R2, c[0x0]", "@P0 LDG.E R3, [R2]", "LDG.E R4, [R2]", "LDG.E R5, [R2]",
                   "BSYNC B0", "BRA `(.L_x_0)", "MOV R1, R2")  # fmt: skip
    assert instruction_purposes(code, [7, 8, 8, 9, 9, 11, 11, None]) == [7, None, 8, None, None, None, 11, None]


def test_other_files_have_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "kernel.bin"
    path.write_bytes(b"machine code")
    assert ptx_lines(path, code_of("EXIT")) == [None]
    assert ptx_lines(tmp_path / "absent.bin", code_of("EXIT")) == [None]


def test_addresses_of_several_functions_tell_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kernel.bin"
    path.write_bytes(lzma.decompress((DATA / "pruned.bin.xz").read_bytes()))
    code = code_of("MOV R1, R2", "EXIT")
    code.addresses[:] = [0, 0]
    assert ptx_lines(path, code) == [None, None]

"""Colours of syntax: roles of the parts of lines; the text itself stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.draw.palette import PALETTES
from tui_probe.draw.spans import plain
from tui_probe.pages.code.code_lines import colored_code, colored_source

ROLES = ("code_keyword", "code_type", "code_name", "code_string", "code_number", "code_comment")


@pytest.mark.parametrize(
    ("line", "opcode"),
    [
        ("    ld.global.f32 %f1, [%rd5+16];", "ld.global.f32"),
        ("@%p1 bra $L_2; // out", "bra"),
        ("    { add.s32 %r1, %r2, -4; }", "add.s32"),
        ("    cp.async.cg.shared::cta.global [%r1], [%rd1], 16;", "cp.async.cg.shared::cta.global"),
        ("        /*0010*/      @!P0 IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;", "IMAD.MOV.U32"),
    ],
)
def test_colored_code_marks_the_opcode(line: str, opcode: str) -> None:
    spans = colored_code(line)
    assert [text for text, role in spans if role == "code_keyword"] == [opcode]
    assert plain(spans) == line


@pytest.mark.parametrize("line", ["$L_2:", ".L_x_0:", "loop:"])
def test_colored_code_marks_labels(line: str) -> None:
    assert colored_code(line) == ((line, "head"),)


def test_inserted_lines_keep_their_role() -> None:
    assert {role for _, role in colored_code("    add.s32 %r1, %r2, 4;", "added")} == {"added"}


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=60))
def test_colored_code_keeps_any_text(line: str) -> None:
    assert plain(colored_code(line)) == line


def test_colored_source_reads_strings_over_several_lines() -> None:
    lines = ['"""One', 'two"""', "def f(x):", "    return x + 1  # sum", ""]
    colored = colored_source("a.py", lines)
    assert colored is not None
    assert [plain(line) for line in colored] == lines
    assert {role for line in colored[:2] for _, role in line} == {"code_comment"}
    assert [role for text, role in colored[2] if text.strip() == "def"] == ["code_keyword"]


def test_colored_source_reads_cuda() -> None:
    colored = colored_source("k.cu", ["__global__ void f(float *x) {", "    x[threadIdx.x] = 1.0f;", "}"])
    assert colored is not None
    roles = {text.strip(): role for line in colored for text, role in line}
    assert (roles["__global__"], roles["1.0f"]) == ("code_keyword", "code_number")


def test_colored_source_leaves_other_languages_plain() -> None:
    assert colored_source("notes.txt", ["def f():"]) is None


@pytest.mark.parametrize("name", [name for name in PALETTES if name != "plain"])
def test_palettes_have_colours_of_code_apart_from_those_of_severity(name: str) -> None:
    palette = PALETTES[name]
    severity = {palette.style(role).color for role in ("warn", "bad")}
    assert all(role in palette.styles for role in ROLES)
    assert not severity & {palette.style(role).color for role in ROLES}

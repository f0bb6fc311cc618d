"""Lines of PTX lead to the lines of source that the compiler names, by its directives or over the machine code."""

from __future__ import annotations

import lzma
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels import DATA
from tests.ptx.images import fatbin_of
from tests.recorded import DATA as FILES
from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.fatbin import FatbinEntry
from tui_probe.binaries.line_tables import LineEntry, cut_table, line_sequences, line_tables
from tui_probe.errors import ImageError
from tui_probe.ptx.images import cubin_with_ptx, find_ptx, image_entries, ptx_texts
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import prune_to_kernel
from tui_probe.ptx.tree import INSERTED_MARK, REPLACED_MARK
from tui_probe.sass.prune import prune_cubin
from tui_probe.sass.words import WORD_BYTES
from tui_probe.trace.source_lines import (
    SourceLine,
    SourceLines,
    files_of,
    lines_of_directives,
    lines_of_original_ptx,
    named_files,
)
from tui_probe.verdicts.code_places import _source_location

CUBINS = FILES / "cubins"
ACCESS = re.compile(r"\b(?:[lr]d|st|atom|cp\.async\.c[ag])\b.*\bglobal\b")


def folder_of(tmp_path: Path, image: bytes) -> Path:
    """A kernel's folder as the engine fills it."""
    original = find_ptx(image)
    module = parse(original)
    (tmp_path / "original.bin").write_bytes(image)
    (tmp_path / "original.ptx").write_text(original)
    (tmp_path / "pruned.ptx").write_text(prune_to_kernel(module, module.entries()[0].name))
    return tmp_path


def accesses(ptx: str) -> list[int]:
    return [number for number, text in enumerate(ptx.splitlines(), 1) if ACCESS.search(text)]


@pytest.mark.parametrize("in_fatbin", [False, True])
@pytest.mark.parametrize("name", ["attn_fwd", "triton_add"])
def test_cubin_without_directives_has_the_lines_of_the_directives(tmp_path: Path, name: str, in_fatbin: bool) -> None:
    """The same kernel as PTX text with ``.loc``, and as a cubin whose PTX has blanks in their place, as Triton loads
    it, and in a fatbin, as of ``nvcc -lineinfo`` without PTX.
    """
    text = (DATA / f"{name}.sm_90a.ptx").read_text()
    expected = [lines_of_directives(text)[number] for number in accesses(text)]
    cubin = (DATA / f"{name}.sm_90a.cubin").read_bytes()
    folder = folder_of(tmp_path, fatbin_of(cubin=(90, cubin)) if in_fatbin else cubin)
    pruned = (folder / "pruned.ptx").read_text()
    assert ".loc" not in pruned
    lines = SourceLines.from_folder(folder)
    numbers = [lines.ptx_line(number) for number in accesses(pruned)]
    assert numbers == expected
    assert len(numbers) >= 3
    assert {line.file for line in lines.lines.values()} == set(files_of(folder))


def test_pruned_cubin_has_the_ptx_lines_of_its_image(tmp_path: Path) -> None:
    """A cubin of several kernels is pruned to one, and loses the table of PTX lines."""
    image = lzma.decompress((CUBINS / "lines.sm_90.cubin.xz").read_bytes())
    pruned = prune_cubin(Cubin.read(image), "scale", cut_table).image
    assert not line_tables(pruned)
    (debug_ptx,) = ptx_texts(image)
    (tmp_path / "kernel.info").write_text("scale\n0\n0\n")
    lines = []
    for own, original in ((image, b""), (pruned, b""), (pruned, fatbin_of((90, debug_ptx.text), cubin=(90, image)))):
        (tmp_path / "pruned.bin").write_bytes(own)
        (tmp_path / "original.bin").write_bytes(original)
        lines.append(lines_of_original_ptx(tmp_path, debug_ptx.text, range(0, 0x100, WORD_BYTES)))
    whole_cubin, without_image, from_image = lines
    assert whole_cubin[1]
    assert len(set(whole_cubin[0].values())) > 5
    assert not without_image[1]
    assert from_image == whole_cubin


def test_cubin_is_not_read_for_ptx_that_is_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large cubin next to PTX is not decompressed: its debug section is not where the PTX is from."""
    cubin = (DATA / "attn_fwd.sm_90a.cubin").read_bytes()
    (kept,) = ptx_texts(cubin)
    assert cubin_with_ptx(image_entries(fatbin_of(cubin=(90, cubin))), kept.text) == cubin
    monkeypatch.delattr(FatbinEntry, "content")
    assert cubin_with_ptx(image_entries(fatbin_of((90, kept.text), cubin=(90, cubin))), kept.text) == b""
    assert cubin_with_ptx(image_entries(kept.text.encode()), kept.text) == b""


def test_failure_in_probed_ptx_has_the_line_of_the_table(tmp_path: Path) -> None:
    """A failure of the simulated GPU is at a line of probed.ptx; behind inserted and replaced lines, too."""
    folder = folder_of(tmp_path, fatbin_of(cubin=(90, (DATA / "attn_fwd.sm_90a.cubin").read_bytes())))
    pruned = (folder / "pruned.ptx").read_text().splitlines()
    number = accesses("\n".join(pruned))[2]
    lines = pruned[: number - 1] + [f"mov.u32 %r1, 0; {INSERTED_MARK}p"] * 3
    lines += [f"{pruned[number - 1]} {REPLACED_MARK}p", *pruned[number:]]
    (folder / "probed.ptx").write_text("\n".join(lines))
    expected = SourceLines.from_folder(folder).ptx_line(number)
    assert expected is not None
    assert _source_location(folder / "probed.ptx", number + 3, "[") == f" ({expected.file}:{expected.line})"


def test_directives(tmp_path: Path) -> None:
    text = (
        '.file 1 "a.cu"\n.file 2 "/src" "b.cu"\n.entry k()\n{\n\t.loc 1 7 3\n\tmov.u32 %r1, 0;\n'
        "\t.loc\t2 9 1, function_name $L, inlined_at 1 8 0\n\n$x:\n\tadd.u32 %r1, %r1, 1;\n"
        "\t.loc 1 0 0\n\tret;\n}\n.func f()\n{\n\tret;\n}\n"
    )
    (tmp_path / "pruned.ptx").write_text(text)
    lines = SourceLines.from_folder(tmp_path)
    assert lines.lines == {
        6: SourceLine("a.cu", 7), 9: SourceLine("/src/b.cu", 9), 10: SourceLine("/src/b.cu", 9),
    }  # fmt: skip
    assert lines.ptx_line(5) is None
    assert lines.following(7) == SourceLine("/src/b.cu", 9)
    assert lines.following(11) is None


def test_numbers_of_thousands_of_digits_name_no_line() -> None:
    digits = "9" * 5000
    text = f'.file 1 "k.cu"\n.file {digits} "x.cu"\n.loc 1 {digits} 3\nret;\n.loc {digits} 2 3\nret;\n'
    assert lines_of_directives(text) == {}
    assert named_files(text) == {1: "k.cu"}


def test_nothing_tells(tmp_path: Path) -> None:
    assert SourceLines.from_folder(tmp_path).lines == {}
    (tmp_path / "pruned.ptx").write_text(".entry k() { ret; }")
    assert SourceLines.from_folder(tmp_path).lines == {}
    (tmp_path / "original.bin").write_bytes(b"\x7fELF and then nothing")
    assert SourceLines.from_folder(tmp_path).lines == {}


def header(version: int = 2) -> bytes:
    names = b"/src\0\0" + b"x.py\0\1\0\0" + b"/y.py\0\0\0\0" + b"\0"
    fields = b"\1\1" + struct.pack("<bBB", -5, 14, 10) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1]) + names
    fields = (b"\1\1" + fields[1:]) if version == 4 else fields
    return struct.pack("<HI", version, len(fields)) + fields


def unit(program: bytes, version: int = 2) -> bytes:
    content = header(version) + program
    return struct.pack("<I", len(content)) + content


PROGRAM = (
    b"\0\x09\2" + struct.pack("<Q", 0x40)  # address 0x40
    + b"\3\x06\1"                          # line 7, row
    + b"\2\x10\4\2\3\x7f\1"                # 16 on, file 2, line 6, row
    + bytes([10 + 14 * 3 + 5 + 2])         # 3 on, line 8, row
    + b"\x08\x09\x20\x00\6\1"              # 17 and 32 on, row
    + b"\0\1\1"
)  # fmt: skip


@pytest.mark.parametrize("version", [2, 4])
def test_a_program_worked_out_by_hand(version: int) -> None:
    sequences = list(line_sequences(unit(PROGRAM, version) * 2))
    rows = [
        LineEntry(0x40, "/src/x.py", 7),
        LineEntry(0x50, "/y.py", 6),
        LineEntry(0x53, "/y.py", 8),
        LineEntry(0x84, "/y.py", 8),
    ]
    place = 4 + len(header(version)) + 3
    assert sequences[0] == (place, rows)
    assert sequences[1] == (place + len(unit(PROGRAM, version)), rows)


def test_line_sequences_keep_the_row_of_an_inlined_call() -> None:
    inlined = b"\0\x03\x90\1\0" + b"\4\2\1" + b"\0\x03\x90\0\0" + b"\4\1\1"  # of row 1: file 2; of none: file 1
    program = PROGRAM[:11] + b"\1" + inlined + PROGRAM[-3:]
    ((_, rows),) = line_sequences(unit(program))
    assert [(row.file, row.caller) for row in rows] == [("/src/x.py", 0), ("/y.py", 1), ("/src/x.py", 0)]


def test_versions_that_are_not_read() -> None:
    with pytest.raises(ImageError, match="version 5"):
        list(line_sequences(unit(PROGRAM, 5)))


@given(st.binary(max_size=200) | st.binary(max_size=80).map(unit), st.binary(max_size=20), st.integers(0, 300))
def test_any_bytes_give_rows_or_a_clean_error(section: bytes, noise: bytes, place: int) -> None:
    damaged = section[:place] + noise + section[place + len(noise) :]
    for data in (section, damaged, unit(PROGRAM)[: place % 90]):
        try:
            assert all(isinstance(row.line, int) for _, rows in line_sequences(data) for row in rows)
        except ImageError as error:
            assert "line table" in str(error)  # noqa: PT017


@given(st.integers(0, 40_000), st.binary(min_size=1, max_size=8))
def test_a_damaged_cubin_gives_tables_or_a_clean_error(place: int, noise: bytes) -> None:
    image = (DATA / "triton_add.sm_90a.cubin").read_bytes()
    place %= len(image)
    try:
        tables = line_tables(image[:place] + noise + image[place + len(noise) :])
    except ImageError as error:
        assert str(error)  # noqa: PT017
    else:
        assert len(tables) <= 1, "the cubin has one function"


def test_program_line_is_the_call_of_a_toolkit_header(tmp_path: Path) -> None:
    """Through calls within headers; code of the program and of other headers keeps its own line."""
    (tmp_path / "pruned.ptx").write_text(
        '.file 1 "/home/a/sum.cu"\n.file 2 "/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda/atomic"\n'
        '.file 3 "/opt/other/include/tile.h"\n'
        ".visible .entry kernel()\n{\n"
        ".loc 1 7 30\nmov.u32 %r1, 0;\n"  # line 7
        ".loc 2 93 3, function_name $L0, inlined_at 1 9 30\n"
        ".loc 2 319 3, function_name $L1, inlined_at 2 93 3\n"
        "atom.global.add.u32 %r1, [%rd1], 1;\n"  # line 10
        ".loc 3 5 1, function_name $L2, inlined_at 1 11 2\n"
        "st.global.u32 [%rd1], 1;\n"  # line 12
        ".loc 2 12 1\nld.global.u32 %r1, [%rd1];\nret;\n}\n"  # line 14: no call is known
    )
    lines = SourceLines.from_folder(tmp_path)
    places = [(line.file.rpartition("/")[2], line.line) for at in (7, 10, 12, 14) if (line := lines.program_line(at))]
    assert places == [("sum.cu", 7), ("sum.cu", 9), ("tile.h", 5), ("atomic", 12)]
    assert lines.ptx_line(10) == SourceLine("/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda/atomic", 319)

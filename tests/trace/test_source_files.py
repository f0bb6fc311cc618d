"""The copies of source files in a trace."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tui_probe.input_limits import SOURCE_FILE
from tui_probe.trace.source_lines import SOURCE_FOLDER, SourceFiles, SourceLine, copy_name


def put(trace: Path, path: str, text: bytes) -> None:
    (trace / SOURCE_FOLDER).mkdir(exist_ok=True)
    (trace / SOURCE_FOLDER / copy_name(path)).write_bytes(text)


def test_a_line_is_its_text_without_the_space_around_it(tmp_path: Path) -> None:
    put(tmp_path, "/home/user/saxpy.cu", b"void f()\n{\n\ty[i] = a * x[i];\n}\n")
    files = SourceFiles(tmp_path)
    assert files.text(SourceLine("/home/user/saxpy.cu", 3)) == "y[i] = a * x[i];"
    assert files.lines("/home/user/saxpy.cu")[2] == "    y[i] = a * x[i];"
    assert [files.text(SourceLine("/home/user/saxpy.cu", line)) for line in (0, 5, 999)] == ["", "", ""]


def test_files_of_one_name_are_distinguished(tmp_path: Path) -> None:
    put(tmp_path, "/a/kernel.cu", b"one")
    put(tmp_path, "/b/kernel.cu", b"two")
    files = SourceFiles(tmp_path)
    assert (files.lines("/a/kernel.cu"), files.lines("/b/kernel.cu")) == (("one",), ("two",))
    assert files.lines("/c/kernel.cu") == ()


def test_no_link_leads_out_of_the_trace(tmp_path: Path) -> None:
    trace, secret = tmp_path / "trace", tmp_path / "secret"
    trace.mkdir()
    secret.write_text("secret")
    (trace / SOURCE_FOLDER).mkdir()
    (trace / SOURCE_FOLDER / copy_name("a.cu")).symlink_to(secret)
    assert SourceFiles(trace).lines("a.cu") == ()


def test_binary_file_is_harmless(tmp_path: Path) -> None:
    put(tmp_path, "a.cu", b"\xff\x1b[2J\x00x\n" + b"y" * (2 * SOURCE_FILE.maximum))
    first, second = SourceFiles(tmp_path).lines("a.cu")
    assert first.isprintable()
    assert len(second) < SOURCE_FILE.maximum
    (tmp_path / SOURCE_FOLDER / copy_name("b.cu")).mkdir()
    assert SourceFiles(tmp_path).lines("b.cu") == ()


@given(st.text())
def test_the_name_of_a_copy_is_a_plain_one(path: str) -> None:
    name = copy_name(path)
    assert "/" not in name
    assert name.isprintable()
    assert 13 <= len(name) <= 93

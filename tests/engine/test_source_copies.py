"""The source files that a kernel came from are copied into its trace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_probe.engine.source_copies import SourceCopies, SourcePolicy
from tui_probe.input_limits import SOURCE_FILE
from tui_probe.trace.source_lines import SOURCE_FOLDER, SourceFiles

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry {name}()
{{
	.loc	1 2 0
	ret;
	.loc	2 1 0
}}
	.file	1 "{first}"
	.file	2 "{second}"
	.file	3 "{unused}"
"""


def kernel_of(trace: Path, name: str, first: object, second: object = "", unused: object = "") -> Path:
    folder = trace / "kernel" / f"0_{name}"
    folder.mkdir(parents=True)
    (folder / "pruned.ptx").write_text(PTX.format(name=name, first=first, second=second, unused=unused))
    return folder


def test_files_that_lines_name_are_copied_and_no_others(tmp_path: Path) -> None:
    for name in ("one.cu", "two.h", "three.h"):
        (tmp_path / name).write_text(f"// {name}\nnext\n")
    trace = tmp_path / "trace"
    SourceCopies(policy=SourcePolicy(tmp_path)).add(
        kernel_of(trace, "kernel", *(tmp_path / name for name in ("one.cu", "two.h", "three.h")))
    )
    files = SourceFiles(trace)
    assert files.lines(str(tmp_path / "one.cu")) == ("// one.cu", "next")
    assert files.lines(str(tmp_path / "two.h")) == ("// two.h", "next")
    assert sorted(path.name.partition("_")[2] for path in (trace / SOURCE_FOLDER).iterdir()) == ["one.cu", "two.h"]


def test_a_relative_path_is_one_of_the_folder_that_the_program_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "saxpy.cu").write_text("here\n")
    monkeypatch.chdir(tmp_path)
    SourceCopies(policy=SourcePolicy(tmp_path)).add(kernel_of(tmp_path / "trace", "kernel", "saxpy.cu"))
    assert SourceFiles(tmp_path / "trace").lines("saxpy.cu") == ("here",)


def test_missing_large_and_binary_files_are_excluded(tmp_path: Path) -> None:
    (tmp_path / "large.cu").write_bytes(b"x" * (SOURCE_FILE.maximum + 1))
    (tmp_path / "binary.cu").write_bytes(b"\0\1")
    os.mkfifo(tmp_path / "pipe.cu")
    copies, trace = SourceCopies(policy=SourcePolicy(tmp_path)), tmp_path / "trace"
    copies.add(kernel_of(trace, "a", tmp_path / "large.cu", tmp_path / "binary.cu"))
    copies.add(kernel_of(trace, "b", tmp_path / "pipe.cu", tmp_path / "nothing.cu"))
    copies.add(trace / "kernel" / "no such kernel")
    assert not (trace / SOURCE_FOLDER).exists()


def test_a_file_is_copied_once_as_it_was_first(tmp_path: Path) -> None:
    source, trace = tmp_path / "a.cu", tmp_path / "trace"
    source.write_text("first\n")
    copies = SourceCopies(policy=SourcePolicy(tmp_path))
    copies.add(kernel_of(trace, "a", source))
    source.write_text("second\n")
    copies.add(kernel_of(trace, "b", source))
    assert SourceFiles(trace).lines(str(source)) == ("first",)


def test_all_copies_of_a_trace_have_their_room(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("12345678")
    (tmp_path / "b.cu").write_text("12345678")
    (tmp_path / "c.cu").write_text("12")
    copies, trace = SourceCopies(10, SourcePolicy(tmp_path)), tmp_path / "trace"
    copies.add(kernel_of(trace, "a", tmp_path / "a.cu", tmp_path / "b.cu"))
    copies.add(kernel_of(trace, "b", tmp_path / "c.cu"))
    files = SourceFiles(trace)
    assert [files.lines(str(tmp_path / name)) for name in ("a.cu", "b.cu", "c.cu")] == [("12345678",), (), ("12",)]

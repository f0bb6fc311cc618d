"""The kernel that does nothing, as the hook loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import EMPTY_KERNEL, EMPTY_KERNEL_ARCHITECTURES, Assembler, keep_empty_kernels

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.toolchain import Tool


def test_each_generation_has_its_file_made_once(ptxas: Tool, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "empty"
    keep_empty_kernels(Assembler([ptxas]), folder)
    files = sorted(folder.iterdir())
    assert {file.name for file in files} == {f"sm_{arch}.cubin" for arch in EMPTY_KERNEL_ARCHITECTURES}
    assert all(EMPTY_KERNEL in Cubin.read(file.read_bytes()).kernels for file in files)
    times = [file.stat().st_mtime_ns for file in files]
    keep_empty_kernels(Assembler([]), folder)
    assert [file.stat().st_mtime_ns for file in files] == times


def test_without_an_assembler_or_a_folder_there_is_no_file(tmp_path: Path) -> None:
    keep_empty_kernels(Assembler([]), tmp_path / "empty")
    assert not [*(tmp_path / "empty").iterdir()]
    (tmp_path / "file").touch()
    keep_empty_kernels(Assembler([]), tmp_path / "file" / "empty")

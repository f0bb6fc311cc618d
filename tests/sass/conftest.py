"""Fixtures of the tests of machine code: PTX assembled, and machine code as nvdisasm reads it."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tui_probe.binaries.cubin import Cubin
from tui_probe.toolchain import find_disassembler, find_tools

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ARCHITECTURES = (80, 90, 100)
_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")


@pytest.fixture(scope="session")
def assembled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int | str], Cubin]:
    """The cubin of PTX without its head, for an architecture (90, "90a"); each is assembled once."""
    tools = find_tools("ptxas")
    if not tools:
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    folder = tmp_path_factory.mktemp("assembled")
    made: dict[tuple[str, int | str], Cubin] = {}

    def assemble(text: str, arch: int | str) -> Cubin:
        if (text, arch) not in made:
            source, binary = folder / f"{len(made)}.ptx", folder / f"{len(made)}.cubin"
            version = "8.7" if arch == 100 else "8.1"
            source.write_text(f".version {version}\n.target sm_{arch}\n.address_size 64\n{text}")
            command = [tools[0].path, f"-arch=sm_{arch}", source, "-o", binary]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            made[text, arch] = Cubin.read(binary.read_bytes())
        return made[text, arch]

    return assemble


@pytest.fixture(scope="session")
def disassembled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], dict[int, str]]:
    """The instructions of a cubin's only kernel, or of all its code, by byte offset, as nvdisasm writes them."""
    tool = find_disassembler()
    if tool is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    path: Path = tmp_path_factory.mktemp("disassembled") / "image.cubin"

    def disassemble(image: bytes) -> dict[int, str]:
        path.write_bytes(image)
        done = subprocess.run([tool.path, path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "error" not in done.stderr
        _, _, code = done.stdout.partition("\t.section\t.text.")
        return {int(at, 16): text for at, text in _LINE.findall(code)}

    return disassemble

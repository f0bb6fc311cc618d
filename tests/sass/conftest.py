"""Fixtures of the tests of machine code: PTX assembled, and machine code as nvdisasm reads it."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
import tempfile
from typing import TYPE_CHECKING

import pytest

from tui_probe.binaries.cubin import Cubin
from tui_probe.sass.words import code_of
from tui_probe.toolchain import find_disassembler, find_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.sass.words import Word

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
def disassembled() -> Callable[[bytes], dict[int, str]]:
    """The instructions of a cubin's only kernel, or of all its code, by byte offset, as nvdisasm writes them."""
    if find_disassembler() is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")

    def disassemble(image: bytes) -> dict[int, str]:
        _, _, code = listing(image).partition("\t.section\t.text.")
        return {int(at, 16): text for at, text in _LINE.findall(code)}

    return disassemble


def code_texts(arch: int, *codes: Sequence[Word]) -> list[list[str]]:
    """Pieces of code as nvdisasm writes them, all by one start of it, where no symbol or section matters."""
    tool = find_disassembler()
    if tool is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code_of(word for code in codes for word in code))
        file.flush()
        command = [str(tool.path), "-ndf", "-b", f"SM{arch}", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    texts = iter([text for _, text in _LINE.findall(done.stdout)])
    pieces = [list(itertools.islice(texts, len(code))) for code in codes]
    assert [len(piece) for piece in pieces] == [len(code) for code in codes]
    assert not list(texts)
    return pieces


@functools.cache
def listing(image: bytes) -> str:
    """A cubin as nvdisasm writes it, once: nvdisasm takes 0.4 s of CPU to start.

    A quarter of that is an analysis of branches, which adds notes only.
    """
    tool = find_disassembler()
    assert tool is not None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        done = subprocess.run([tool.path, "-c", "-ndf", file.name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    return done.stdout

"""Fixtures of the engine's tests."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tui_probe.toolchain import Tool, find_tools

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def ptxas() -> Tool:
    """The newest ptxas of this machine."""
    tools = find_tools("ptxas")
    if not tools:
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    return tools[0]


@pytest.fixture
def accepts(ptxas: Tool, tmp_path: Path) -> Callable[[str], int]:
    """Assemble PTX for its own target; fail with ptxas's words, or return the registers used."""

    def assemble(text: str) -> int:
        source = tmp_path / "accepts.ptx"
        source.write_text(text)
        target = re.search(r"\.target (sm_\w+)", text)
        assert target
        command = [ptxas.path, "-v", f"-arch={target[1]}", source, "-o", tmp_path / "accepts.bin"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + text
        registers = re.search(r"Used (\d+) registers", done.stderr)
        assert registers
        return int(registers[1])

    return assemble

"""Machine code as text, by the newest nvdisasm of this machine."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

from tui_probe.engine.toolchain import find_tools
from tui_probe.errors import ToolchainError

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.toolchain import Tool

INSTALL_HINT: Final = "install the wheel nvidia-cuda-nvdisasm, or set CUDA_HOME to a CUDA toolkit"
_SECONDS: Final = 120


def disassembler() -> Tool | None:
    """The newest nvdisasm, None if there is none."""
    return next(iter(find_tools("nvdisasm")), None)


def disassemble(tool: Tool, cubin: Path, symbol: int | None = None) -> str:
    """The code sections of a cubin, with the source lines that it carries. Raises ToolchainError.

    With ``symbol``, the index of a function's symbol, the section with that function alone: of a cubin with hundreds of
    kernels nothing else is read.
    """
    chosen = [] if symbol is None else ["-fun", str(symbol)]
    command = [str(tool.path), "-c", "-g", *chosen, str(cubin)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"{tool.path}: {error}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise ToolchainError(f"{cubin}: {tool.path.name} {tool.version} cannot read it: {said}")
    return done.stdout.decode("utf-8", "replace")

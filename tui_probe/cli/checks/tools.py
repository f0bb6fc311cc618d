"""The CUDA tools: the assembler that probing wants, and the others that can help."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tui_probe.engine.toolchain import INSTALL_HINT, find_tools, silent_tools

from . import Item

WITHOUT_PTXAS = f"registers and spills will be missing, and the driver assembles; {INSTALL_HINT}"


def tool_items() -> list[Item]:
    return [
        cuda_tool("ptxas", WITHOUT_PTXAS),
        cuda_tool("nvdisasm", "SASS will not be shown; pip install 'tui-probe[cuda]'"),
        cuda_tool("cuobjdump", "not needed: images are read without it; pip install 'tui-probe[cuda]'"),
        nsight_tool("ncu", "only for comparing with Nsight Compute"),
        nsight_tool("nsys", "only for comparing with Nsight Systems"),
    ]


def cuda_tool(name: str, without: str) -> Item:
    """A tool of the CUDA toolkit: the newest is used, others stand by for what it no longer takes."""
    tools = find_tools(name)
    if silent := ", ".join(map(str, silent_tools(name))):
        words = f"{tools[0].version}, {tools[0].path}; " if tools else ""
        return Item(name, "warn", f"{words}{silent} does not answer --version", "remove it, or put another one first")
    if not tools:
        return Item(name, "missing", "not found", without)
    others = "".join(f"; also {tool.version}" for tool in tools[1:])
    return Item(name, "ok", f"{tools[0].version}, {tools[0].path}{others}")


def nsight_tool(name: str, purpose: str) -> Item:
    path = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if path is None:
        return Item(name, "missing", "not found", purpose)
    return Item(name, "ok", f"{version_of(Path(path))}, {path}")


def version_of(tool: Path) -> str:
    try:
        result = subprocess.run([tool, "--version"], capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "does not run"
    match = re.search(r"\d+\.\d+[\w.-]*", result.stdout)
    return match[0] if match else "unknown version"

"""The CUDA tools: the assembler that probing wants, and the others that can help."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tui_probe.engine.toolchain import INSTALL_HINT, find_tools, silent_tools

from . import Item, State

WITHOUT_PTXAS = f"registers and spills will be missing, and the driver assembles; {INSTALL_HINT}"


def tool_items() -> list[Item]:
    return [
        cuda_tool("ptxas", WITHOUT_PTXAS, "missing"),
        cuda_tool("nvdisasm", "with it machine code (SASS) is shown: pip install 'tui-probe[cuda]'"),
        cuda_tool("cuobjdump", "not needed: images are read without it"),
        nsight_tool("ncu", "with it run --ncu shows what Nsight Compute counts"),
        nsight_tool("nsys", "with it timelines can be recorded that import reads"),
    ]


def cuda_tool(name: str, without: str, absent: State = "optional") -> Item:
    """A tool of the CUDA toolkit: the newest is used, others stand by for what it no longer takes."""
    tools = find_tools(name)
    if silent := ", ".join(map(str, silent_tools(name))):
        words = f"{tools[0].version}, {tools[0].path}; " if tools else ""
        return Item(name, "warn", f"{words}{silent} does not answer --version", "remove it, or put another one first")
    if not tools:
        return Item(name, absent, "not found", without)
    others = "".join(f"; also {tool.version}" for tool in tools[1:])
    return Item(name, "ok", f"{tools[0].version}, {tools[0].path}{others}")


def nsight_tool(name: str, purpose: str) -> Item:
    path = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if path is None:
        return Item(name, "optional", "not found", purpose)
    return Item(name, "ok", f"{version_of(Path(path))}, {path}")


def version_of(tool: Path) -> str:
    try:
        result = subprocess.run([tool, "--version"], capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "does not run"
    match = re.search(r"\d+\.\d+[\w.-]*", result.stdout)
    return match[0] if match else "unknown version"

"""Results of ptxas and nvdisasm, kept for all test processes, which read the same code hundreds of times."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path


def store(path: Path, content: bytes) -> None:
    """Write a file that nobody finds half written."""
    own = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    own.write_bytes(content)
    own.replace(path)


def assemble_once(folder: Path) -> None:
    """Let the engine in this process assemble the same PTX once; results of all processes are in this folder.

    A program of a test's own in the place of this machine's ptxas always runs.
    """
    from tui_probe.engine import assembler
    from tui_probe.toolchain import find_tools

    run_command, known = assembler._run_command, {str(tool.path) for tool in find_tools("ptxas")}

    def run_once(command: list[str], started: Callable[[], object] | None, seconds: float) -> tuple[int, str]:
        if command[-2] != "-o" or command[0] not in known:
            return run_command(command, started, seconds)
        *options, source, _, binary = command
        digest = sha256(repr(options).encode() + Path(source).read_bytes()).hexdigest()
        code, report = folder / f"{digest}.bin", folder / f"{digest}.txt"
        if report.exists():
            if started is not None:
                started()
            shutil.copyfile(code, binary)
            return 0, report.read_text()
        status, output = run_command(command, started, seconds)
        if status == 0:
            with contextlib.suppress(OSError):  # of a test with little room or few rights
                store(code, Path(binary).read_bytes())
                store(report, output.encode())
        return status, output

    assembler._run_command = run_once


def disassemble_once(folder: Path) -> None:
    """Let pages in this process disassemble the same cubin once, as ``assemble_once``: nvdisasm takes 0.5 s of CPU."""
    from tui_probe import toolchain

    disassemble, known = toolchain.disassemble, {tool.path for tool in toolchain.find_tools("nvdisasm")}

    def run_once(tool: toolchain.Tool, cubin: Path, symbol: int | None = None) -> str:
        if tool.path not in known:
            return disassemble(tool, cubin, symbol)
        digest = sha256(repr((tool.path, symbol)).encode() + cubin.read_bytes()).hexdigest()
        listing = folder / f"{digest}.sass"
        if not listing.exists():
            text = disassemble(tool, cubin, symbol)
            with contextlib.suppress(OSError):  # of a test with little room or few rights
                store(listing, text.encode())
            return text
        return listing.read_text()

    toolchain.disassemble = run_once
    if pages := sys.modules.get("tui_probe.pages.code.kernel_sass"):
        vars(pages)["disassemble"] = run_once

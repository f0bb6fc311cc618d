"""Registers and spills of PTX, by the assembler."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tui_probe.engine.assembler import Assembler


@dataclass(frozen=True)
class Usage:
    """Registers of a thread, and the bytes that a thread stores and loads because registers did not suffice."""

    registers: int
    spill_bytes: int


@cache
def assembler() -> Assembler:
    """The assemblers of this machine."""
    return Assembler()


def assemble(text: str, entry: str, folder: Path, arch: str = "") -> Usage:
    """Assemble PTX for ``arch`` (sm_90), or for its own target. Raises ToolchainError."""
    target = re.search(r"\.target\s+(sm_\d+)[af]?", text)
    assert target, "PTX without .target"
    with tempfile.TemporaryDirectory(dir=folder) as name:
        source = Path(name) / "kernel.ptx"
        source.write_text(text)
        report = assembler().assemble(source, source.with_suffix(".bin"), arch or target[1], entry)
    assert report.registers is not None, report.output
    return Usage(report.registers, (report.spill_store_bytes or 0) + (report.spill_load_bytes or 0))

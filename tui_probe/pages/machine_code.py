"""The machine code of the pruned and the probed kernel as nvdisasm prints it, and where it came from."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.alignment import align_probed
from tui_probe.analysis.sass import parse
from tui_probe.analysis.sass_alignment import with_labels
from tui_probe.analysis.sass_lines import doing, ptx_lines
from tui_probe.engine.disassembler import INSTALL_HINT, disassemble, disassembler
from tui_probe.errors import ToolchainError, TraceError
from tui_probe.pages.source_text import read_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.analysis.alignment import Pair
    from tui_probe.analysis.sass import Code
    from tui_probe.draw.view import Progress
    from tui_probe.engine.toolchain import Tool
    from tui_probe.trace.model import Kernel

FILES: Final = ("pruned.bin", "probed.bin")


@dataclass(frozen=True)
class MachineCode:
    """``codes`` by side, pruned and probed, as ``tool`` printed them.

    ``origins`` gives, for each line of each code, the line of pruned.ptx that it came from, counted from 1, None where
    that is not known; ``owners`` the probe of each line of the probed code that came from an inserted line of PTX.
    """

    tool: str
    codes: dict[str, Code]
    origins: dict[str, list[int | None]]
    owners: list[str | None]

    @cached_property
    def acting(self) -> dict[str, list[int | None]]:
        """The origins of those instructions alone that do what their line of PTX says."""
        return {side: doing(self.codes[side], self.origins[side]) for side in self.codes}

    @property
    def known(self) -> bool:
        """Is it known of any instruction from which line it came?"""
        return any(line is not None for line in self.origins["pruned"])


def missing_code(kernel: Kernel) -> str | None:
    """Why there is no machine code, or nothing to read it with."""
    absent = [name for name in FILES if kernel.file(name) is None]
    if absent:
        return kernel.reason or f"{' and '.join(absent)} of it are not in the trace: they are made by ptxas"
    return None if disassembler() is not None else f"no nvdisasm on this machine: {INSTALL_HINT}"


def read_code(kernel: Kernel, progress: Progress) -> MachineCode:
    """Both codes. Raises TraceError if one is absent or cannot be read."""
    tool = disassembler()
    if tool is None:
        raise TraceError(f"no nvdisasm on this machine: {INSTALL_HINT}")
    paths = {name.removesuffix(".bin"): kernel.file(name) for name in FILES}
    found = {side: path for side, path in paths.items() if path is not None}
    if len(found) < len(paths):
        raise TraceError(f"kernel #{kernel.index} has no {' and no '.join(paths.keys() - found.keys())}.bin any more")
    progress(0.1)
    with ThreadPoolExecutor(len(found)) as pool:  # each is a process of its own
        codes = dict(zip(found, pool.map(partial(_read, tool), found.values()), strict=True))
    progress(0.8)
    origins = {side: ptx_lines(path, codes[side]) for side, path in found.items()}
    pairs = _probed_lines(kernel) if any(origins["probed"]) else {}
    told = [None if line is None else pairs.get(line - 1) for line in origins["probed"]]
    origins["probed"] = [None if pair is None or pair.left is None else pair.left + 1 for pair in told]
    owners = with_labels([pair.owner if pair and pair.change == "added" else None for pair in told], codes["probed"])
    return MachineCode(f"{tool.path.name} {tool.version}", codes, origins, owners)


def _read(tool: Tool, path: Path) -> Code:
    """The code of a cubin; what was read lately is remembered, for whoever steps to other kernels and back."""
    try:
        return _disassembled(tool, path, path.stat().st_mtime_ns)
    except (ToolchainError, OSError) as error:
        raise TraceError(str(error)) from error


@lru_cache(maxsize=16)
def _disassembled(tool: Tool, path: Path, changed: int) -> Code:
    del changed
    return parse(disassemble(tool, path))


def _probed_lines(kernel: Kernel) -> dict[int, Pair]:
    """What each line of probed.ptx, counted from 0, stands for; empty where that is not exactly known."""
    paths = [kernel.file(name) for name in ("pruned.ptx", "probed.ptx")]
    try:
        texts = [read_lines(path) for path in paths if path is not None]
    except OSError:
        return {}
    alignment = align_probed(*texts) if len(texts) == len(paths) else None
    if alignment is None or not alignment.exact:
        return {}
    return {pair.right: pair for pair in alignment.pairs if pair.right is not None}

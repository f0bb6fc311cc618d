"""Graft probes into cubins of each architecture, and let nvdisasm read the results; needs no GPU."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.sass.corpus import ARCHITECTURES, NAMES, cubin
from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.line_tables import cut_table
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.prune import prune_cubin
from tui_probe.toolchain import Tool, disassemble, find_disassembler, find_tools, tool_architectures

PROBES: Final = ("block_sched", "gmem_sectors", "dmat", "inst_mix")
"""A probe of entries and exits, of counts, of records, and of basic blocks."""


@dataclass
class Grafts:
    """Grafts of an architecture: pairs of a kernel and a probe.

    ``grafted`` of ``tried`` were made, and nvdisasm read all of them; the others were refused. None: the tools of this
    machine do not know the architecture.
    """

    arch: int
    tried: int | None = None
    grafted: int | None = None
    tools: str = ""


def graft_architectures() -> list[Grafts]:
    """Return the grafts of all architectures. Raises ToolchainError if nvdisasm cannot read one."""
    ptxas, nvdisasm = find_tools("ptxas"), find_disassembler()
    if not ptxas or nvdisasm is None:
        return [Grafts(arch) for arch in ARCHITECTURES]
    known = tool_architectures(ptxas[0])
    grafters = [Grafter(load_probe(name), Assembler([ptxas[0]]), samples_blocks=False) for name in PROBES]
    tools = f"ptxas {ptxas[0].version}, nvdisasm {nvdisasm.version}"
    return [graft_all(arch, grafters, nvdisasm, tools) if arch in known else Grafts(arch) for arch in ARCHITECTURES]


def graft_all(arch: int, grafters: list[Grafter], nvdisasm: Tool, tools: str) -> Grafts:
    """Graft every probe into every kernel of an architecture."""
    grafts = Grafts(arch, 0, 0, tools)
    for name in NAMES:
        if not name.endswith(f".sm_{arch}"):
            continue
        for kernel in Cubin.read(cubin(name)).kernels:
            image = prune_cubin(Cubin.read(cubin(name)), kernel, cut_table)
            made = [graft for grafter in grafters if (graft := grafted(grafter, image, kernel)) is not None]
            grafts.tried = (grafts.tried or 0) + len(grafters)
            grafts.grafted = (grafts.grafted or 0) + len(made)
            for probed in made:
                require_readable(nvdisasm, probed)
    return grafts


def grafted(grafter: Grafter, image: Cubin, kernel: str) -> bytes | None:
    """Return the probed cubin, None if the kernel is refused."""
    try:
        return grafter.graft(image, kernel).probed_image
    except UnsupportedKernelError:
        return None


def require_readable(nvdisasm: Tool, probed: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probed.cubin"
        path.write_bytes(probed)
        disassemble(nvdisasm, path)

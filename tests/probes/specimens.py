"""A kernel for each built-in probe, with meaningful results on the simulated GPU.

The tests of a probe, ``tests/probes/test_NAME.py`` for the folder ``NAME``, may have a ``SPECIMEN``; without one the
probe is shown with a matrix product. So a new probe touches no list.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.probes.running import example, result_of
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.site_file import site_file
from tui_probe.probe_files.loading import built_in_files, built_in_names, load_probe
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.trace.make import TraceWriter
    from tui_probe.engine.insertion import ProbedPtx
    from tui_probe.trace.launch_shape import Dim3


@dataclass(frozen=True)
class Specimen:
    """A launch of the first kernel of a PTX text."""

    text: str
    arguments: Sequence[Any]
    grid: Dim3
    block: Dim3

    @property
    def kernel(self) -> Kernel:
        tree = parse(self.text)
        return Kernel.of(tree, tree.entries()[0].name)


def strided_store(threads: int) -> Specimen:
    """So many of 8192 threads store four bytes each, two words apart."""
    arguments = np.zeros(16384, np.uint32), np.uint32(threads)
    return Specimen(example("strided_store"), arguments, (32, 1, 1), (256, 1, 1))


ONES = np.ones((64, 64), np.float32)
MATMUL = Specimen(example("matmul"), (ONES * 0, ONES, ONES, np.int32(64)), (4, 4, 1), (16, 16, 1))


def ptx_probes() -> list[str]:
    """The names of the built-in probes that the simulated GPU runs: those that need no machine code."""
    return [name for name in built_in_names() if not load_probe(name).needs_machine_code]


def specimen_of(probe: str) -> Specimen:
    """Launches that show the probes."""
    module = f"tests.probes.test_{built_in_files()[probe].parent.name}"
    if find_spec(module) is None:
        return MATMUL
    specimen: Specimen = getattr(import_module(module), "SPECIMEN", MATMUL)
    return specimen


def add_specimen(writer: TraceWriter, index: int, probe: str, folder: Path) -> tuple[Path, ProbedPtx]:
    """Put the probe's kernel and its launch into a trace; its folder there, and what the engine made of it.

    The result is first written into ``folder``.
    """
    specimen = specimen_of(probe)
    kernel = specimen.kernel
    probed = build_probed_ptx(kernel, load_probe(probe))
    place = writer.kernel(index, f"{probe}_of_{kernel.entry.name}")
    (place / "pruned.ptx").write_text(kernel.pruned)
    (place / "kernel.info").write_text(probed.info)
    (place / "sites.json").write_text(site_file(probe, kernel, probed.notes, b""))
    grid, block = specimen.grid, specimen.block
    result = result_of(folder, probe, specimen.text, *specimen.arguments, grid=grid, block=block)
    writer.save(index, writer.launch(index, grid, block), result.path.read_bytes())
    return place, probed

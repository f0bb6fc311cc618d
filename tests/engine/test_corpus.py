"""Everything in the corpus takes block_sched and keeps its own text; an eighth of it, in turn, assembles."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import BLOCK_SCHED, CORPUS, probed_and_shared, without_insertions, words
from tests.turns import due
from tui_probe.engine.insertion import insert_probe
from tui_probe.engine.kernel import Edits, Kernel, UnusedNames
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ptx.corpus import CorpusFile
    from tui_probe.toolchain import Tool

REFUSED = {
    "calls_table": "operations holds the address of function",
    "calls_virtual": "holds the address of function",
    "indirect": "holds the address of function",
}
UNRESOLVED = {"gemm_splitk"}
"""Kernels that no assembler takes by themselves: they call functions of other translation units."""


@pytest.mark.parametrize("path", due(CORPUS), ids=lambda path: path.name)
def test_probed_kernels_assemble(path: CorpusFile, ptxas: Tool, tmp_path: Path) -> None:
    module = parse(path.read_text())
    sources = {}
    for entry in module.entries():
        try:
            text, _ = probed_and_shared(module.source, entry.name)
        except UnsupportedKernelError as error:
            assert REFUSED[entry.name] in str(error)  # noqa: PT017  which kernels are refused is part of the promise
            continue
        if entry.name not in UNRESOLVED:
            source = tmp_path / f"{len(sources)}.ptx"
            source.write_text(text)
            sources[source] = entry.name

    def assemble(source: Path) -> str:
        command = [ptxas.path, f"-arch={module.target}", source, "-o", source.with_suffix(".bin")]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    with ThreadPoolExecutor(2) as pool:
        failures = dict(zip(sources.values(), pool.map(assemble, sources), strict=True))
    assert not {name: error for name, error in failures.items() if "error" in error or "fatal" in error}


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_the_kernels_own_text_is_unchanged(path: CorpusFile) -> None:
    module = parse(path.read_text())
    for entry in module.entries():
        if entry.name in REFUSED:
            continue
        kernel = Kernel.of(module, entry.name)
        names, edits = UnusedNames(kernel.pruned), Edits(module.source)
        insert_probe(kernel, BLOCK_SCHED, names, edits)
        assert words(without_insertions(kernel.apply_edits(edits))) == words(kernel.pruned)

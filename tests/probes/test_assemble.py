"""Every built-in probe goes into every kernel of the corpus, and assembles."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import CORPUS, probed
from tests.engine.test_corpus import UNRESOLVED
from tui_probe.engine.walk import instructions
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.catalogue import describe, known_probes
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ptx.corpus import CorpusFile
    from tui_probe.engine.toolchain import Tool

PROBES = [name for name in built_in_names() if name != "block_sched"]


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_probed_kernels_assemble(file: CorpusFile, ptxas: Tool, tmp_path: Path) -> None:
    """Only kernels that call functions may be refused, and it is a function that is given as the reason."""
    module = parse(file.read_text())
    jobs = []
    for entry in module.entries():
        calls = any(instruction.opcode == "call" for instruction in instructions(entry))
        for name in PROBES:
            try:
                text = probed(module.source, entry.name, load_probe(name))
            except UnsupportedKernelError as error:
                # Which kernels are refused is part of the promise.
                assert calls, f"{name} {entry.name}: {error}"  # noqa: PT017
                assert "function" in str(error)  # noqa: PT017
                continue
            if entry.name not in UNRESOLVED:
                jobs.append((name, entry.name, text))

    def assemble(job: tuple[int, tuple[str, str, str]]) -> str:
        number, (_, _, text) = job
        source = tmp_path / f"{number}.ptx"
        source.write_text(text)
        command = [ptxas.path, "-O0", f"-arch={module.target}", source, "-o", source.with_suffix(".bin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""

    with ThreadPoolExecutor(2) as pool:
        failures = {job[:2]: error for job, error in zip(jobs, pool.map(assemble, enumerate(jobs)), strict=True)}
    assert not {job: error for job, error in failures.items() if error}


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_tells_about_itself(name: str) -> None:
    entry = describe(load_probe(name))
    assert all((entry.title, entry.measures, entry.unit, entry.cost, entry.checked, entry.records))
    assert name in [probe.name for probe in known_probes()]
    assert load_probe(name).callback == name

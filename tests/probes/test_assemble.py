"""Every built-in probe goes into every kernel of the corpus, and assembles."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import CORPUS, probed
from tests.engine.test_corpus import UNRESOLVED
from tui_probe.engine.catalogue import built_in_probes, describe
from tui_probe.engine.probe_file import built_in_names, load_probe
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.toolchain import Tool

PROBES = [name for name in built_in_names() if name != "block_sched"]
REFUSED = (
    "holds the address of function",
    "is used in function",
    "ends the kernel with exit",
    "which is called, holds",
    "which is called, has blocks of its own",
)


@pytest.mark.parametrize("name", PROBES)
def test_probed_kernels_assemble(name: str, ptxas: Tool, tmp_path: Path) -> None:
    probe, assembled, refused = load_probe(name), 0, 0
    for path in CORPUS:
        module = parse(path.read_text())
        for entry in module.entries():
            if entry.name in UNRESOLVED:
                continue
            try:
                text = probed(module.source, entry.name, probe)
            except UnsupportedKernelError as error:
                assert any(reason in str(error) for reason in REFUSED)  # noqa: PT017
                refused += 1
                continue
            source = tmp_path / "probed.ptx"
            source.write_text(text)
            command = [str(ptxas.path), f"-arch={module.target}", str(source), "-o", str(tmp_path / "probed.bin")]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{path.name} {entry.name}: {done.stderr}"
            assembled += 1
    assert assembled > 60
    assert refused < 15


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_tells_about_itself(name: str) -> None:
    entry = describe(load_probe(name))
    assert all((entry.title, entry.measures, entry.unit, entry.cost, entry.checked, entry.records))
    assert name in [probe.name for probe in built_in_probes()]
    assert load_probe(name).callback == name

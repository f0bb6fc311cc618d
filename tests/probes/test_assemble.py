"""Built-in probes go into kernels of the corpus, and assemble there: each in a third of them, or all --in-full."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import CORPUS, entry, probed
from tests.engine.test_corpus import UNRESOLVED
from tests.turns import is_due
from tui_probe.engine.kernel import function_instructions
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.choices import describe_probe, known_probes
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ptx.corpus import CorpusFile
    from tui_probe.toolchain import Tool

PROBES = [name for name in built_in_names() if name != "block_sched"]
LARGE = [file.name for file in CORPUS if len(file.read_text()) > 100_000]
"""Kernels of which ptxas takes a second for each probe: each probe is assembled whole in one of them, by turns."""

CHECKED_ALONE = ".visible .entry assembled_instead()\n{\n\tret;\n}\n"
"""ptxas checks all that a file says, and generates code only for the entries that it is asked for."""


def options_for(file: str, probe: str) -> list[str]:
    """To check every instruction alone, in large kernels where it is not this probe's turn."""
    turn = LARGE[PROBES.index(probe) % len(LARGE)]
    return [] if file not in LARGE or file == turn else ["--entry", "assembled_instead"]


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_probed_kernels_assemble(file: CorpusFile, ptxas: Tool, tmp_path: Path) -> None:
    """Only kernels that call functions may be refused, and it is a function that is given as the reason."""
    module = parse(file.read_text())
    jobs = []
    for kernel_number, kernel in enumerate(module.entries(), CORPUS.index(file)):
        calls = any(instruction.opcode == "call" for instruction in function_instructions(kernel))
        for turn, name in enumerate(PROBES, kernel_number):
            if not is_due(turn):
                continue
            try:
                text = probed(module.source, kernel.name, load_probe(name))
            except UnsupportedKernelError as error:
                # Which kernels are refused is part of the promise.
                assert calls, f"{name} {kernel.name}: {error}"  # noqa: PT017
                assert "function" in str(error)  # noqa: PT017
                continue
            if kernel.name not in UNRESOLVED:
                jobs.append((name, kernel.name, text))

    def assemble(job: tuple[int, tuple[str, str, str]]) -> str:
        number, (name, _, text) = job
        source, options = tmp_path / f"{number}.ptx", options_for(file.name, name)
        source.write_text(text + CHECKED_ALONE if options else text)
        command = [ptxas.path, "-O0", f"-arch={module.target}", *options, source, "-o", source.with_suffix(".bin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""

    with ThreadPoolExecutor(2) as pool:
        failures = {job[:2]: error for job, error in zip(jobs, pool.map(assemble, enumerate(jobs)), strict=True)}
    assert not {job: error for job, error in failures.items() if error}


@pytest.mark.parametrize(
    ("instruction", "said"),
    [("add.u32 %r1, %rd1, 1;", "Arguments mismatch"), ("add.u32 %r1, %r2, 1;", "Unknown symbol '%r2'")],
)
def test_check_only_problems_are_refused(instruction: str, said: str, ptxas: Tool, tmp_path: Path) -> None:
    source = tmp_path / "wrong.ptx"
    body = f".reg .b32 %r1;\n.reg .b64 %rd1;\n{instruction}"
    source.write_text(entry(body) + CHECKED_ALONE)
    options = ["-arch=sm_80", "--entry", "assembled_instead", "-o", tmp_path / "wrong.bin"]
    done = subprocess.run([ptxas.path, *options, source], capture_output=True, text=True, check=False)
    assert done.returncode
    assert said in done.stderr


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_tells_about_itself(name: str) -> None:
    description = describe_probe(load_probe(name))
    assert all(
        (
            description.title,
            description.measures,
            description.unit,
            description.cost,
            description.checked,
            description.records,
        )
    )
    assert name in [probe.name for probe in known_probes()]
    assert load_probe(name).callback == name

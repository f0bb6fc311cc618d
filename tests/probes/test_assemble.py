"""Built-in probes go into kernels of the corpus, and assemble there: each in an eighth of them, or all --in-full."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import CORPUS, entry, probed
from tests.engine.test_corpus import UNRESOLVED
from tests.turns import is_due
from tui_probe.engine.kernel import function_instructions
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.catalogue import describe_probe, known_probes
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ptx.corpus import CorpusFile
    from tui_probe.toolchain import Tool

PROBES = [name for name in built_in_names() if name != "block_sched"]
LARGE = [file.name for file in CORPUS if len(file.read_text()) > 100_000]
"""Kernels that take ptxas a second per probe: each probe is assembled in one of them, in turn."""

CHECKED_ALONE = ".visible .entry assembled_instead()\n{\n\tret;\n}\n"
"""ptxas checks all that a file says, and generates code only for the entries that it is asked for."""


Job = tuple[str, str, str]
"""A probe, a kernel, and the PTX of the kernel with the probe."""
DECLARED = re.compile(
    r"^(?:\.(?:visible|weak)\s+)*\.(?:(?:global|const|shared)\b[^=;\n]*?|func\b\s*(?:\([^)]*\)\s*)?)([\w$]+)\s*[\[=;(\n]",
    re.MULTILINE,
)
"""The name of a variable or a function of a module."""
CANNOT_SHARE = re.compile(r"^\s*\.section\b", re.MULTILINE)
"""Sections: only one of the files that a ptxas assembles together may have them."""
FILE_NUMBER = re.compile(r"((?:^\s*\.(?:file|loc)|\binlined_at)\s+)(\d+)", re.MULTILINE)
"""Numbers of source files, of which two that ptxas assembles together may not be the same."""


def batches(file: str, jobs: list[Job]) -> list[tuple[list[str], list[Job]]]:
    """Return the jobs of each start of ptxas, which takes as long as to assemble a small kernel, with its options."""
    grouped: dict[tuple[str, ...], list[Job]] = {}
    for number, job in enumerate(jobs):
        group = [str(number)] if CANNOT_SHARE.search(job[2]) else []
        grouped.setdefault((*options_for(file, job[0]), *group), []).append(job)
    return [(options_for(file, batch[0][0]), batch) for batch in grouped.values()]


def with_own_names(job: Job, number: int) -> str:
    """The PTX of a job, with names for the kernel and what its module declares that no other job's has."""
    _, kernel, text = job
    own_name = re.sub(rf"(\.entry\s+){re.escape(kernel)}(?![\w$])", rf"\g<1>kernel_{number}", text)
    assert own_name != text, f"no entry {kernel}"
    own_name = FILE_NUMBER.sub(lambda match: f"{match[1]}{number + 1}{match[2]:0>3}", own_name)
    names = sorted(map(re.escape, set(DECLARED.findall(own_name))))
    return re.sub(rf"(?<![\w$%.])({'|'.join(names)})(?![\w$.])", rf"\g<1>_{number}", own_name) if names else own_name


def assembly_error(ptxas: Tool, options: list[str], batch: list[Job], folder: Path) -> str:
    """Assemble the jobs together, each kernel under a name of its own. Returns what ptxas refuses, "" for nothing."""
    sources = [folder / f"{job[0]}.{number}.ptx" for number, job in enumerate(batch)]
    for number, (source, job) in enumerate(zip(sources, batch, strict=True)):
        own_names = with_own_names(job, number)
        source.write_text(own_names + CHECKED_ALONE if options[1:] and not number else own_names)
    command = [ptxas.path, "-O0", *options, *sources, "-o", folder / "assembled.bin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def options_for(file: str, probe: str) -> list[str]:
    """To check every instruction by itself, in large kernels where it is not this probe's turn.

    The turns give the probes with most code, ``dmat`` and ``gmem_sectors``, the kernels that have few places for it.
    """
    turn = LARGE[(PROBES.index(probe) + 1) % len(LARGE)]
    return [] if file not in LARGE or file == turn else ["--entry", "assembled_instead"]


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_probed_kernels_assemble(file: CorpusFile, ptxas: Tool, tmp_path: Path) -> None:
    """Only kernels that call functions may be refused, with a function as the reason, or those that cannot hang."""
    module = parse(file.read_text())
    jobs: list[Job] = []
    for kernel_number, kernel in enumerate(module.entries(), CORPUS.index(file)):
        calls = any(instruction.opcode == "call" for instruction in function_instructions(kernel))
        for turn, name in enumerate(PROBES, kernel_number):
            if not is_due(turn):
                continue
            try:
                text = probed(module.source, kernel.name, load_probe(name))
            except UnsupportedKernelError as error:
                # Which kernels are refused is part of the promise.
                assert calls or "the kernel has no waits" in str(error), f"{name} {kernel.name}: {error}"  # noqa: PT017
                assert re.search("function|the kernel has no waits", str(error))  # noqa: PT017
                continue
            if kernel.name not in UNRESOLVED:
                jobs.append((name, kernel.name, text))

    failures = [
        error
        for options, batch in batches(file.name, jobs)
        if (error := assembly_error(ptxas, [f"-arch={module.target}", *options], batch, tmp_path))
    ]
    assert not failures


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

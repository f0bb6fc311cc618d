"""Registers that probes add to the kernels of a corpus, from the assembler only: percentiles, spills, resident blocks.

``python -m tests.bench.probe_cost --corpus DIRECTORY`` prints the table; DIRECTORY is what
``python -m tests.bench.ptx_corpus DIRECTORY`` made. What is assembled is remembered there, by content. Values are in
``tui-probe help measured``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from tests.bench.cost_tables import markdown
from tui_probe.engine.assembler import Assembler, AssemblyReport
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.probed_forms import FormChooser, KernelForm, largest_block, max_registers_for
from tui_probe.errors import ProbeError, ToolchainError
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.parser import parse
from tui_probe.toolchain import Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probe_model.probe import Probe

INSTRUCTION_BYTES = 16
PLAIN = KernelForm()
NO_TOOL = Tool(Path(), (0, 0), "")


@dataclass(frozen=True)
class Assembled:
    """Resources of an assembled text; ``spilled`` are bytes of a thread, stores and loads together."""

    registers: int
    spilled: int
    instructions: int
    output: str = ""

    @property
    def report(self) -> AssemblyReport:
        """As the engine has it."""
        code = self.instructions * INSTRUCTION_BYTES
        return AssemblyReport("", self.output, self.registers, self.spilled, 0, None, None, 0.0, NO_TOOL, code)


@dataclass(frozen=True)
class RegisterCost:
    """One kernel with one probe. ``reason`` is why there is no ``after``."""

    kernel: str
    probe: str
    before: Assembled | None
    after: Assembled | None
    reason: str = ""
    form: KernelForm = PLAIN
    threads: int = 0
    """Threads of the largest block that the kernel can be launched with, if its text says so."""

    @property
    def no_longer_fits(self) -> bool:
        """True if that block has enough registers only without the probe."""
        most = max_registers_for(self.threads)
        return bool(self.before and self.after and self.before.registers <= most < self.after.registers)

    @property
    def added(self) -> int:
        """Registers that the probe adds to a thread."""
        assert self.before
        assert self.after
        return self.after.registers - self.before.registers


class Measuring:
    """Assembles the kernels of a corpus, and remembers what came out."""

    def __init__(self, directory: Path, arch: str) -> None:
        index = json.loads((directory / "index.json").read_text())
        os.environ["CUDA_HOME"] = index["toolkit"]
        self._memory = directory / "assembled.json"
        self._known: dict[str, dict[str, Any]] = json.loads(self._memory.read_text()) if self._memory.exists() else {}
        self._files = [(directory / "kernels" / entry["file"], entry["kernel"]) for entry in index["kernels"]]
        self._arch = arch
        self._assembler = Assembler()
        self._tool = self._assembler.tools()[0].version
        self._lock = Lock()

    def rows(self, probes: Sequence[str]) -> list[RegisterCost]:
        """Every kernel with every probe, kernel by kernel."""
        chosen = [load_probe(name) for name in probes]
        with ThreadPoolExecutor(2) as pool:
            of_kernels = pool.map(lambda file: self._rows(file[0], file[1], chosen), self._files)
            rows_ = [row for rows in of_kernels for row in rows]
        self._memory.write_text(json.dumps(self._known))
        return rows_

    def _rows(self, path: Path, name: str, probes: Sequence[Probe]) -> list[RegisterCost]:
        text = path.read_text()
        try:
            before = self._assembled(text, name)
        except ProbeError as error:
            return [RegisterCost(path.stem, probe.name, None, None, first_line(error)) for probe in probes]
        kernel = Kernel.of(parse(text), name)
        return [self._row(path.stem, kernel, before, probe) for probe in probes]

    def _row(self, stem: str, kernel: Kernel, before: Assembled, probe: Probe) -> RegisterCost:
        def assembled(form: KernelForm) -> Assembled:
            formed = probe.lean_form() if form.is_lean else probe
            made = build_probed_ptx(kernel, formed, max_registers=form.register_limit)
            return self._assembled(made.ptx, kernel.entry.name)

        def tried(form: KernelForm) -> AssemblyReport | ToolchainError:
            try:
                return assembled(form).report
            except ToolchainError as error:
                return error

        try:
            chosen = (
                FormChooser(kernel, probe, 0, tried).choose(before.report, assembled(KernelForm()).report).trial.form
            )
            return RegisterCost(stem, probe.name, before, assembled(chosen), "", chosen, largest_block(kernel))
        except ProbeError as error:
            return RegisterCost(stem, probe.name, before, None, first_line(error))

    def _assembled(self, text: str, entry: str) -> Assembled:
        key = hashlib.sha256(f"{self._tool} {self._arch}\n{text}".encode()).hexdigest()
        if key not in self._known:
            made = self._assemble(text, entry)
            with self._lock:
                self._known[key] = asdict(made)
        return Assembled(**self._known[key])

    def _assemble(self, text: str, entry: str) -> Assembled:
        with tempfile.TemporaryDirectory() as folder:
            source, binary = Path(folder) / "kernel.ptx", Path(folder) / "kernel.bin"
            source.write_text(text)
            report = self._assembler.assemble(source, binary, self._arch, entry)
        assert report.registers is not None, report.output
        assert report.code_bytes is not None
        spilled = (report.spill_store_bytes or 0) + (report.spill_load_bytes or 0)
        return Assembled(report.registers, spilled, report.code_bytes // INSTRUCTION_BYTES, report.output)


def first_line(error: ProbeError) -> str:
    return str(error).partition("\n")[0]


def percentile(values: Sequence[int], share: float) -> int:
    """The smallest of the values that so large a share of them do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share / 100) - 1)]


def register_table(rows: Sequence[RegisterCost]) -> str:
    """One line for each probe."""
    head = [
        "probe",
        "kernels",
        "refused",
        "added p50",
        "p95",
        "max",
        "spill",
        "no longer fit",
        "limited",
        "lean",
        "instructions",
    ]
    lines = []
    for probe in dict.fromkeys(row.probe for row in rows):
        mine = [row for row in rows if row.probe == probe]
        done = [row for row in mine if row.before and row.after]
        if done:
            lines.append([probe, str(len(done)), str(len(mine) - len(done)), *summary_cells(done)])
    return markdown([*head, ""], [[*line, ""] for line in lines])


def summary_cells(rows: Sequence[RegisterCost]) -> list[str]:
    """Percentiles of added registers; kernels that spill, and blocks that no longer fit, which was not so before; the
    forms that were taken; how many times the instructions there are, in the middle of the kernels.
    """
    added = [row.added for row in rows]
    pairs = [(row.before, row.after) for row in rows if row.before and row.after]
    spill = sum(not before.spilled and bool(after.spilled) for before, after in pairs)
    unfit = sum(row.no_longer_fits for row in rows)
    limited = sum(bool(row.form.register_limit) and not row.form.is_lean for row in rows)
    lean = sum(row.form.is_lean for row in rows)
    grown = percentile([round(100 * after.instructions / before.instructions) for before, after in pairs], 50)
    numbers = [f"{percentile(added, 50):+d}", f"{percentile(added, 95):+d}", f"{max(added):+d}"]
    return [*numbers, str(spill), str(unfit), str(limited), str(lean), f"{grown / 100:.2f} ×"]


def refusals(rows: Sequence[RegisterCost]) -> str:
    """Reasons of unprobed kernels, the most frequent first."""
    counts = Counter((row.probe, row.reason) for row in rows if row.reason)
    return "\n".join(f"{number} × {probe}: {reason}" for (probe, reason), number in counts.most_common(20))

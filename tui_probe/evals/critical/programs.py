"""What was given, by program: its files of ncu, its traces, and the tensor that it writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.errors import ImportFileError
from tui_probe.nsight.analysis.critical import data_type
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.pages.critical_page import critical_page
from tui_probe.nsight.pages.from_traces import figures_of_traces
from tui_probe.nsight.pages.sectors_page import sector_rows

from .collect import TENSORS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.evals.given import Given
    from tui_probe.nsight.analysis.kernel_figures import KernelFigures
    from tui_probe.nsight.analysis.sectors import Tensor
    from tui_probe.nsight.pages.critical_rows import CriticalRow
    from tui_probe.nsight.pages.sectors_page import SectorRow
    from tui_probe.trace.model import Trace


@dataclass
class Program:
    """One program. ``sectors`` and ``kernels`` are rows of the pages of the same names, after ``read``."""

    name: str
    files: list[Path] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    sectors: list[SectorRow] = field(default_factory=list)
    kernels: list[CriticalRow] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def tensor(self) -> Tensor | None:
        """What it should write, where that is known."""
        return TENSORS.get(self.name)

    @property
    def critical(self) -> KernelFigures | None:
        """The critical kernel, by ncu where there is one."""
        return next((row.figures for row in self.kernels if row.is_critical), None)

    @property
    def data_type(self) -> str | None:
        """That of the critical kernel, as far as it can be told."""
        found = None if self.critical is None else data_type(self.critical)
        return None if found is None else found.name

    @property
    def stores_counted(self) -> bool:
        """Whether the counts hold the stores of the critical kernel. It writes a tensor, so none at all were missed."""
        return self.critical is not None and bool(self.critical.store_sectors)

    def read(self) -> None:
        """Read the files; one that cannot be read is a note."""
        try:
            table = read_ncu(self.files) if self.files else None
        except ImportFileError as error:
            self.notes.append(str(error))
            table = None
        probed = figures_of_traces(self.traces)
        if self.traces and not probed:
            self.notes.append(f"{self.name}: the probe counted nothing: {_why(self.traces)}")
        if table is None and not probed:
            return
        self.sectors = sector_rows(table, probed, self.tensor)
        page = critical_page(table, (), probed=probed, tensor=self.tensor)
        self.kernels = list(page.rows)
        self.found = [*page.words.found, *page.words.evidence]
        self.notes += page.words.notes
        if self.tensor is not None and self.critical is not None and not self.stores_counted:
            self.notes.append(
                f"{self.name}: no store of the critical kernel was counted, so it probably stores in bulk, by a copy"
                " unit (TMA): these counters are of load and store instructions"
            )


def _why(traces: Sequence[Trace]) -> str:
    """Why nothing of them was probed."""
    reasons = (one.reason or one.status for trace in traces for one in trace.kernels)
    return "; ".join(dict.fromkeys(reasons)) or "no kernel was launched"


def programs_of(given: Sequence[Given]) -> list[Program]:
    """``NAME-probes`` and ``NAME-ncu.csv`` are of one program, as every other trace and file is of its own."""
    programs: dict[str, Program] = {}
    for one in given:
        name = one.label.removesuffix(".csv").removesuffix("-ncu").removesuffix("-probes")
        program = programs.setdefault(name, Program(name))
        if one.trace is None:
            program.files.append(one.path)
        else:
            program.traces.append(one.trace)
    return list(programs.values())

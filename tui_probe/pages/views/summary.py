"""Page ``summary``: status, findings, cost and open questions of a kernel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.charts import SHARES, distribution_line, percentile_heading, percentiles
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import pad, wrap
from tui_probe.draw.table import as_record, in_data
from tui_probe.draw.view import Document
from tui_probe.input_limits import PTX_TEXT
from tui_probe.pages.code.kernel_sass import has_only_sass
from tui_probe.pages.findings_page import (
    kernel_finding_lines,
    limiter_lines,
    open_questions,
    question_lines,
    rerun_command,
)
from tui_probe.pages.kernel_detail import LABEL_CELLS, TWO_COLUMN_CELLS, detail_lines
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.probekit.record_counts import status_word
from tui_probe.probekit.result_tables import PAIR_RATIO_LABEL
from tui_probe.trace.plain_file import read_within
from tui_probe.verdicts.finding_summary import ranked_results
from tui_probe.verdicts.findings import findings_by_probe
from tui_probe.verdicts.kernel_columns import KERNEL_COLUMNS, before_after_text
from tui_probe.verdicts.kernel_snapshot import kernel_snapshot
from tui_probe.verdicts.limiter import kernel_limiter, limiter_summary
from tui_probe.verdicts.probe_coverage import unmeasured_probes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import KernelFacts

_SOURCE_FILES: Final = re.compile(rb'^\s*\.file\s+\d+\s+"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_MAX_SOURCES: Final = 3


class Summary(Document):
    """The values of a kernel as they were when it was opened."""

    def __init__(self, source: ViewSource) -> None:
        kernel = source.kernel
        self.title = f"Summary of {kernel.demangled}"
        self.kernel = kernel
        self.row = kernel_snapshot(kernel, source.trace.state.device)
        self.simulated = source.trace.state.simulated
        self.launch_number = None if source.launch is None else source.launch.number
        self.sources = source_files(kernel)
        self.probes = [probed for probed in kernel.by_probe() if probed.probe]
        self.times = {} if self.simulated else benchmark_times(kernel)
        self.results = ranked_results(findings_by_probe(source))
        self.limited = kernel_limiter(kernel)
        self.limit_words = limiter_summary(kernel, self.limited)
        self.questions = open_questions(kernel, self.results)
        self.command = rerun_command(source.trace)
        self.machine_code = has_only_sass(kernel)
        self.keys: Mapping[str, str] = {}

    def name_keys(self, keys: Mapping[str, str]) -> None:
        self.keys = keys

    def lines(self, width: int) -> Sequence[Line]:
        """Return the page; in two columns where it is wide."""
        findings = kernel_finding_lines(self.results, width, self.keys, self.launch_number)
        limit = list(limiter_lines(self.limit_words, width))
        lines_below = self._lower_lines(width if width < TWO_COLUMN_CELLS else width // 2 - 1)
        return detail_lines(self.row, width, lines_below, findings, self._question_lines, limit)

    def status(self) -> list[str]:
        """Point to the SASS, since the text about it may be far above."""
        return ["no PTX: see SASS"] if self.machine_code else super().status()

    def target_view(self) -> str:
        """Return the machine code, of a kernel that has no PTX."""
        return "sass" if self.machine_code else ""

    def _question_lines(self, width: int) -> list[Line]:
        key = "R, or" if self.keys else ""  # only a screen has keys
        return question_lines(self.questions, self.command, width, key)

    def _probe_lines(self, width: int) -> list[Line]:
        """Status of the kernel with each of several probes; those of one probed kernel share a line."""
        groups: dict[str, list[str]] = {}
        reasons = []
        for probed_kernel in self.probes:
            name = str(probed_kernel.probe)
            groups.setdefault(_probe_facts(probed_kernel), []).append(name)
            missing_reasons = (
                probe.reason for probe in unmeasured_probes(probed_kernel) if probe.probe == probed_kernel.probe
            )
            if reason := probed_kernel.reason or next(missing_reasons, None):
                reasons.append((name, reason))
        texts = [f"{', '.join(names)}: {facts}" for facts, names in groups.items()]
        if len(self.probes) > 1 and len(reasons) == len(self.probes) and len({reason for _, reason in reasons}) == 1:
            texts.append(reasons[0][1])
        else:
            texts += [reason if reason.startswith(name) else f"{name}: {reason}" for name, reason in reasons]
        parts = [
            (part if not place else f"  {part}")
            for text in texts
            for place, part in enumerate(wrap(printable(text), max(20, width - LABEL_CELLS - 2)))
        ]
        lines: list[Line] = [
            ((" " + pad("" if row else "probes", LABEL_CELLS), "dim"), (part, "")) for row, part in enumerate(parts)
        ]
        return [*lines, ()] if lines else []

    def _lower_lines(self, width: int) -> list[Line]:
        lines = self._probe_lines(width)
        if self.machine_code:
            page = f"page {self.keys['sass']}" if "sass" in self.keys else "the page SASS"
            lines += [
                ((" " + pad("SASS", LABEL_CELLS), "dim"), (f"no PTX: {page} shows the code", "note")),
                (),
            ]
        for number, name in enumerate(self.sources[:_MAX_SOURCES]):
            lines.append(((" " + pad("" if number else "source", LABEL_CELLS), "dim"), (printable(name), "")))
        if self.sources:
            lines.append(())
        if self.times:
            lines.append(percentile_heading())
        for label, values in self.times.items():
            title, format_value = (PAIR_RATIO_LABEL, _ratio_text) if label == "slowdown" else (label, _milliseconds)
            lines.append(distribution_line(title, values, format_value))
        if not self.times and self.row.gpu_time is None and self.row.status == "probed":
            reason = "no times on a simulated GPU" if self.simulated else "not measured: run with --benchmark"
            lines.append(((" " + pad("time", LABEL_CELLS), "dim"), (f"{units.NOT_MEASURED} {reason}", "dim")))
        return lines

    def record(self) -> dict[str, Any]:
        """Return the fields of the report, the source files, and the percentiles of what was measured."""
        shares = [f"p{share}" for share in SHARES]
        distributions = {
            label.replace(" ", "_"): {"count": len(values), **dict(zip(shares, percentiles(values) or [], strict=True))}
            for label, values in self.times.items()
        }
        return {
            **as_record(KERNEL_COLUMNS, self.kernel),
            "source_files": self.sources,
            "distributions": distributions,
            "found": self.results[0].record() if self.results else None,
            **({"found_by_probe": [result.record() for result in self.results]} if len(self.results) > 1 else {}),
            "open_questions": [question.record() for question in self.questions],
            "limited_by": None if self.limited is None else self.limited.record(),
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per field."""
        yield "field", "value"
        for column in in_data(KERNEL_COLUMNS):
            if column.value is not None:
                yield column.key, column.value(self.kernel)
        for label, values in self.times.items():
            for share, value in zip(SHARES, percentiles(values) or [], strict=True):
                yield f"{label.replace(' ', '_')}_p{share}", value


def _probe_facts(probed_kernel: KernelFacts) -> str:
    """Return ``probed, 6 results, registers 12→30, 2.20× slowdown``."""
    results = len(probed_kernel.result_rows)
    parts = [status_word(probed_kernel.status, probed_kernel.launches, probed_kernel.launches_probed, results)]
    if results:
        parts.append(units.counted(results, "result"))
    if probed_kernel.status == "probed":
        parts.append(f"registers {before_after_text(probed_kernel.registers_pruned, probed_kernel.registers_probed)}")
    if probed_kernel.slowdown is not None:
        parts.append(f"{probed_kernel.slowdown:.2f}× slowdown")
    return ", ".join(parts)


def benchmark_times(kernel: KernelFacts) -> dict[str, list[float]]:
    """Return the benchmark of a kernel's launches: times in ms and the slowdown."""
    columns = {
        "original": kernel.times.originals_ms,
        "probed": kernel.times.probed_ms,
        "slowdown": kernel.times.impacts,
    }
    return {label: list(values) for label, values in columns.items() if values}


def source_files(kernel: KernelFacts) -> list[str]:
    """Return the source files that the kernel's PTX names, in its order."""
    path = kernel.file("pruned.ptx") or kernel.file("original.ptx")
    if path is None or path.stat().st_size > PTX_TEXT.maximum:
        return []
    names = (name.decode("utf-8", "replace") for name in _SOURCE_FILES.findall(read_within(path, PTX_TEXT)))
    return list(dict.fromkeys(names))


def _ratio_text(value: float) -> str:
    return f"{value:.3f}×"


def _milliseconds(value: float) -> str:
    return units.duration(value / 1e3)


def _open_view(source: ViewSource, progress: Progress) -> Summary:
    progress(0.0)
    return Summary(source)


KIND: Final = ViewKind(
    "summary",
    "Summary",
    "findings, overhead of the probe, reason if the kernel was not probed, further questions",
    lambda _: None,
    _open_view,
    explanation=(
        "The page begins with the limiter of the kernel and the utilization of the units. Findings follow, sorted by"
        " possible gain. Each finding names the page with its details; “!” marks findings that cost time. The page"
        " ends with questions that another run can answer, and with the cost of the probe in registers, spills and"
        " occupancy.",
        "“Original” is the unchanged kernel, “probed” is the kernel with the probe. “–” means not measured. Slowdown"
        " is probed time divided by original time. With --benchmark, slowdown is the median of this ratio over pairs"
        " of launches. The median of ratios usually differs from the ratio of medians. Without --benchmark, slowdown"
        " is the ratio of mean times.",
    ),
    order=0,
    short_title="Sum",
    grows=True,
    all_probes=True,
)

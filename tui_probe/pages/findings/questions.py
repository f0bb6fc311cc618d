"""What to ask next: which built-in probe answers which question, of those that a kernel's probe leaves open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.pages.views import NAMES, kind_of
from tui_probe.probekit import probe_results

if TYPE_CHECKING:
    from tui_probe.pages.findings.found import Found
    from tui_probe.trace.model import Kernel

_LARGEST: Final = 16 << 20
"""Bytes of PTX that are looked through; of longer text every question is asked."""


@dataclass(frozen=True, slots=True)
class Question:
    """``option`` of ``tui-probe run`` answers it; so do results of the probes ``also``.

    ``needs`` is a regular expression that occurs in the PTX of the kernels for which the question means something.
    """

    words: str
    option: str
    also: tuple[str, ...] = ()
    needs: str = ""

    @property
    def probe(self) -> str:
        """The probe, "" where it is another option."""
        return self.option.removeprefix("-p ") if self.option.startswith("-p ") else ""

    @property
    def pages(self) -> tuple[str, ...]:
        """The titles of the views that open with results of the probe."""
        kinds = [kind_of(name) for name in NAMES] if self.probe else []
        return tuple(kind.title for kind in kinds if self.probe in kind.probes)

    def record(self) -> dict[str, Any]:
        """As data."""
        return {"question": self.words, "option": self.option, "pages": list(self.pages)}


QUESTIONS: Final = (
    Question("where does the time go: blocks, gaps, a tail?", "-p block_sched", ("warp_progress",)),
    Question("which accesses are not coalesced?", "-p gmem_sectors_by_line", ("dmat",), r"\b(ld|st)\.[a-z.:]*global"),
    Question("which warps fall behind, and in which loop?", "-p warp_progress"),
    Question("which part of the code takes the time?", "-p program_progress"),
    Question("at which barrier do warps wait, how long?", "-p barrier_wait_by_line", (), r"\b(bar|barrier)\."),
    Question(
        "which accesses conflict in shared memory?", "-p smem_conflicts_by_line", (), r"\b(ld|st)\.[a-z.:]*shared"
    ),
    Question("how much do the tensor cores do, and where?", "-p tensorop_count_by_line", ("tensorop_count",), r"mma"),
    Question("where are lanes of a warp idle?", "-p divergence_by_line", (), r"@|\bbra\b"),
    Question("how many bytes does it move?", "-p gmem_bytes", ("gmem_bytes_by_line",)),
    Question("which addresses, when, and by whom?", "-p dmat", ("dmat_compact",)),
    Question("which kinds of instructions, of which type?", "-p inst_mix", ("inst_mix_by_line",)),
    Question("where does the first NaN come from?", "-p nan_check", (), r"\.(b?f16|f32|f64)\b"),
    Question("what does the probe cost?", "--benchmark"),
)
"""Most asked first. Each begins a line of the summary page while nothing in the trace answers it."""


def open_questions(kernel: Kernel, found: Found | None) -> list[Question]:
    """Those that mean something for a probed kernel and that its results do not answer.

    First come those that the findings lead to.
    """
    if kernel.status != "probed":
        return []
    asked = [finding.asks for finding in found.findings if finding.asks] if found else []
    probe, text = probe_results.probe_of(kernel), _text(kernel)
    left = [
        each for each in QUESTIONS if _is_open(each, kernel, probe) and (text is None or re.search(each.needs, text))
    ]
    return sorted(left, key=lambda each: asked.index(each.probe) if each.probe in asked else len(asked))


def _is_open(question: Question, kernel: Kernel, probe: str | None) -> bool:
    if question.option == "--benchmark":
        return not kernel.times.impacts and not kernel.trace.state.simulated
    return probe is None or probe not in (question.probe, *question.also)


def _text(kernel: Kernel) -> str | None:
    path = kernel.file("pruned.ptx")
    if path is None or path.stat().st_size > _LARGEST:
        return None
    return path.read_text("utf-8", "replace")

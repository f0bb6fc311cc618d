"""What to ask next: which built-in probe answers which question, of those that a kernel's probe leaves open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tui_probe.input_limits import PTX_TEXT
from tui_probe.pages.views import kinds
from tui_probe.probekit import probe_results
from tui_probe.probekit.registry import all_probes, probe_named
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.pages.findings.found import Found
    from tui_probe.probekit.probe import Probe
    from tui_probe.trace.model import Kernel


@dataclass(frozen=True, slots=True)
class Question:
    """``option`` of ``tui-probe run`` answers it. ``key`` is what findings call it by, "" if none does.

    ``needs`` is a regular expression that occurs in the PTX of the kernels for which the question means something.
    """

    words: str
    option: str
    key: str = ""
    needs: str = ""
    also: str = ""
    """More words by which people look for it."""

    @property
    def probe(self) -> str:
        """The probe, "" where it is another option."""
        return self.option.removeprefix("-p ") if self.option.startswith("-p ") else ""

    @property
    def pages(self) -> tuple[str, ...]:
        """The titles of the views that open with results of the probe."""
        return tuple(kind.title for kind in kinds() if self.probe in kind.probes) if self.probe else ()

    def record(self) -> dict[str, Any]:
        """As data."""
        return {"question": self.words, "option": self.option, "pages": list(self.pages)}


COST: Final = Question("what does the probe cost?", "--benchmark")


@cache
def questions() -> tuple[Question, ...]:
    """All, the one asked most first. Each is a line of the summary while nothing in the trace answers it."""
    asked = [(probe.question, probe.name) for probe in all_probes() if probe.question is not None]
    return (*(Question(each.words, f"-p {name}", each.key, each.needs, each.also) for each, name in asked), COST)


def open_questions(kernel: Kernel, found: Sequence[Found]) -> list[Question]:
    """Those that mean something for a probed kernel and that its results do not answer, those of any probe.

    First come those that the findings lead to.
    """
    if kernel.status != "probed":
        return []
    asked = [finding.asks for each in found for finding in each.findings if finding.asks]
    probes = (probe_named(probe_results.probe_of(one)) for one in kernel.by_probe() if one.status == "probed")
    answered, text = set().union(*map(_answered, probes)), _text(kernel)
    left = [each for each in questions() if _is_open(each, kernel, answered) and _is_meant(each, text)]
    return sorted(left, key=lambda each: asked.index(each.key) if each.key in asked else len(asked))


def _answered(probe: Probe | None) -> set[str]:
    """Keys of the questions that the results of a probe answer."""
    if probe is None:
        return set()
    return {*probe.answers, *((probe.question.key,) if probe.question else ())}


def _is_open(question: Question, kernel: Kernel, answered: set[str]) -> bool:
    if question is COST:
        return not kernel.times.impacts and not kernel.trace.state.simulated
    return question.key not in answered


def _is_meant(question: Question, text: str | None) -> bool:
    return text is None or re.search(question.needs, text) is not None


def _text(kernel: Kernel) -> str | None:
    path = kernel.file("pruned.ptx")
    if path is None or path.stat().st_size > PTX_TEXT.most:
        return None
    return read_within(path, PTX_TEXT).decode("utf-8", "replace")

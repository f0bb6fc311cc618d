"""What the probe measured, one line per result, in the order in which results were saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw.table import safe
from tui_probe.probekit.measured import measured, name_of_probe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class ResultLine:
    """One result: its launch, its kernel (None if the log does not say), and what it says."""

    launch: str
    kernel: int | None
    words: str
    failed: bool = False


def result_lines(trace: Trace, first: int, last: int) -> Iterator[ResultLine]:
    """The results ``first`` to before ``last``. Reads each file."""
    for row in range(first, last):
        launch = trace.results.launch(row)
        kernel = None if launch is None else trace.kernels.get(trace.launches[launch].kernel)
        name = f"result/{trace.results.name(row)}"
        if kernel is None:
            yield ResultLine(name, None, "the log does not say of which launch", failed=True)
            continue
        result = measured(trace, kernel, row)
        probe = f"{safe(name_of_probe(result.kernel))}: " if kernel.probings else ""
        words = probe + result.words.replace(f"{trace.directory}/", "")
        yield ResultLine(result.label, kernel.index, words, failed=result.analysis is None)

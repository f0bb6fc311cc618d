"""What a probe measured of each launch of a kernel, as a table: for every probe, known here or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.count_table import CountTable
from tui_probe.probekit.kind import Kind
from tui_probe.probekit.missing import not_known

if TYPE_CHECKING:
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source


def _missing(source: Source) -> str | None:
    kernel, launch = source.kernel, source.launch
    if kernel.status in ("skipped", "failed", "excluded"):
        return f"the kernel was not probed: {kernel.reason or kernel.status}"
    if launch is not None and launch.result is None:
        return f"launch {launch.number} has no result: {launch.reason or 'it was not saved'}"
    return None if kernel.result_rows else "no result was saved yet"


def _open(source: Source, progress: Progress) -> CountTable:
    unknown = not_known(source.kernel)
    return CountTable(source, "Results", progress, [] if unknown is None else [unknown])


KIND: Final = Kind(
    "results",
    "Results",
    "what the probe measured of each launch, whatever the probe",
    _missing,
    _open,
    explanation=(
        "One row per launch, one column per figure. Of a probe that is not installed, each map is shown by itself: how"
        " many records it kept, and the least and the most of each field, or its sum where lanes add to it.",
    ),
    order=95,
    short="Res",
    grows=True,
)

"""Pictures of a run: ``run --png`` writes one per trace."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tui_probe.errors import ProbeError
from tui_probe.trace.locate import Address

from .output import ExitStatus
from .run_display import report_message, stderr_is_terminal
from .show import write_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.pages.page_registry import PageEntry


def write_pictures(traces: Sequence[Path], probes: Sequence[str]) -> None:
    """Write a picture per trace in which a view of the probes has something to show; print the paths, a line each.

    A failure does not change the run's exit status.
    """
    for trace in traces:
        for page in _drawn_pages(probes):
            try:
                status = write_page(page, Address(trace), _picture_arguments(page, trace))
            except (ProbeError, OSError) as error:
                report_message(trace, f"no picture of {page.name}: {error}")
                continue
            if status == ExitStatus.OK:
                break
        else:
            report_message(trace, "no picture: the pages have no data")


def _drawn_pages(probes: Sequence[str]) -> Iterator[PageEntry]:
    """Yield the views that only these probes have, then those that all share and that are drawn."""
    from tui_probe.pages.page_registry import require_page
    from tui_probe.probekit.registry import probe_named

    known = [probe for name in probes if (probe := probe_named(name)) is not None]
    names = [view.name for probe in known for view in probe.views]
    if any(probe.timeline for probe in known):
        names.append("timeline")
    return (require_page(name) for name in dict.fromkeys([*names, "summary"]))


def _picture_arguments(page: PageEntry, trace: Path) -> Namespace:
    return Namespace(
        page=page.name, png=trace / f"{page.name}.png", perfetto=None, svg=None, do="", ascii=False, width=None,
        height=None, format="text", quiet=not stderr_is_terminal(),
    )  # fmt: skip

"""``tui-probe run --png``: the picture of what the probe recorded, in the place of a report."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tui_probe.errors import ProbeError
from tui_probe.trace.address import Address

from .messages import on_person, tell_of
from .page import write_page
from .status import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.pages.registry import Page


def write_pictures(traces: Sequence[Path], probes: Sequence[str]) -> None:
    """One for each trace in which a view of the probes has something to show; stdout has the paths, a line each.

    What goes wrong here does not change the run's exit status.
    """
    for trace in traces:
        for page in _pages_of(probes):
            try:
                status = write_page(page, Address(trace), _arguments(page, trace))
            except (ProbeError, OSError) as error:
                tell_of(trace, f"no picture of {page.name}: {error}")
                continue
            if status == ExitStatus.OK:
                break
        else:
            tell_of(trace, "no picture: none of its pages has anything to show")


def _pages_of(probes: Sequence[str]) -> Iterator[Page]:
    """The views that only these probes have, then those that all share and that are drawn."""
    from tui_probe.pages.registry import page_named
    from tui_probe.probekit.registry import probe_named

    known = [probe for name in probes if (probe := probe_named(name)) is not None]
    names = [view.name for probe in known for view in probe.views]
    if any(probe.timeline for probe in known):
        names.append("timeline")
    return (page_named(name, {}) for name in dict.fromkeys([*names, "summary"]))


def _arguments(page: Page, trace: Path) -> Namespace:
    return Namespace(
        page=page.name, png=trace / f"{page.name}.png", perfetto=None, svg=None, do="", ascii=False, width=None,
        height=None, format="text", quiet=not on_person(),
    )  # fmt: skip

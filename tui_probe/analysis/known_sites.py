"""What is known of the instructions that a probe was at, by line of ``pruned.ptx``.

The engine wrote it down while it put the probe in; in traces of older versions ``pruned.ptx`` tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tui_probe.analysis.older_sites import OlderSites
from tui_probe.trace.sites import read_sites

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tui_probe.trace.sites import ProbeSites, Site, SiteInstruction
    from tui_probe.trace.source_lines import SourceLine


class KnownSites(Protocol):
    """Lines are those of ``pruned.ptx``, counted from 1. What is not known is None or left out."""

    def instructions(self) -> Sequence[SiteInstruction]:
        """At least those that the probe was at, in the order of the text."""

    def blocks(self, lines: Sequence[int]) -> Sequence[Sequence[SiteInstruction]]:
        """The basic blocks that a map has records for; ``lines`` are those of their first instructions, in order.

        Nothing if the blocks that are known are others.
        """

    def unchecked(self) -> Sequence[SiteInstruction]:
        """The stores whose values are of no known type, though they may store numbers, in the order of the text."""

    def ptx_line(self, line: int) -> SourceLine | None:
        """The source of an instruction that the probe was at."""

    def following(self, line: int) -> SourceLine | None:
        """The source of a block or loop that the probe was at: of the first line from its own on that has one."""


def sites_of(folder: Path | None) -> KnownSites:
    """Of a kernel's folder in a trace, None for none. TraceError if its ``sites.json`` is not as it should be."""
    if folder is None:
        return _Written(())
    probes = read_sites(folder)
    return OlderSites(folder) if probes is None else _Written(probes)


class _Written:
    """What the engine wrote down."""

    def __init__(self, probes: Iterable[ProbeSites]) -> None:
        self._probes = tuple(probes)
        self._instructions = sorted(
            (one for probe in self._probes for one in probe.instructions()), key=lambda one: one.line
        )
        self._sources = {one.line: one.source for one in (*self._instructions, *self.unchecked())}
        starts = (site for probe in self._probes for site in probe.sites if site.at != "instruction")
        self._starts = {site.instruction.line: site.instruction.source or site.following for site in starts}

    def instructions(self) -> Sequence[SiteInstruction]:
        return self._instructions

    def blocks(self, lines: Sequence[int]) -> Sequence[Sequence[SiteInstruction]]:
        kept = (sites for probe in self._probes for sites in probe.maps.values())
        return next(([site.block for site in sites] for sites in kept if _are_blocks(sites, lines)), ())

    def unchecked(self) -> Sequence[SiteInstruction]:
        return [one for probe in self._probes for one in probe.unchecked]

    def ptx_line(self, line: int) -> SourceLine | None:
        return self._sources.get(line)

    def following(self, line: int) -> SourceLine | None:
        return self._starts.get(line)


def _are_blocks(sites: Sequence[Site], lines: Sequence[int]) -> bool:
    return [site.instruction.line for site in sites] == list(lines) and all(site.block for site in sites)

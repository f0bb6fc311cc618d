"""Links between instructions at which warps wait and those for which they wait, as a probe of waits found them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.errors import TraceError
from tui_probe.sass.wait_classes import WAIT_CLASSES
from tui_probe.trace.sites import read_sites
from tui_probe.trace.source_lines import source_position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.model import KernelFacts
    from tui_probe.trace.sites import Site, SiteInstruction


@dataclass(frozen=True)
class WaitLinks:
    """The site of a wait by offset, and the first wait for the result of a producer."""

    waits: dict[int, Site] = field(default_factory=dict)
    waiting: dict[int, Site] = field(default_factory=dict)

    def is_linked(self, offset: int) -> bool:
        """Return whether a wait was measured at an instruction or for its result."""
        return offset in self.waits or offset in self.waiting

    def target(self, offset: int) -> int | None:
        """Return the producer of a wait, of a producer the wait for it; None for other instructions."""
        if (site := self.waits.get(offset)) is not None and (producer := _producer(site)) is not None:
            return producer.line
        site = self.waiting.get(offset)
        return None if site is None else site.instruction.line

    def words(self, offset: int) -> list[str]:
        """Return what warps wait for at an instruction, and which instruction waits for it."""
        texts = []
        if (site := self.waits.get(offset)) is not None and site.wait is not None:
            title, producer = WAIT_CLASSES.get(site.wait.kind, site.wait.kind), _producer(site)
            texts.append(f"waits for {title}" + (f": {_place(producer)}" if producer else ""))
        if (site := self.waiting.get(offset)) is not None:
            texts.append(f"{_place(site.instruction)} waits for it")
        return texts


def wait_links(kernel: KernelFacts) -> WaitLinks:
    """Return the links of a kernel; none where no probe measured waits."""
    links = WaitLinks()
    for site in _wait_sites(kernel):
        links.waits[site.instruction.line] = site
        if (producer := _producer(site)) is not None and producer.line != site.instruction.line:
            links.waiting.setdefault(producer.line, site)
    return links


def _wait_sites(kernel: KernelFacts) -> Iterator[Site]:
    """Yield the wait sites of all probes of the run, in the order in which these began."""
    for probed in kernel.by_probe():
        try:
            probes = (read_sites(probed.folder) if probed.folder else None) or ()
        except TraceError:
            continue
        yield from (site for probe in probes for site in probe.sites if site.wait is not None)


def _producer(site: Site) -> SiteInstruction | None:
    return site.wait.producers[0] if site.wait is not None and site.wait.producers else None


def _place(instruction: SiteInstruction) -> str:
    """``LDG attn.py:49``, with the offset where the source is unknown."""
    return f"{instruction.opcode} {source_position(instruction.source) or f'{instruction.line:#06x}'}"

"""All probes of a run, put into each kernel side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tui_probe.engine.assemble import Assembler
from tui_probe.engine.originals import Originals
from tui_probe.engine.prepare import Answer, CacheCounts, Options, Preparer
from tui_probe.engine.pruned import PrunedAssemblies

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.engine.cache import Cache
    from tui_probe.engine.model import Probe

_KERNELS_AT_ONCE = 4


class Preparers:
    """A preparer for each probe. They share the images that they read, and the assemblers."""

    def __init__(
        self,
        probes: Sequence[tuple[Probe, Options]],
        assembler: Assembler | None = None,
        cache: Cache | None = None,
    ) -> None:
        originals, assembler = Originals(), assembler or Assembler()
        pruned = PrunedAssemblies() if len(probes) > 1 else None
        self._preparers = [Preparer(probe, options, assembler, cache, originals, pruned) for probe, options in probes]
        self._pool = ThreadPoolExecutor(_KERNELS_AT_ONCE * len(probes), thread_name_prefix="probe")

    def warm_up(self) -> None:
        """As that of each preparer."""
        for preparer in self._preparers:
            preparer.warm_up()

    def prepare(self, directory: Path, arch: str, name: str) -> Iterator[Answer]:
        """The answer of each probe, in their order, as soon as it and those before it are known."""
        if len(self._preparers) == 1:
            yield self._preparers[0].prepare(directory, arch, name)
            return
        answers = [self._pool.submit(preparer.prepare, directory, arch, name) for preparer in self._preparers]
        for answer in answers:
            yield answer.result()

    @property
    def counts(self) -> CacheCounts:
        """Of all probes together: a kernel counts once for each."""
        counts = [preparer.counts for preparer in self._preparers]
        return CacheCounts(sum(each.hits for each in counts), sum(each.misses for each in counts))

    def close(self) -> None:
        """Wait for what still runs."""
        self._pool.shutdown(wait=True)
        for preparer in self._preparers:
            preparer.close()

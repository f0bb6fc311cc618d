"""All probes of a run, put into each kernel side by side."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.engine.answers import Answer
from tui_probe.engine.assemble import Assembler
from tui_probe.engine.originals import Originals
from tui_probe.engine.preparation import CacheCounts
from tui_probe.engine.prepare import Preparer
from tui_probe.engine.pruned import PrunedAssemblies
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.cache import Cache
    from tui_probe.engine.model import Probe
    from tui_probe.engine.options import Options

_KERNELS_AT_ONCE = 4
SAMPLED_FOLDER = "sampled"
"""Where in the folder of a probe the files are of the form that measures some blocks alone."""


class Preparers:
    """A preparer for each probe. They share the images that they read, and the assemblers."""

    def __init__(
        self,
        probes: Sequence[tuple[Probe, Options]],
        assembler: Assembler | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._probes, self._cache = probes, cache
        self._originals, self._assembler = Originals(), assembler or Assembler()
        pruned = PrunedAssemblies() if len(probes) > 1 else None
        self._preparers = [
            Preparer(probe, options, self._assembler, cache, self._originals, pruned) for probe, options in probes
        ]
        self._sampled: dict[int, Preparer] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_KERNELS_AT_ONCE * len(probes), thread_name_prefix="probe")

    def warm_up(self) -> None:
        """As that of each preparer."""
        for preparer in self._preparers:
            preparer.warm_up()

    def prepare(self, directory: Path, arch: str, name: str, threads: int = 0) -> Iterator[Answer]:
        """The answer of each probe, in their order, as soon as it and those before it are known."""
        if len(self._preparers) == 1:
            yield self._preparers[0].prepare(directory, arch, name, threads)
            return
        answers = [self._pool.submit(preparer.prepare, directory, arch, name, threads) for preparer in self._preparers]
        for answer in answers:
            yield answer.result()

    def prepare_sampled(self, place: int, directory: Path, arch: str, name: str, threads: int = 0) -> Answer:
        """A kernel that is prepared already, with the probe at ``place``, for launches of which only some blocks are
        measured: all of their records would be too many.
        """
        if not 0 <= place < len(self._probes):
            return Answer.refusal("failed", because("request-unknown"))
        probe, _ = self._probes[place]
        if probe.about.every_block:
            return Answer.refusal("skipped", because("needs-every-block", probe=probe.name))
        return self._sampled_preparer(place).prepare(directory, arch, name, threads)

    def _sampled_preparer(self, place: int) -> Preparer:
        with self._lock:
            if place not in self._sampled:
                probe, options = self._probes[place]
                folder = str(Path(options.folder) / SAMPLED_FOLDER)
                sampled = replace(options, sampled=True, sources=0, folder=folder)
                self._sampled[place] = Preparer(probe, sampled, self._assembler, self._cache, self._originals)
            return self._sampled[place]

    @property
    def counts(self) -> CacheCounts:
        """Of all probes together: a kernel counts once for each."""
        counts = [preparer.counts for preparer in self._preparers]
        return CacheCounts(sum(each.hits for each in counts), sum(each.misses for each in counts))

    def close(self) -> None:
        """Wait for what still runs."""
        self._pool.shutdown(wait=True)
        for preparer in (*self._preparers, *self._sampled.values()):
            preparer.close()

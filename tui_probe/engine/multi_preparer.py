"""Prepare kernels with all probes of a run: a preparer for each, and one for those that are fused."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.assembler import Assembler
from tui_probe.engine.fusion import fuse, hand_out, link_files, take_back, write_part_sites
from tui_probe.engine.grafting.graft_gate import driver_version
from tui_probe.engine.kernel_cache import (
    PROBED_PTX,
    PRUNED_FILE,
    Originals,
    PrunedAssemblies,
    link_pruned_binary,
)
from tui_probe.engine.kernel_work import Turn
from tui_probe.engine.prepare_job import CacheCounts
from tui_probe.engine.preparer import Preparer, directory_reason, ignore
from tui_probe.engine.reception import LATER, Answer, noted_kernel
from tui_probe.engine.workers import SharedPatience
from tui_probe.probe_model import FUSED_NAME
from tui_probe.reasons import because

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from tui_probe.engine.cache import Cache
    from tui_probe.engine.kernel_cache import PrepareOptions
    from tui_probe.engine.kernel_work import Begun
    from tui_probe.probe_model.probe import Probe

_MAX_CONCURRENT_KERNELS: Final = 4
_MAX_COUNTING_THREADS: Final = 256
"""Limit of threads of counting probes, which mostly wait for another process or for their turn."""
_GRAFT_CODE: Final = ("tui_probe.engine.grafting.grafts", "tui_probe.sass.prune")
_LASTING: Final = frozenset({"ok", "skipped"})
_PASSING_CODES: Final = frozenset({"being-prepared", "graft-untested"})
"""Codes of kernels that are refused at this moment only. Outcomes of a self-test last as long as the driver."""
SAMPLED_FOLDER: Final = "sampled"
"""Subdirectory of a probe's directory for the form that measures only some blocks."""
MAX_ASSEMBLED: Final = 250
"""Snippets of a kernel whose PTX is assembled with the fused probe, where kernels are not waited for without end:
with 1100 of them ptxas takes 2 s or more, and the graft into SASS 0.3 s.
"""


def _is_one_ready(answers: Collection[Future[Answer]], patience: SharedPatience) -> bool:
    """Wait until a kernel has one of its probes, and with ``patience`` for the others. False if it gets none."""
    waiting = set(answers)
    while waiting:
        ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        if any(answer.result().outcome == "ok" for answer in ready):
            patience.wait(waiting)
            return True
    return False


class CountingProcess:
    """Another process that prepares counting probes: threads of one process work in turn, so the first probe of a
    kernel, for which a launch waits, took several times as long next to them. Safe to use from several threads.
    """

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        """``connect`` gives a connection to it when it is first needed, or raises OSError."""
        self._connect = connect
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()  # one request at a time

    def prepare(self, place: int, directory: Path, arch: str, name: str, threads: int) -> Answer | None:
        """The answer about the probe at ``place``; None if there is no such process any more."""
        request = f"counting\t{place}\t{directory}\t{arch}\t{name}\t{threads}\n"
        with self._lock, suppress(OSError, ValueError):
            if self._connection is None:
                self._connection = self._connect()
                self._answers = self._connection.makefile("rb")
            self._connection.sendall(request.encode("utf-8", "surrogateescape"))
            return Answer.read(self._answers.readline().decode("utf-8", "replace"))
        return None

    def close(self) -> None:
        """Let the process go."""
        if self._connection is not None:
            self._answers.close()
            self._connection.close()


class MultiPreparer:
    """A preparer for each probe, and one for all counting probes at the same time. They share images and assemblers.

    ``fused`` are the places of the counting probes. ``patience`` is how many seconds a kernel that has one of its
    probes waits for the others, at most, None for as long as it takes. ptxas takes seconds for a large kernel with all
    counting probes, and a moment for its times: launches of a short program would have no result of any probe.
    """

    def __init__(
        self,
        probes: Sequence[tuple[Probe, PrepareOptions]],
        assembler: Assembler | None = None,
        cache: Cache | None = None,
        fused: Sequence[int] = (),
        patience: float | None = None,
        notes: Path | None = None,
    ) -> None:
        """``notes``: directory for notes of the kernels under way, which another process may finish."""
        self._notes = notes
        self._patience = None if patience is None else SharedPatience(patience)
        self._cache, self._fused = cache, tuple(fused)
        self.ahead_steps = 2 if patience is not None and 0 < len(fused) < len(probes) else 1
        """Steps in which kernels are prepared ahead: their counting probes together come second."""
        self._parts = [probes[place][0] for place in fused]
        self._probes = [*probes, *([self._fuse(probes)] if fused else [])]
        self._originals, self._assembler = Originals(), assembler or Assembler()
        self._pruned = PrunedAssemblies() if len(probes) > 1 else None
        self._preparers = [
            Preparer(probe, options, self._assembler, cache, self._originals, self._pruned)
            for probe, options in self._probes
        ]
        self._counting: CountingProcess | None = None
        self._sampled: dict[int, Preparer] = {}
        self._lock = threading.Lock()  # of _sampled, which is filled on first use
        self._turn = threading.Lock()  # see prepare_counting
        self._pool = ThreadPoolExecutor(_MAX_CONCURRENT_KERNELS * len(self._probes), thread_name_prefix="probe")
        # Its threads wait long: in the pool of the other probes a new kernel would wait for the counts of earlier ones.
        self._counting_pool = ThreadPoolExecutor(_MAX_COUNTING_THREADS, thread_name_prefix="counting")

    def _fuse(self, probes: Sequence[tuple[Probe, PrepareOptions]]) -> tuple[Probe, PrepareOptions]:
        """The fused probe, which copies source files if the first probe is a part of it."""
        options = probes[self._fused[0]][1]
        sources = probes[0][1].sources if 0 in self._fused else 0
        quickly = self._patience is not None and options.machine_code != "off"
        most = MAX_ASSEMBLED if quickly else None
        return fuse(self._parts), replace(options, folder=FUSED_NAME, sources=sources, most_assembled=most)

    @property
    def grafts_counting(self) -> bool:
        """Return whether counting probes may be put into SASS next to others, so that a process for them helps."""
        _, options = self._probes[0]
        can_graft = options.load == "bin" and options.machine_code != "off"
        return self._patience is not None and 0 < len(self._fused) < len(self._probes) - 1 and can_graft

    def count_elsewhere(self, connect: Callable[[], socket.socket]) -> None:
        """Leave counting probes of kernels without PTX to the process to which ``connect`` connects, from now on."""
        self._counting = CountingProcess(connect)

    def find_assemblers(self) -> None:
        """Find assemblers, and compute the keys of the cache for the preparers that every kernel needs."""
        for preparer in self._common_preparers():
            preparer.find_assemblers()

    def warm_up(self) -> None:
        """Run once through the code of the preparers that every kernel needs."""
        for preparer in self._common_preparers():
            preparer.warm_up()

    def _common_preparers(self) -> Iterator[Preparer]:
        """Parts of a fused probe are prepared only where that is refused."""
        return (preparer for place, preparer in enumerate(self._preparers) if place not in self._fused)

    def prepare(self, directory: Path, arch: str, name: str, threads: int = 0) -> Iterator[Answer]:
        """The answer of each probe, in their order, as soon as it and those before it are known.

        That of the fused probe follows them. Where there is such a kernel, its parts are not prepared by themselves.
        A probe that the others do not wait for is answered with ``LATER``, and behind all others with its answer.
        The fused probe, which takes longest, begins behind the others: threads of a process work in turn, so these
        would take twice as long next to it.
        """
        with noted_kernel(self._notes, directory, arch, name):
            yield from self._prepare(directory, arch, name, threads)

    def _prepare(self, directory: Path, arch: str, name: str, threads: int) -> Iterator[Answer]:
        if len(self._preparers) == 1:
            yield self._preparers[0].prepare(directory, arch, name, threads)
            return
        submit = partial(self._submit, directory=directory, arch=arch, name=name, threads=threads)
        places = range(len(self._preparers))
        quick = {place: threading.Event() for place in places if not self._is_of_fused(place)}
        answers = {place: submit(place, begun=begun.set) for place, begun in quick.items()}
        if self._fused:
            for begun in quick.values():
                begun.wait()
            answers[places[-1]] = submit(places[-1])
        fused = answers[places[-1]] if self._fused else None
        late = self._late_places(answers)
        if fused is not None and places[-1] not in late:
            answers |= self._answers_of_parts(fused.result(), directory, submit)
        for place in places:
            yield LATER if place in late else answers[place].result()
        if fused is not None and places[-1] in late:
            answers |= self._answers_of_parts(fused.result(), directory, submit)
        for place in late:
            yield answers[place].result()

    def _late_places(self, answers: Mapping[int, Future[Answer]]) -> list[int]:
        """Places of the probes that are answered later, in order: those not ready in time next to one that is.

        A part is late with the fused probe, and where that is refused, as it is then prepared by itself.
        """
        if self._patience is None or not _is_one_ready(list(answers.values()), self._patience):
            return []
        late = {place for place, answer in answers.items() if not answer.done()}
        fused = max(answers)
        if self._fused and (fused in late or answers[fused].result().outcome != "ok"):
            late.update(self._fused)
        return sorted(late)

    def _answers_of_parts(
        self, fused: Answer, directory: Path, submit: Callable[[int], Future[Answer]]
    ) -> dict[int, Future[Answer]]:
        """The answers of the parts of the fused probe, by place; without it each is prepared by itself."""
        if fused.outcome != "ok":
            return {place: submit(place) for place in self._fused}
        return {
            place: self._pool.submit(self._hand_out, part, directory, fused)
            for place, part in zip(self._fused, self._parts, strict=True)
        }

    def work_ahead(self) -> None:
        """Prepare kernels ahead of launches from now on: in a process that does nothing else."""
        self._patience = None
        for preparer in self._preparers:
            preparer.is_ahead = True

    def read_graft_code(self) -> None:
        """Import the code that grafts, if kernels may be probed in SASS: otherwise the first of these waits for it."""
        _, options = self._probes[0]
        if options.load == "bin" and options.machine_code != "off":
            for module in _GRAFT_CODE:
                import_module(module)

    @property
    def surroundings(self) -> str:
        """All that decides what comes of a kernel that is prepared ahead, except the image and the device."""
        surroundings = (preparer.surroundings for preparer in self._preparers)
        return "\n".join([driver_version(), str(self.ahead_steps), *surroundings])

    def prepare_ahead(self, step: int, directory: Path, arch: str, name: str) -> list[str] | None:
        """Put a kernel into the cache with the probes of a step, for a launch of any size.

        Returns the keys of its entries, none of a kernel that is refused; None if the next run may get another answer.
        """
        submit = partial(self._submit, directory=directory, arch=arch, name=name, threads=0)
        places = [place for place in range(len(self._preparers)) if place not in self._fused]
        if self.ahead_steps > 1:
            places = places[-1:] if step else places[:-1]
        futures = [submit(place) for place in places]
        answers = [future.result() for future in futures]
        if self._fused and step == self.ahead_steps - 1 and answers[-1].code not in (None, "being-prepared"):
            parts = [submit(place) for place in self._fused]
            answers += [part.result() for part in parts]
        for preparer in self._preparers:
            preparer.wait_until_kept()
        is_lasting = all(answer.outcome in _LASTING and answer.code not in _PASSING_CODES for answer in answers)
        return [answer.key for answer in answers if answer.key] if is_lasting else None

    def prepare_parts(self, directory: Path, arch: str, name: str, threads: int = 0) -> Iterator[Answer]:
        """The answer of each probe of the fused one, by itself: the program cannot launch the kernel with all."""
        for part in self._parts:
            take_back(directory / part.name)
        answers = [self._submit(place, directory, arch, name, threads) for place in self._fused]
        for answer in answers:
            yield answer.result()

    def _is_of_fused(self, place: int) -> bool:
        """Return whether a probe is the fused one or a part of it."""
        return bool(self._fused) and (place in self._fused or place == len(self._preparers) - 1)

    def _submit(
        self, place: int, directory: Path, arch: str, name: str, threads: int, begun: Begun = ignore
    ) -> Future[Answer]:
        if self._is_of_fused(place):
            return self._counting_pool.submit(self._prepare_counting, place, directory, arch, name, threads)
        return self._pool.submit(self._preparers[place].prepare, directory, arch, name, threads, begun)

    def _prepare_counting(self, place: int, directory: Path, arch: str, name: str, threads: int) -> Answer:
        """Prepare a kernel with the fused probe or a part of it, in the other process if it has no PTX.

        ptxas works in a process of its own anyway, and the one that assembles the first probe has the kernel without
        probe, too.
        """
        elsewhere = None
        if self._counting is not None and self._is_in_sass(directory):
            elsewhere = self._counting.prepare(place, directory, arch, name, threads)
        return elsewhere or self.prepare_counting(place, directory, arch, name, threads)

    def _is_in_sass(self, directory: Path) -> bool:
        """Return whether the probe that is prepared first found no PTX of a kernel."""
        first = next(options.folder for place, (_, options) in enumerate(self._probes) if place not in self._fused)
        return (directory / first / PRUNED_FILE).exists() and not (directory / first / PROBED_PTX).exists()

    def prepare_counting(self, place: int, directory: Path, arch: str, name: str, threads: int = 0) -> Answer:
        """Prepare counting probes of one kernel at a time until their ptxas works, so that the other probes of other
        kernels, for which launches wait, have half of this process at least.
        """
        if not 0 <= place < len(self._preparers):
            return Answer.refusal("failed", because("request-unknown"))
        turn = Turn(self._turn)
        try:
            return self._preparers[place].prepare(directory, arch, name, threads, turn.end)
        finally:
            turn.end()

    def _hand_out(self, part: Probe, directory: Path, fused: Answer) -> Answer:
        """Give a part its files. Its sites, which no launch waits for, follow."""
        part_directory = directory / part.name
        try:
            part_directory.mkdir(exist_ok=True)
            hand_out(directory / FUSED_NAME, part_directory, self._parts, part)
        except (OSError, ValueError) as error:
            return Answer.refusal("failed", directory_reason(part_directory, error))
        self._pool.submit(self._hand_out_rest, part, directory)
        return fused

    def _hand_out_rest(self, part: Probe, directory: Path) -> None:
        assert self._pruned is not None
        with suppress(OSError, ValueError):  # the trace is gone or the disk full
            write_part_sites(directory / FUSED_NAME, directory / part.name, self._parts, part)
            made = self._pruned.wait(directory)
            link_files(directory / FUSED_NAME, directory / part.name)
            if made is not None and not (directory / part.name / PRUNED_FILE).exists():
                link_pruned_binary(made, directory / part.name)  # the fused kernel may get it from there later

    def prepare_sampled(self, place: int, directory: Path, arch: str, name: str, threads: int = 0) -> Answer:
        """A kernel that is prepared already, with the probe at ``place``, for launches in which only some blocks are
        measured: the records of all blocks would be too many.
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
        """Return the counts of all probes: a kernel counts once per probe."""
        counts = [preparer.counts for preparer in self._preparers]
        return CacheCounts(sum(count.hits for count in counts), sum(count.misses for count in counts))

    def close(self) -> None:
        """Wait for what still runs, and keep the cache within its limit."""
        self._counting_pool.shutdown(wait=True)
        self._pool.shutdown(wait=True)
        if self._counting is not None:
            self._counting.close()
        for preparer in (*self._preparers, *self._sampled.values()):
            preparer.close()
        if self._cache is not None:
            with suppress(OSError):  # the next run trims again
                self._cache.trim_if_changed()

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
from tui_probe.engine.fusion import fuse, link_files, remove_part, write_part, write_part_sites
from tui_probe.engine.grafting.graft_gate import driver_version
from tui_probe.engine.kernel_cache import (
    PROBED_PTX,
    PRUNED_FILE,
    ImageCache,
    PrunedAssemblies,
    link_pruned_binary,
)
from tui_probe.engine.kernel_work import HeldLock
from tui_probe.engine.prepare_job import CacheCounts
from tui_probe.engine.preparer import Preparer, directory_reason, do_nothing
from tui_probe.engine.reception import LATER_ANSWER, Answer, keep_kernel_note
from tui_probe.engine.workers import SharedPatience
from tui_probe.probe_model import FUSED_NAME
from tui_probe.reasons import because

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from tui_probe.engine.cache import Cache
    from tui_probe.engine.kernel_cache import PrepareOptions
    from tui_probe.engine.kernel_work import StartCallback
    from tui_probe.probe_model.probe import Probe

_MAX_CONCURRENT_KERNELS: Final = 4
_MAX_COUNTING_THREADS: Final = 256
"""Limit of threads of counting probes, which mostly wait for another process or for their turn."""
_GRAFT_CODE: Final = ("tui_probe.engine.grafting.grafts", "tui_probe.sass.prune")
_LASTING_OUTCOMES: Final = frozenset({"ok", "skipped"})
_PASSING_CODES: Final = frozenset({"being-prepared", "graft-untested"})
"""Codes of kernels that are refused at this moment only. Outcomes of a self-test last as long as the driver."""
SAMPLED_FOLDER: Final = "sampled"
"""Subdirectory of a probe's directory for the form that measures only some blocks."""
MAX_ASSEMBLED_SNIPPETS: Final = 250
"""Snippets of a kernel whose PTX is assembled with the fused probe, where kernels are not waited for without end:
with 1100 of them ptxas takes 2 s or more, and the graft into SASS 0.3 s.
"""


def _is_one_ready(answers: Collection[Future[Answer]], patience: SharedPatience) -> bool:
    """Wait until a kernel has one of its probes, and with ``patience`` for the others. False if it gets none."""
    pending = set(answers)
    while pending:
        completed, pending = wait(pending, return_when=FIRST_COMPLETED)
        if any(answer.result().outcome == "ok" for answer in completed):
            patience.wait(pending)
            return True
    return False


class CountingProcess:
    """Another process that prepares counting probes: threads of one process work in turn, so the first probe of a
    kernel, for which a launch waits, took several times as long next to them. Safe to use from several threads.
    """

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        """Prepare to connect. ``connect`` makes the connection at the first request, or raises OSError."""
        self._connect = connect
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()  # one request at a time

    def prepare(self, index: int, directory: Path, arch: str, name: str, threads: int) -> Answer | None:
        """Return the answer for the probe at ``index``; None if the process has ended."""
        request = f"counting\t{index}\t{directory}\t{arch}\t{name}\t{threads}\n"
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

    ``fused`` are the indices of the counting probes. ``patience`` is the maximum time in seconds that a kernel with one
    of its probes waits for the others, None for no limit. ptxas takes seconds for a large kernel with all counting
    probes, and a moment for its times: launches of a short program would have no result of any probe.
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
        """Make a preparer for each probe. ``notes``: directory for notes of the kernels in progress, which another
        process may finish.
        """
        self._notes = notes
        self._patience = None if patience is None else SharedPatience(patience)
        self._cache, self._fused = cache, tuple(fused)
        self.ahead_steps = 2 if patience is not None and 0 < len(fused) < len(probes) else 1
        """Steps in which kernels are prepared ahead: their counting probes together come second."""
        self._parts = [probes[index][0] for index in fused]
        self._probes = [*probes, *([self._fuse(probes)] if fused else [])]
        self._image_cache, self._assembler = ImageCache(), assembler or Assembler()
        self._pruned = PrunedAssemblies() if len(probes) > 1 else None
        self._preparers = [
            Preparer(probe, options, self._assembler, cache, self._image_cache, self._pruned)
            for probe, options in self._probes
        ]
        self._counting: CountingProcess | None = None
        self._sampled_preparers: dict[int, Preparer] = {}
        self._lock = threading.Lock()  # of _sampled, which is filled on first use
        self._counting_lock = threading.Lock()  # see prepare_counting
        self._pool = ThreadPoolExecutor(_MAX_CONCURRENT_KERNELS * len(self._probes), thread_name_prefix="probe")
        # Its threads wait long: in the pool of the other probes a new kernel would wait for the counts of earlier ones.
        self._counting_pool = ThreadPoolExecutor(_MAX_COUNTING_THREADS, thread_name_prefix="counting")

    def _fuse(self, probes: Sequence[tuple[Probe, PrepareOptions]]) -> tuple[Probe, PrepareOptions]:
        """Return the fused probe, which copies source files if the first probe is a part of it."""
        options = probes[self._fused[0]][1]
        sources = probes[0][1].sources if 0 in self._fused else 0
        has_time_limit = self._patience is not None and options.machine_code != "off"
        max_snippets = MAX_ASSEMBLED_SNIPPETS if has_time_limit else None
        fused_options = replace(options, folder=FUSED_NAME, sources=sources, max_assembled_snippets=max_snippets)
        return fuse(self._parts), fused_options

    @property
    def can_graft_counting(self) -> bool:
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
        """Yield the preparers that every kernel needs; parts of a fused probe need theirs only if that is refused."""
        return (preparer for index, preparer in enumerate(self._preparers) if index not in self._fused)

    def prepare(self, directory: Path, arch: str, name: str, threads: int = 0) -> Iterator[Answer]:
        """Yield the answer of each probe, in their order, as soon as it and those before it are known.

        That of the fused probe follows them. Where there is such a kernel, its parts are not prepared by themselves.
        A probe that the others do not wait for gets ``LATER_ANSWER``, and behind all others its answer.
        The fused probe, which takes longest, begins behind the others: threads of a process work in turn, so these
        would take twice as long next to it.
        """
        with keep_kernel_note(self._notes, directory, arch, name):
            yield from self._prepare(directory, arch, name, threads)

    def _prepare(self, directory: Path, arch: str, name: str, threads: int) -> Iterator[Answer]:
        if len(self._preparers) == 1:
            yield self._preparers[0].prepare(directory, arch, name, threads)
            return
        submit = partial(self._submit, directory=directory, arch=arch, name=name, threads=threads)
        indices = range(len(self._preparers))
        start_events = {index: threading.Event() for index in indices if not self._is_of_fused(index)}
        answers = {index: submit(index, on_start=start_event.set) for index, start_event in start_events.items()}
        if self._fused:
            for started in start_events.values():
                started.wait()
            answers[indices[-1]] = submit(indices[-1])
        fused_answer = answers[indices[-1]] if self._fused else None
        late_indices = self._late_indices(answers)
        if fused_answer is not None and indices[-1] not in late_indices:
            answers |= self._answers_of_parts(fused_answer.result(), directory, submit)
        for index in indices:
            yield LATER_ANSWER if index in late_indices else answers[index].result()
        if fused_answer is not None and indices[-1] in late_indices:
            answers |= self._answers_of_parts(fused_answer.result(), directory, submit)
        for index in late_indices:
            yield answers[index].result()

    def _late_indices(self, answers: Mapping[int, Future[Answer]]) -> list[int]:
        """Return the indices of the probes that are answered later, in order: those not ready in time next to one that
        is.

        A part is late with the fused probe, and where that is refused, as it is then prepared by itself.
        """
        if self._patience is None or not _is_one_ready(list(answers.values()), self._patience):
            return []
        late_indices = {index for index, answer in answers.items() if not answer.done()}
        fused_index = max(answers)
        if self._fused and (fused_index in late_indices or answers[fused_index].result().outcome != "ok"):
            late_indices.update(self._fused)
        return sorted(late_indices)

    def _answers_of_parts(
        self, fused_answer: Answer, directory: Path, submit: Callable[[int], Future[Answer]]
    ) -> dict[int, Future[Answer]]:
        """Return the answers of the parts of the fused probe, by index; without it each is prepared by itself."""
        if fused_answer.outcome != "ok":
            return {index: submit(index) for index in self._fused}
        return {
            index: self._pool.submit(self._hand_out, part, directory, fused_answer)
            for index, part in zip(self._fused, self._parts, strict=True)
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
    def cache_inputs(self) -> str:
        """All inputs of the preparation of a kernel ahead of launches, except the image and the device."""
        digests = (preparer.cache_inputs for preparer in self._preparers)
        return "\n".join([driver_version(), str(self.ahead_steps), *digests])

    def prepare_ahead(self, step: int, directory: Path, arch: str, name: str) -> list[str] | None:
        """Put a kernel into the cache with the probes of a step, for a launch of any size.

        Returns the keys of its entries, none of a kernel that is refused; None if the next run may get another answer.
        """
        submit = partial(self._submit, directory=directory, arch=arch, name=name, threads=0)
        indices = [index for index in range(len(self._preparers)) if index not in self._fused]
        if self.ahead_steps > 1:
            indices = indices[-1:] if step else indices[:-1]
        futures = [submit(index) for index in indices]
        answers = [future.result() for future in futures]
        if self._fused and step == self.ahead_steps - 1 and answers[-1].code not in (None, "being-prepared"):
            parts = [submit(index) for index in self._fused]
            answers += [part.result() for part in parts]
        for preparer in self._preparers:
            preparer.wait_for_stores()
        is_lasting = all(
            answer.outcome in _LASTING_OUTCOMES and answer.code not in _PASSING_CODES for answer in answers
        )
        return [answer.key for answer in answers if answer.key] if is_lasting else None

    def prepare_parts(self, directory: Path, arch: str, name: str, threads: int = 0) -> Iterator[Answer]:
        """Yield the answer of each probe of the fused one, by itself: the program cannot launch the kernel with all."""
        for part in self._parts:
            remove_part(directory / part.name)
        answers = [self._submit(index, directory, arch, name, threads) for index in self._fused]
        for answer in answers:
            yield answer.result()

    def _is_of_fused(self, index: int) -> bool:
        """Return whether a probe is the fused one or a part of it."""
        return bool(self._fused) and (index in self._fused or index == len(self._preparers) - 1)

    def _submit(
        self, index: int, directory: Path, arch: str, name: str, threads: int, on_start: StartCallback = do_nothing
    ) -> Future[Answer]:
        if self._is_of_fused(index):
            return self._counting_pool.submit(self._prepare_counting, index, directory, arch, name, threads)
        return self._pool.submit(self._preparers[index].prepare, directory, arch, name, threads, on_start)

    def _prepare_counting(self, index: int, directory: Path, arch: str, name: str, threads: int) -> Answer:
        """Prepare a kernel with the fused probe or a part of it, in the other process if it has no PTX.

        ptxas works in a process of its own anyway, and the one that assembles the first probe has the kernel without
        probe, too.
        """
        answer = None
        if self._counting is not None and self._is_in_sass(directory):
            answer = self._counting.prepare(index, directory, arch, name, threads)
        return answer or self.prepare_counting(index, directory, arch, name, threads)

    def _is_in_sass(self, directory: Path) -> bool:
        """Return whether the probe that is prepared first found no PTX of a kernel."""
        first_folder = next(
            options.folder for index, (_, options) in enumerate(self._probes) if index not in self._fused
        )
        return (directory / first_folder / PRUNED_FILE).exists() and not (
            directory / first_folder / PROBED_PTX
        ).exists()

    def prepare_counting(self, index: int, directory: Path, arch: str, name: str, threads: int = 0) -> Answer:
        """Prepare counting probes of one kernel at a time until their ptxas works, so that the other probes of other
        kernels, for which launches wait, have half of this process at least.
        """
        if not 0 <= index < len(self._preparers):
            return Answer.refusal("failed", because("request-unknown"))
        held_lock = HeldLock(self._counting_lock)
        try:
            return self._preparers[index].prepare(directory, arch, name, threads, held_lock.release)
        finally:
            held_lock.release()

    def _hand_out(self, part: Probe, directory: Path, fused_answer: Answer) -> Answer:
        """Give a part its files. Its sites, which no launch waits for, follow."""
        part_directory = directory / part.name
        try:
            part_directory.mkdir(exist_ok=True)
            write_part(directory / FUSED_NAME, part_directory, self._parts, part)
        except (OSError, ValueError) as error:
            return Answer.refusal("failed", directory_reason(part_directory, error))
        self._pool.submit(self._hand_out_sites, part, directory)
        return fused_answer

    def _hand_out_sites(self, part: Probe, directory: Path) -> None:
        assert self._pruned is not None
        with suppress(OSError, ValueError):  # the trace is gone or the disk full
            write_part_sites(directory / FUSED_NAME, directory / part.name, self._parts, part)
            pruned_directory = self._pruned.wait(directory)
            link_files(directory / FUSED_NAME, directory / part.name)
            if pruned_directory is not None and not (directory / part.name / PRUNED_FILE).exists():
                link_pruned_binary(
                    pruned_directory, directory / part.name
                )  # the fused kernel may get it from there later

    def prepare_sampled(self, index: int, directory: Path, arch: str, name: str, threads: int = 0) -> Answer:
        """Prepare a kernel again with the probe at ``index``, for launches in which only some blocks are measured: the
        records of all blocks would be too many.
        """
        if not 0 <= index < len(self._probes):
            return Answer.refusal("failed", because("request-unknown"))
        probe, _ = self._probes[index]
        if probe.about.every_block:
            return Answer.refusal("skipped", because("needs-every-block", probe=probe.name))
        return self._sampled_preparer(index).prepare(directory, arch, name, threads)

    def _sampled_preparer(self, index: int) -> Preparer:
        with self._lock:
            if index not in self._sampled_preparers:
                probe, options = self._probes[index]
                folder = str(Path(options.folder) / SAMPLED_FOLDER)
                sampled_options = replace(options, samples_blocks=True, sources=0, folder=folder)
                self._sampled_preparers[index] = Preparer(
                    probe, sampled_options, self._assembler, self._cache, self._image_cache
                )
            return self._sampled_preparers[index]

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
        for preparer in (*self._preparers, *self._sampled_preparers.values()):
            preparer.close()
        if self._cache is not None:
            with suppress(OSError):  # the next run trims again
                self._cache.trim_if_changed()

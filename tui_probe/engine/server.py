"""Serve requests of hooks on a Unix socket: prepare kernels, and answer.

    hook → engine   hello TAB 1 TAB pid                                    engine → hook   hello TAB 1
    hook → engine   prepare TAB id TAB kernel directory TAB sm_XY TAB kernel name TAB threads of the block launched
    engine → hook   ok TAB id TAB file  |  skipped TAB id TAB reason  |  failed TAB id TAB reason
    Of several probes there is such an answer for each, in their order; its files are in a folder of the probe's name.
    Where counting probes are fused, there is one more answer for these together, with files in a folder ``fused``.
    engine → hook   later TAB id TAB    once one probe is ready, of each that is not; their answers follow the last one
    hook → engine   separate TAB id TAB kernel directory TAB sm_XY TAB kernel name TAB threads of the block launched
    An answer for each of the fused probes: the same kernel with that one only.
    hook → engine   sample TAB id TAB kernel directory TAB sm_XY TAB kernel name TAB place of a probe TAB threads
    Places count from 0. One answer: the same kernel, made to measure the blocks of a sample, in a folder ``sampled``.
    A reason ends with its code: no PTX in image code no-ptx
    engine → worker    ahead TAB step TAB kernel directory TAB sm_XY TAB kernel name
    worker → engine    ok TAB step TAB keys of its entries in the cache, none if it is refused; see ``ahead``
    worker → engine    later TAB step TAB      it is neither, for a reason that may not hold in the next run
    worker → worker    counting TAB place of a probe TAB kernel directory TAB sm_XY TAB kernel name TAB threads
    One answer, as to ``prepare``, with the place of the probe as its id.

Requests of a connection are answered in order, connections in parallel: a process has one for each kernel that it waits
for. The launcher runs the server in a process of its own, ``launcher.engine_process``, with workers next to it.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.engine.ahead import EVERY_KERNEL, AheadPreparer, ImageRecords, KernelChoice
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.multi_preparer import MultiPreparer
from tui_probe.engine.reception import PROTOCOL, Answer, Reception, listen_at
from tui_probe.engine.workers import AHEAD_NICENESS, SharedCounts, Workers, WorkerTask
from tui_probe.reasons import because, listed_reasons

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from tui_probe.engine.assembler import Assembler
    from tui_probe.engine.cache import Cache
    from tui_probe.probe_model.probe import Probe


class EngineServer:
    """Serves one probe, and ``other_probes``, on a socket, in threads of this process. Also a context manager."""

    def __init__(
        self,
        path: Path,
        probe: Probe,
        options: PrepareOptions | None = None,
        assembler: Assembler | None = None,
        cache: Cache | None = None,
        other_probes: Sequence[tuple[Probe, PrepareOptions]] = (),
        reception: Reception | None = None,
        fused: Sequence[int] = (),
        workers: int = 0,
        patience: float | None = None,
        images: socket.socket | None = None,
        choice: KernelChoice = EVERY_KERNEL,
        ahead_workers: int = 0,
        counts: SharedCounts | None = None,
    ) -> None:
        """Prepare to serve. ``reception`` accepts connections at ``path``; without it ``start`` makes one there.

        ``fused`` are the places of the probes that a kernel has at the same time;
        ``workers`` is the most processes that serve connections next to this one, ``patience`` as of ``MultiPreparer``.
        ``images`` is the datagram socket for images whose kernels of ``choice`` as many ``ahead_workers`` prepare.
        ``counts`` has places for this process and the ``workers``.
        """
        self._path = path
        self._cache = cache
        self._max_workers = workers
        self._workers: Workers | None = None
        self.counts = counts or SharedCounts(workers)
        self._images, self._choice, self._max_ahead = images, choice, ahead_workers if images else 0
        self._ahead_preparer: AheadPreparer | None = None
        first_probe = (probe, options or PrepareOptions())
        self._preparers = MultiPreparer([first_probe, *other_probes], assembler, cache, fused, patience, path.parent)
        self._reception = reception

    def start(self) -> None:
        """Get ready, then answer: where the server makes the socket, it is warm when the path exists.

        Raises LaunchError if the socket cannot be made there.
        """
        self._preparers.find_assemblers()
        if self._reception is None:
            self._preparers.warm_up()
            self._reception = Reception(listen_at(self._path))
            self._reception.start()
        if self._max_workers or self._max_ahead:
            launch_task, ahead_task = (
                WorkerTask(answers, self._preparers.close, self._read_worker_code)
                for answers in (self._launch_replies, self._ahead_replies)
            )
            counting_task = (
                WorkerTask(self._counting_replies, self._preparers.close)
                if self._preparers.can_graft_counting
                else None
            )
            self._workers = Workers(self._max_workers, launch_task, self._max_ahead, ahead_task, counting_task)
            if counting_task and self._max_workers:
                self._preparers.count_elsewhere(self._connect_counting)
        self._reception.open(
            self._launch_replies(0), self._workers.take if self._workers and self._max_workers else None
        )
        if self._images is not None and self._workers is not None:
            steps = self._preparers.ahead_steps
            records = ImageRecords(self._cache, self._preparers.cache_inputs) if self._cache else None
            take = self._workers.take_ahead
            self._ahead_preparer = AheadPreparer(self._images, self._path.parent, self._choice, take, steps, records)
            self._ahead_preparer.start(self._max_ahead)
        # Next to the start of the target: the first new kernel would wait for it, but a kernel in the cache need not.
        self._preparers.warm_up()
        listed_reasons()

    def read_graft_code(self) -> None:
        """Import the code that grafts, for kernels that this process itself prepares in SASS."""
        self._preparers.read_graft_code()

    def stop(self) -> None:
        """Take no more requests; finish those under way and the assemblies that no one waits for."""
        if self._ahead_preparer is not None:
            self._ahead_preparer.stop()
        if self._reception is not None:
            self._reception.stop()
        if self._workers is not None:
            self._workers.stop()
        self._path.unlink(missing_ok=True)
        self._preparers.close()

    def __enter__(self) -> EngineServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _connect_counting(self) -> socket.socket:
        """Return a connection to a worker that prepares counting probes for this process. Raises OSError."""
        client, server = socket.socketpair()
        if self._workers is None or not self._workers.take_counting(server):
            client.close()
            server.close()
            raise BrokenPipeError
        return client

    def _launch_replies(self, number: int, counting: socket.socket | None = None) -> Callable[[bytes], Iterator[str]]:
        """Return the reply function of process ``number``: 0 is this one, those from 1 on are workers of launches, the
        next ones workers of counting probes. ``counting`` is the socket to one of these.
        """
        if counting is not None:
            self._preparers.count_elsewhere(lambda: counting)

        def reply(line: bytes) -> Iterator[str]:
            for answer in self._reply(line):
                counts = self._preparers.counts
                self.counts.set(number, counts.hits, counts.misses)
                yield answer

        return reply

    def _read_worker_code(self) -> None:
        self._preparers.warm_up()
        self._preparers.read_graft_code()
        listed_reasons()  # each worker would read them for its first kernel without PTX

    def _counting_replies(self, number: int, _: socket.socket | None) -> Callable[[bytes], Iterator[str]]:
        """Return the reply function of a worker for counting probes, which get processors after first probes."""
        os.nice(AHEAD_NICENESS)
        return self._launch_replies(number)

    def _ahead_replies(self, *_: object) -> Callable[[bytes], Iterator[str]]:
        """Return the reply function of a worker that prepares ahead of launches, and gets processors last."""
        os.nice(AHEAD_NICENESS)
        self._preparers.work_ahead()
        return self._reply

    def _reply(self, line: bytes) -> Iterator[str]:
        match line.decode("utf-8", "surrogateescape").rstrip("\n").split("\t"):
            case ["hello", *_]:
                yield _answer_line(Answer.refusal("failed", because("protocol", version=PROTOCOL)), "-")
            case ["prepare", request, directory, arch, name, threads] if threads.isdecimal():
                for answer in self._preparers.prepare(Path(directory), arch, name, int(threads)):
                    yield _answer_line(answer, request)
            case ["separate", request, directory, arch, name, threads] if threads.isdecimal():
                for answer in self._preparers.prepare_parts(Path(directory), arch, name, int(threads)):
                    yield _answer_line(answer, request)
            case ["sample", request, directory, arch, name, index, threads] if (index + threads).isdecimal():
                answer = self._preparers.prepare_sampled(int(index), Path(directory), arch, name, int(threads))
                yield _answer_line(answer, request)
            case ["counting", index, directory, arch, name, threads] if (index + threads).isdecimal():
                answer = self._preparers.prepare_counting(int(index), Path(directory), arch, name, int(threads))
                yield _answer_line(answer, index)
            case ["ahead", step, directory, arch, name] if step.isdecimal():
                keys = self._preparers.prepare_ahead(int(step), Path(directory), arch, name)
                yield f"later\t{step}\t\n" if keys is None else f"ok\t{step}\t{' '.join(keys)}\n"
            case [_, request, *_]:
                yield _unknown_line(request)
            case _:
                yield _unknown_line("-")


def _answer_line(answer: Answer, request: str) -> str:
    return f"{answer.outcome}\t{request}\t{answer.reply_text}\n"


def _unknown_line(request: str) -> str:
    return _answer_line(Answer.refusal("failed", because("request-unknown")), request)

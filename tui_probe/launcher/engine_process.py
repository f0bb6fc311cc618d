"""Process of the engine, for one run of the launcher: a server that answers until it is asked to end."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from tui_probe.engine.ahead import KernelChoice
from tui_probe.engine.assembler import Assembler, keep_empty_kernels
from tui_probe.engine.cache import EMPTY_KERNEL_DIRECTORY, Cache, default_cache_directory
from tui_probe.engine.grafting.graft_gate import start_early_trial
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.multi_preparer import MultiPreparer
from tui_probe.engine.server import EngineServer
from tui_probe.engine.workers import AHEAD_NICENESS, usual_ahead_workers
from tui_probe.errors import ProbeError
from tui_probe.launcher.environment import places_to_fuse
from tui_probe.launcher.spool import PREFIX, mark_owner, short_folder
from tui_probe.probe_model.storage import fold_sums

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from tui_probe.engine.kernel_cache import MachineCode
    from tui_probe.engine.reception import KernelNote, Reception
    from tui_probe.engine.workers import SharedCounts
    from tui_probe.probe_files.choices import ChosenProbe
    from tui_probe.probe_model.probe import Probe

    from .options import RunOptions

PROBE_PATIENCE: Final = 0.03
"""Seconds for which a kernel with one of its probes waits for the others. On a GPU only: the simulated one is slow.
Short, since the hook waits for late probes itself, and has a share of the run's allowance for that.
"""
_SWITCH_SECONDS: Final = 0.0005
"""Python's switch interval in the engine and its workers. A first probe is prepared next to counting probes, which
compute all the time: at each of its file accesses it loses the interpreter for this long. With the usual 5 ms it took
four times as long as by itself.
"""
_FINISH_SECONDS: Final = 30
"""Limit of the process that finishes kernels after a run."""
UNUSABLE = 2
"""Exit status if the probes cannot be used: starting the engine again would not help."""
_LAUNCH_SECONDS: Final = 60
"""The hook's own default of ``TUI_PROBE_ENGINE_TIMEOUT``."""
_LAUNCH_SHARE: Final = 0.75
"""Share of a launch's wait for the engine that an assembler has: the launch must still get the reason why it passes."""


def serve(
    path: Path,
    reception: Reception,
    images: socket.socket | None,
    probes: Sequence[ChosenProbe],
    options: RunOptions,
    counts: SharedCounts,
    *,
    load_ptx: bool,
) -> int:
    """Answer at ``reception``, which is at ``path``, until SIGTERM or SIGINT. Returns the exit status.

    Kernels of images that come to ``images`` are prepared ahead of their launches; None: none are. ``counts`` are those
    of the cache, with a place for this process and for each of its workers.
    """
    signals = {signal.SIGTERM, signal.SIGINT}
    # Blocked before threads and workers start, which inherit the mask: only ``sigwait`` below takes them.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    sys.setswitchinterval(_SWITCH_SECONDS)
    folder = default_cache_directory() if options.cache else None
    cache = None if folder is None else Cache(folder)
    assembler = Assembler(seconds=_LAUNCH_SHARE * _launch_seconds(), cache=cache)
    search = threading.Thread(target=assembler.tools, name="tools")  # waits for processes
    search.start()
    try:
        server = _engine_server(path, reception, images, probes, options, assembler, cache, counts, load_ptx=load_ptx)
        search.join()
        server.start()
        if not load_ptx and options.machine_code != "off":
            start_early_trial(assembler.tools())
        if not load_ptx and options.machine_code == "all":  # most first launches are of kernels without PTX
            threading.Thread(target=server.read_graft_code, name="grafts", daemon=True).start()
    except ProbeError as error:
        sys.stderr.write(f"{error}\n")
        return UNUSABLE
    if empty_kernels := default_cache_directory(EMPTY_KERNEL_DIRECTORY):
        keep_empty_kernels(assembler, empty_kernels)
    signal.sigwait(signals)
    server.stop()
    return 0


def _engine_server(
    path: Path,
    reception: Reception,
    images: socket.socket | None,
    probes: Sequence[ChosenProbe],
    options: RunOptions,
    assembler: Assembler,
    cache: Cache | None,
    counts: SharedCounts,
    *,
    load_ptx: bool,
) -> EngineServer:
    """Return the server for the probes of a run. Raises ProbeError for probes that cannot be used."""
    (first_probe, first_options), *other_probes = prepared(probes, options, load_ptx=load_ptx)
    return EngineServer(
        path,
        first_probe,
        first_options,
        assembler=assembler,
        cache=cache,
        other_probes=other_probes,
        reception=reception,
        fused=places_to_fuse(probes, options),
        workers=counts.workers,
        patience=None if load_ptx or options.wait else PROBE_PATIENCE,
        images=images,
        choice=chosen_kernels(options),
        ahead_workers=usual_ahead_workers(),
        counts=counts,
    )


def finish_kernels(options: RunOptions, probes: Sequence[ChosenProbe], kernels: Sequence[KernelNote]) -> None:
    """Prepare kernels that were under way at the end of a run, in a directory of this process, for the cache."""
    folder = default_cache_directory()
    cache = None if folder is None else Cache(folder)
    assembler = Assembler(seconds=_FINISH_SECONDS, cache=cache)
    prepared_probes = prepared(probes, options, load_ptx=False)
    preparers = MultiPreparer(prepared_probes, assembler, cache, places_to_fuse(probes, options), PROBE_PATIENCE)
    preparers.work_ahead()
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=short_folder()) as scratch:
        mark_owner(Path(scratch))
        for number, kernel in enumerate(kernels):
            directory = Path(scratch) / str(number)
            directory.mkdir()
            (directory / "original.bin").symlink_to(Path(kernel.directory) / "original.bin")
            for step in range(preparers.ahead_steps):
                preparers.prepare_ahead(step, directory, kernel.arch, kernel.name)
        preparers.close()


def main() -> None:
    """Finish the kernels that a launcher names on stdin, at the latest after ``_FINISH_SECONDS``.

    This process leads a session. Its assemblers end with it: they have no limit that holds without their parent. The
    next run removes the directory of a process that was ended.
    """
    for number in (signal.SIGALRM, signal.SIGTERM):  # the launcher may have ignored them
        signal.signal(number, lambda *_: os.killpg(0, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.alarm(_FINISH_SECONDS)
    os.nice(AHEAD_NICENESS)
    finish_kernels(*pickle.load(sys.stdin.buffer))


def chosen_kernels(options: RunOptions) -> KernelChoice:
    """Return the kernels that the run may probe, as the hook reads the options."""
    included, excluded = ((text or "").split(":") for text in (options.kernels, options.excluded))
    return KernelChoice(
        list(filter(None, included)), list(filter(None, excluded)), includes_closed=options.machine_code == "all"
    )


def _launch_seconds() -> float:
    """Return the wait of a launch, in the hook's format."""
    try:
        return max(float(os.environ["TUI_PROBE_ENGINE_TIMEOUT"]), 1)
    except (KeyError, ValueError):
        return _LAUNCH_SECONDS


def prepared(
    probes: Sequence[ChosenProbe], options: RunOptions, *, load_ptx: bool
) -> list[tuple[Probe, PrepareOptions]]:
    """The probes and what is to be made of each. The first copies source files for all."""
    return [
        (
            choice.probe if options.detail else fold_sums(choice.probe),
            PrepareOptions(
                "ptx" if load_ptx else "bin",
                options.kernels or "",
                options.excluded or "",
                samples_blocks=bool(choice.sample),
                sources=options.source_bytes() if index == 0 else 0,
                folder=choice.name if len(probes) > 1 else "",
                machine_code=cast("MachineCode", options.machine_code),
            ),
        )
        for index, choice in enumerate(probes)
    ]


if __name__ == "__main__":
    main()

"""Control page of a run: memory shared by the launcher, the hook in every process and ``ctl``.

A file of a disk could be cut short, which ends each process that has it mapped. So it is memory that the launcher holds
open, sealed in its size, and that others open through ``/proc``.

It holds the switch and the budgets. The layout is here and in ``hook/src/budget/control.h``; a test compares both.
``tui-probe help control-page`` describes it for others.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import struct
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from tui_probe.errors import ControlError
from tui_probe.input_limits import RUN_JSON, parse_json
from tui_probe.trace.plain_file import read_within

from .spool import NAME, living_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAGIC: Final = b"tuiprobe"
VERSION: Final = 1
BYTES: Final = 4096
"""One page of memory: processes map it as a whole."""
NO_LIMIT: Final = (1 << 64) - 1
"""The limit of a budget that has none."""
FILE: Final = "control"
"""Link to the page in the spool folder of the run."""
_BUDGET_NAMES: Final = {"trace_bytes": "trace", "result_files": "result files", "log_bytes": "log"}
_BUDGET_OPTIONS: Final = {name: f"--max-{name.replace('_', '-')}" for name in _BUDGET_NAMES}

FIELDS: Final = {
    "magic": 0,
    "version": 8,
    "launcher": 16,
    "on": 24,
    "turned_on": 32,
    "shares": 40,
    "only_probe": 48,
    "ending": 56,
    "trace_bytes.limit": 64,
    "trace_bytes.used": 72,
    "trace_bytes.refused": 80,
    "result_files.limit": 88,
    "result_files.used": 96,
    "result_files.refused": 104,
    "log_bytes.limit": 112,
    "log_bytes.used": 120,
    "log_bytes.refused": 128,
    "over_share": 136,
    "launcher_bytes": 144,
    "write_rate": 152,
    "written_until": 160,
    "over_rate": 168,
    "processes": 256,
}
"""Byte offsets; every field has 64 bits, little-endian."""
PROCESSES: Final = slice(256, 1024)
"""Entries of processes: id, and the bytes and files that each has reserved and not yet written."""
PROBES: Final = slice(1024, BYTES)
"""Bytes with the names of the run's probes, comma-separated and zero-padded."""
BUDGETS: Final = ("trace_bytes", "result_files", "log_bytes")


@dataclass(frozen=True)
class Budget:
    """Limit and use of a budget, and the number of refusals. ``limit`` is None without one."""

    limit: int | None
    used: int
    refused: int

    @property
    def is_exhausted(self) -> bool:
        return self.refused > 0

    def has_room_for(self, amount: int) -> bool:
        """Return whether the limit allows this amount."""
        return self.limit is None or self.used + amount <= self.limit


class ControlPage:
    """A mapped page. Fields are read and written as whole words; what hooks add to is never
    written here, since no other process may add to it between reading and writing.
    """

    def __init__(self, memory: mmap.mmap, descriptor: int | None = None) -> None:
        self._memory = memory
        self.path = None if descriptor is None else Path(f"/proc/{os.getpid()}/fd/{descriptor}")
        """Path at which other processes find the page while this object lives; None: they cannot."""
        if descriptor is not None:
            weakref.finalize(self, os.close, descriptor)

    @classmethod
    def create(
        cls,
        path: Path,
        limits: Mapping[str, int],
        *,
        shares: bool,
        is_on: bool,
        probes: Sequence[str] = (),
        write_rate: int = NO_LIMIT,
    ) -> Self:
        """Make the page of a run, and a link to it at ``path`` for ``ctl``.

        Where the system has no such memory, the page is private to this process.
        """
        try:
            descriptor = _sealed_memory()
        except OSError:
            page = cls(mmap.mmap(-1, BYTES))
        else:
            page = cls(mmap.mmap(descriptor, BYTES), descriptor)
            with contextlib.suppress(OSError):  # a full disk: then ``ctl`` does not find it
                path.symlink_to(str(page.path))
        page["version"] = VERSION
        page["launcher"] = os.getpid()
        page["on"] = int(is_on)
        page["shares"] = int(shares)
        page["write_rate"] = write_rate
        for name, limit in limits.items():
            page[f"{name}.limit"] = limit
        names = ",".join(probes).encode()
        if len(names) <= PROBES.stop - PROBES.start:
            page._memory[PROBES.start : PROBES.start + len(names)] = names
        page._memory[: len(MAGIC)] = MAGIC
        return page

    @classmethod
    def open(cls, path: Path) -> Self:
        """The page of an active run. Raises ControlError where it is none, or another user's."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise ControlError(f"{path}: {error.strerror}") from error
        try:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid():
                raise ControlError(f"{path}: this run belongs to another user")
            if status.st_size < BYTES or not _is_sealed(descriptor):
                raise ControlError(f"{path}: not a control page")
            page = cls(mmap.mmap(descriptor, BYTES))
        finally:
            os.close(descriptor)
        if page._memory[: len(MAGIC)] != MAGIC or page["version"] != VERSION:
            raise ControlError(f"{path}: not a control page of this version")
        return page

    def __getitem__(self, field: str) -> int:
        return int(struct.unpack_from("<Q", self._memory, FIELDS[field])[0])

    def __setitem__(self, field: str, value: int) -> None:
        struct.pack_into("<Q", self._memory, FIELDS[field], value)

    @property
    def is_on(self) -> bool:
        return self["on"] != 0

    def switch(self, is_on: bool) -> bool:
        """Let launches be probed, or run unprobed. False if it is so already."""
        if self.is_on == is_on:
            return False
        self["turned_on"] += int(is_on)
        self["on"] = int(is_on)
        return True

    @property
    def probes(self) -> list[str]:
        """The names of the run's probes, in their order."""
        text = bytes(self._memory[PROBES]).rstrip(b"\0").decode(errors="replace")
        return text.split(",") if text else []

    @property
    def only_probe(self) -> str | None:
        """The probe that launches have from now on; None if all take turns."""
        number = self["only_probe"]
        return self.probes[number - 1] if 0 < number <= len(self.probes) else None

    def choose_probe(self, name: str | None) -> None:
        """Let launches have this one only, or None: all alternately. Raises ControlError if the run has no such
        probe.
        """
        if name is not None and name not in self.probes:
            raise ControlError(f"{name} is not a probe of the run; its probes: {', '.join(self.probes) or 'none'}")
        self["only_probe"] = 0 if name is None else self.probes.index(name) + 1

    def set_limit(self, name: str, limit: int) -> None:
        """Change a budget; from then on only the totals hold, as the user said.

        A rate (``write_rate``) counts from now on: what was booked at the old one is forgotten.
        """
        if name == "write_rate":
            self[name] = limit
            self["written_until"] = 0
            return
        self[f"{name}.limit"] = limit
        self["shares"] = 0

    def budget(self, name: str) -> Budget:
        """Return a budget, without reservations of processes that have ended."""
        limit = self[f"{name}.limit"]
        used = self[f"{name}.used"] - self._reservations_of_ended().get(name, 0)
        used = max(0, used) + (self["launcher_bytes"] if name == "trace_bytes" else 0)
        return Budget(None if limit == NO_LIMIT else limit, used, self[f"{name}.refused"])

    def _reservations_of_ended(self) -> dict[str, int]:
        """Return the reservations of killed processes, by budget. Hooks release them when they need room."""
        places = struct.iter_unpack("<QQQ", self._memory[PROCESSES])
        reservations = [(size, files) for pid, size, files in places if pid and not is_alive(pid)]
        return {
            "trace_bytes": sum(size for size, _ in reservations),
            "result_files": sum(files for _, files in reservations),
        }

    def budgets(self) -> dict[str, Budget]:
        return {name: self.budget(name) for name in BUDGETS}

    def record(self) -> dict[str, object]:
        """The budgets as run.json has them."""
        rate = self["write_rate"]
        record: dict[str, object] = {name: vars(budget) for name, budget in self.budgets().items()}
        record |= {"over_share": self["over_share"], "over_rate": self["over_rate"]}
        return record | {"write_rate": None if rate == NO_LIMIT else rate}


def _sealed_memory() -> int:
    """Return a descriptor of a page of memory that no one can make shorter.

    It is filled: a hole would be filled when the target writes, too late.
    """
    import fcntl  # readers of traces import this module on systems without it

    descriptor = os.memfd_create("tui-probe-control", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.fchmod(descriptor, 0o600)
        if os.pwrite(descriptor, bytes(BYTES), 0) < BYTES:  # ulimit -f
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_sealed(descriptor: int) -> bool:
    """Return whether no process can shorten a file, so that a mapping of it never faults."""
    import fcntl

    try:
        return bool(fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
    except OSError:  # a file of a disk
        return False


def is_alive(pid: int) -> bool:
    """Return whether there is such a process; one that has ended and was not waited for counts."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def find_page(path: Path) -> Path:
    """The page of a trace's run, or of the newest active run of a folder of traces. Raises ControlError."""
    if (path / "run.json").is_file():
        page = page_of_trace(path)
        if page is None:
            raise ControlError(f"{path}: the run of this trace has ended")
        return page
    pages = [page for pid in living_runs(path) if (page := path / f"{NAME}{pid}" / FILE).exists()]
    if not pages:
        raise ControlError(f"no active run in {path}; pass a trace or the --tracedir of the run")
    return max(pages, key=lambda page: page.stat().st_ctime_ns)


def page_of_trace(trace: Path) -> Path | None:
    """The page of the run that makes a trace; None once it has ended, and where the trace does not say."""
    try:
        launcher = parse_json(read_within(trace / "run.json", RUN_JSON)).get("launcher")
    except (OSError, ValueError, AttributeError):
        return None
    if not isinstance(launcher, int) or launcher not in living_runs(trace.parent):
        return None
    page = trace.parent / f"{NAME}{launcher}" / FILE
    return page if page.exists() else None


class RecordingWindow:
    """Turns the switch of a run on and off, each once: what a user does with it in between stays."""

    def __init__(self, control: ControlPage, start_seconds: float, duration: float | None) -> None:
        self._control = control
        self._start_seconds: float | None = start_seconds if start_seconds > 0 else None
        self._end_seconds = None if duration is None else max(start_seconds, 0.0) + duration

    def tick(self, elapsed: float) -> None:
        """Switch recording when it is due. Called now and then; ``elapsed`` is seconds since the target's start."""
        if self._start_seconds is not None and elapsed >= self._start_seconds:
            self._start_seconds = None
            self._control.switch(True)
        if self._end_seconds is not None and elapsed >= self._end_seconds:
            self._end_seconds = None
            self._control.switch(False)


class Recording(NamedTuple):
    """State of recording, and the names of the budgets that are exhausted."""

    is_on: bool
    budget_names: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Options of ``run`` that raise the limits."""


class RecordingSwitch:
    """Recording switch of a run, found through its traces. One thread calls ``look``; any may call ``toggle``."""

    def __init__(self) -> None:
        self._page: ControlPage | None = None

    def look(self, traces: Iterable[Path]) -> Recording | None:
        """Read the state; None if the run has no control page, or belongs to another user."""
        if self._page is None:
            self._page = next(filter(None, map(_control_page, traces)), None)
        if self._page is None:
            return None
        names = [name for name, budget in self._page.budgets().items() if budget.is_exhausted]
        return Recording(
            self._page.is_on,
            tuple(_BUDGET_NAMES[name] for name in names),
            tuple(_BUDGET_OPTIONS[name] for name in names),
        )

    def toggle(self) -> bool | None:
        """Toggle recording; return whether it is on now, or None if ``look`` has found no switch."""
        page = self._page
        if page is None:
            return None
        page.switch(not page.is_on)
        return page.is_on


def _control_page(trace: Path) -> ControlPage | None:
    """Open the control page of the run of a trace; None if it cannot be opened."""
    path = page_of_trace(trace)
    try:
        return None if path is None else ControlPage.open(path)
    except ControlError:
        return None

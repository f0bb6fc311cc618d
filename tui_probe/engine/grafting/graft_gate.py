"""Allow grafts into SASS only where the self-test of this GPU and driver passed.

The outcome is kept per driver, architecture, ptxas and version of our own code; what could not be tried is tried again
by the next run that needs it.

The self-test takes 2 to 3 s. It starts with the engine, next to the program's own start, not at the first graft: the
engine starts this module as a process, which keeps the outcome; kernels that need it wait. The process has a session of
its own and outlives a run that ends sooner. The run does not wait for it, and the next run has the outcome.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import re
import subprocess
import sys
import threading
from ctypes import byref, c_int, c_uint
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from tui_probe.cuda_driver import DRIVER_LIBRARY
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.cache import default_cache_directory, digest
from tui_probe.engine.grafting.snippet_ptx import is_graftable
from tui_probe.engine.kernel_cache import code_digest
from tui_probe.engine.whole_files import read_file, write_file
from tui_probe.input_limits import parse_json
from tui_probe.own_python import own_environment
from tui_probe.probe_model.probe import Save
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.probe_model.probe import Probe
    from tui_probe.reasons import Reason
    from tui_probe.toolchain import Tool

_VERSION_FILE: Final = Path("/proc/driver/nvidia/version")
_DRIVER_VERSION: Final = re.compile(r"Kernel Module\D*([\d.]+)")
_TRIAL_SECONDS: Final = 60
"""A wrong graft may loop on the GPU for ever: the process of the trial is ended then."""
_NOT_TRIED: Final = "not run"
_STORED_OUTCOMES: Final = frozenset({"passed", "failed"})
_ATTRIBUTES: Final = {"major": 75, "minor": 76, "mode": 20}
"""CUdevice_attribute of the compute capability and the compute mode."""


class TrialOutcome(NamedTuple):
    """Outcome of a self-test, and of its parts: ``passed``, what went wrong, or "" if there is no such code."""

    outcome: str
    """``passed``, ``failed`` or ``impossible``."""
    words: str = ""
    """Fault of code at entries and exits."""
    slots: str = ""
    """Values kept in slots."""
    instructions: str = ""
    """Probes at single instructions."""
    pruned: str = ""
    """Kernels in a cubin of their own."""
    records: str = ""
    """Several records of a thread."""
    blocks: str = ""
    """Probes at basic blocks."""
    short_records: str = ""
    """Starts of phases in shorter code."""
    copies: str = ""
    """Bulk copies only."""


class TrialPart(Enum):
    """Kind of graft that a part of the self-test decides on."""

    ENTRIES = "entries"
    """Code at entries and exits only."""
    INSTRUCTIONS = "instructions"
    """Counts at instructions."""
    BLOCKS = "blocks"
    """Counts where basic blocks begin."""
    RECORDS = "records"
    """Records at instructions, several per slot."""
    SHORT_RECORDS = "short_records"
    """Starts of phases in shorter code, also for kernels that leave few registers."""
    COPIES = "copies"
    """Bulk copies only, for kernels that leave too few registers for more."""


def trial_part(probe: Probe) -> TrialPart:
    """Return the part of the trial that decides whether a probe can be grafted."""
    if is_graftable(probe):
        return TrialPart.ENTRIES
    if any(position.is_block for position in probe.positions):
        return TrialPart.BLOCKS
    snippets = [point.before for point in probe.points if point.before]
    saves = (statement for snippet in snippets for statement in snippet.statements if isinstance(statement, Save))
    return TrialPart.RECORDS if any(not save.adds for save in saves) else TrialPart.INSTRUCTIONS


class Gate(Protocol):
    """Interface of what decides whether grafts are on."""

    def refusal(self, arch: int, part: TrialPart) -> Reason | None:
        """Return why there are no grafts on a device of ``arch`` (90), or none of that kind; None if they are on."""

    def is_known(self, arch: int) -> bool:
        """Return whether the other methods answer without waiting for a self-test."""

    def allows_slots(self, arch: int) -> bool:
        """Return whether values may be kept in slots, for kernels that leave no register for them."""

    def pruning_fault(self, arch: int) -> str:
        """Return why kernels stay in their whole cubin; "" if they get one of their own."""


class OpenGate:
    """Gate for code that never runs: grafts need no trial."""

    def refusal(self, _arch: int, _part: TrialPart) -> Reason | None:
        """Return None: grafts are on."""
        return None

    def is_known(self, _arch: int) -> bool:
        """Return True: no self-test is awaited."""
        return True

    def allows_slots(self, _arch: int) -> bool:
        """Return True: values may be kept in slots."""
        return True

    def pruning_fault(self, _arch: int) -> str:
        """Return "": kernels get a cubin of their own."""
        return ""


class GraftGate:
    """Decides by self-test whether grafts are on, per architecture. Safe to use from several threads, which wait for
    one trial.
    """

    def __init__(self, folder: Path | None, tools: Sequence[Tool]) -> None:
        """Keep outcomes in ``folder``; None: in this object only."""
        self._folder = folder
        self._tools = tools
        self._outcomes: dict[int, TrialOutcome] = {}
        self._lock = threading.Lock()

    def refusal(self, arch: int, part: TrialPart) -> Reason | None:
        """Return why there are no grafts on a device of ``arch`` (90), or none of that kind; None if they are on."""
        outcome = self._outcome(arch)
        if outcome.outcome == "passed":
            results = {
                TrialPart.ENTRIES: (),
                TrialPart.INSTRUCTIONS: (outcome.instructions,),
                TrialPart.BLOCKS: (outcome.instructions, outcome.records, outcome.blocks),
                TrialPart.RECORDS: (outcome.instructions, outcome.records),
                TrialPart.SHORT_RECORDS: (outcome.instructions, outcome.records, outcome.short_records),
                TrialPart.COPIES: (outcome.records, outcome.short_records, outcome.copies),
            }[part]
            fault = next((result for result in results if result != "passed"), None)
            return None if fault is None else because("graft-instructions-fail", words=fault or _NOT_TRIED)
        return because("graft-fails" if outcome.outcome == "failed" else "graft-untested", words=outcome.words)

    def is_known(self, arch: int) -> bool:
        """Return whether this process or an earlier one has an outcome."""
        return arch in self._outcomes or self._stored_outcome(arch) is not None

    def allows_slots(self, arch: int) -> bool:
        """Return whether the trial passed, also with values kept in slots."""
        outcome = self._outcome(arch)
        return outcome.outcome == "passed" and outcome.slots == "passed"

    def pruning_fault(self, arch: int) -> str:
        """Return the fault of the trial with a pruned cubin; "" if it passed, or if grafts are off anyway."""
        outcome = self._outcome(arch)
        return "" if outcome.outcome != "passed" or outcome.pruned == "passed" else outcome.pruned or _NOT_TRIED

    def _outcome(self, arch: int) -> TrialOutcome:
        with self._lock:
            if arch not in self._outcomes:
                with _lock_outcome(self._path(arch)):
                    self._outcomes[arch] = self._stored_outcome(arch) or self._run_trial(arch)
            return self._outcomes[arch]

    def _path(self, arch: int) -> Path | None:
        name = _outcome_file(self._tools, str(arch))
        return None if self._folder is None or name is None else self._folder / name

    def _stored_outcome(self, arch: int) -> TrialOutcome | None:
        path = self._path(arch)
        return None if path is None else stored_outcome(path)

    def _run_trial(self, arch: int) -> TrialOutcome:
        command = [sys.executable, "-P", "-m", "tui_probe.engine.trial.graft_trial", "--arch", str(arch)]
        try:
            process = subprocess.run(
                command,
                capture_output=True,
                timeout=_TRIAL_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
                env=own_environment(),
            )
            outcome = _read_outcome(process.stdout)
        except subprocess.TimeoutExpired as error:
            outcome = _unfinished_outcome(error.stdout)
        except OSError as error:
            return TrialOutcome("impossible", f"{sys.executable}: {error.strerror}")
        except ValueError:
            last_lines = process.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
            return TrialOutcome("impossible", f"status {process.returncode}: {last_lines[0]}")
        self._store(arch, outcome)
        return outcome

    def _store(self, arch: int, outcome: TrialOutcome) -> None:
        path = self._path(arch)
        if path is None or outcome.outcome not in _STORED_OUTCOMES:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps(outcome._asdict()).encode())
        except OSError:  # the next run tries again
            return


def _outcome_file(tools: Sequence[Tool], arch: str) -> str | None:
    """Return the name of the file of an outcome; None where the driver's version is unknown."""
    version = driver_version()
    identity = repr([(str(tool.path), tool.version) for tool in tools])
    return f"{version}-sm_{arch}-{digest(code_digest().encode(), identity.encode())[:16]}.json" if version else None


def has_any_outcome(folder: Path, tools: Sequence[Tool]) -> bool:
    """Return whether the self-test ran here for some device, or cannot be kept for another run."""
    pattern = _outcome_file(tools, "*")
    return pattern is None or any(True for _ in folder.glob(pattern))


@contextlib.contextmanager
def _lock_outcome(outcome: Path | None) -> Iterator[None]:
    """Hold the file of an outcome: processes of an engine that need it at the same time wait for one trial."""
    import fcntl  # doctor imports this module on systems without it

    with contextlib.ExitStack() as stack:
        if outcome is not None:
            with contextlib.suppress(OSError):  # then each tries
                outcome.parent.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(outcome.with_suffix(".lock").open("wb"))
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def stored_outcome(path: Path) -> TrialOutcome | None:
    """Return the outcome in a file of the cache; None if it cannot be read."""
    try:
        return _read_outcome(read_file(path))
    except (OSError, ValueError):
        return None


def driver_version() -> str:
    """Return the version of the NVIDIA driver; "" if the system does not report it."""
    try:
        match = _DRIVER_VERSION.search(_VERSION_FILE.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return match[1] if match else ""


def _unfinished_outcome(text: bytes | str | None) -> TrialOutcome:
    """Return the outcome that an unfinished trial printed, or that it did not finish in time."""
    try:
        return _read_outcome(text if isinstance(text, bytes) else b"")
    except ValueError:
        return TrialOutcome("failed", f"did not finish within {_TRIAL_SECONDS} s")


def _read_outcome(text: bytes) -> TrialOutcome:
    """Parse the outcome in the last line of a trial's output. Raises ValueError."""
    fields = parse_json(text.strip().rpartition(b"\n")[2])
    if not isinstance(fields, dict) or "outcome" not in fields:
        raise ValueError("no result")
    return TrialOutcome(*(str(fields.get(name, "")) for name in TrialOutcome._fields))


def start_early_trial(tools: Sequence[Tool]) -> None:
    """Start the self-test in a process that outlives this one, unless this machine has an outcome.

    The process ends when the self-test does, at the latest after ``_TRIAL_SECONDS``.
    """
    folder = default_cache_directory("grafts")
    if folder is None or not tools or has_any_outcome(folder, tools):
        return
    with contextlib.suppress(OSError):  # then the first graft tries
        subprocess.Popen(
            [sys.executable, "-P", "-m", "tui_probe.engine.grafting.graft_gate"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=own_environment(),
            start_new_session=True,
        )


def shared_architecture(library: str = DRIVER_LIBRARY) -> int | None:
    """Return the architecture (90) of the first device; None without one, and if it is for one process at a time.

    Such a device would refuse the program while the self-test runs. Makes no context.
    """
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return None
    values = {}
    if driver.cuInit(c_uint(0)):
        return None
    for name, code in _ATTRIBUTES.items():
        value = c_int()
        if driver.cuDeviceGetAttribute(byref(value), c_int(code), c_int(0)):
            return None
        values[name] = value.value
    return None if values["mode"] else 10 * values["major"] + values["minor"]


def keep_outcome(folder: Path | None, library: str = DRIVER_LIBRARY) -> bool:
    """Run the self-test for the first device and keep its outcome. False if that is not possible now."""
    arch = shared_architecture(library)
    if arch is None:
        return False
    GraftGate(folder, Assembler().tools()).refusal(arch, TrialPart.ENTRIES)
    return True


if __name__ == "__main__":
    keep_outcome(default_cache_directory("grafts"))

"""Errors while a kernel runs, which the simulated driver maps to its error codes."""

from __future__ import annotations

from tui_probe.errors import SimulationError
from tui_probe.reasons import because


class UnsupportedInstructionError(SimulationError):
    """An instruction, or a form of one, that the simulated GPU does not execute."""

    def __init__(self, text: str, line: int, reason: str = "unsupported-instruction") -> None:
        super().__init__(because(reason, instruction=text, at=line))
        self.line = line


class MemoryFaultError(SimulationError):
    """An access outside the memory of its state space. ``address`` is as the kernel computed it.

    ``place`` is that of the thread (see ``lanes``), None of an access by the host; ``value`` what a store would have
    stored, as a hexadecimal number. ``limit`` is the size of the memory in bytes.
    """

    problem = "illegal address"

    def __init__(
        self, space: str, address: int, size: int, line: int, location: str, place: int | None, limit: int
    ) -> None:
        super().__init__(f"{self.problem} {address:#x} ({size} bytes, {space} memory) at line {line}, {location}")
        self.space = space
        self.address = address
        self.size = size
        self.line = line
        self.place = place
        self.limit = limit
        self.value: str | None = None


class MisalignedAddressError(MemoryFaultError):
    """An access to an address that is not a multiple of its size."""

    problem = "misaligned address"


class DeadlockError(SimulationError):
    """Threads wait, and nothing that could release them can run.

    They wait at ``waiting_point``, one of them at ``line``; ``location`` is the block and thread of that one.
    ``detail`` says who is missing. ``other_location`` is the line, block and thread of one of the same block that waits
    at another instruction.
    """

    def __init__(self, waiting_point: str, line: int, location: str, detail: str) -> None:
        super().__init__(
            f"deadlock at {waiting_point}, line {line}: {detail}; one of the waiting threads is {location}"
        )
        self.detail = f"{waiting_point}: {detail}"
        self.location = location
        self.line = line
        self.other_location = ""


class AbortError(SimulationError):
    """The kernel ends itself, or cannot continue. ``kind`` is that of the finding, ``detail`` the reason."""

    kind = "trap"

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


class TrapError(AbortError):
    """The kernel executed ``trap`` or ``brkpt``, or freed memory that it had not allocated."""


class KernelAssertionError(AbortError):
    """An ``assert`` of the kernel failed."""

    kind = "assertion"


class MBarrierError(AbortError):
    """An mbarrier is used as PTX does not allow: too many arrivals, or one that was not initialised."""

    kind = "invalid_mbarrier"

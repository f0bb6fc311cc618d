"""Every error that tui-probe raises on purpose, and the suggestion of a known name in their texts.

ProbeError                 anything below; its text is meant for a user
├── PtxError               PTX that cannot be read, or lacks what was asked for
├── ImageError             a kernel image (cubin, fatbin, PTX) that cannot be read or holds no PTX
├── ProbeFileError         a probe file that cannot be used
├── UnsupportedKernelError a kernel that cannot be probed without changing what it does
├── ToolchainError         an assembler that is missing or failed
├── TraceError             a trace directory, log or result file that cannot be read
├── ImportFileError        a file of another profiler that cannot be read, or holds nothing to show
├── ChoiceError            a kernel, launch or view that was asked for and is not in the trace
│   └── UsageError         words of the command line that contradict each other, or name a page that there is not
├── HelpError              a help topic, or a word of the glossary, that there is not
├── BandwidthError         a memory or disk whose bandwidth cannot be measured
├── LaunchError            a target, driver or hook that cannot be started
│   ├── NoDriverError      no CUDA driver on this machine
│   └── TargetError        a command that is not there (127) or cannot be executed (126)
└── SimulationError        PTX that the simulated GPU cannot execute
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_probe.reasons import Reason

SCARCE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
"""Numbers of system errors where there are no descriptors, memory or processes left."""


class ProbeError(Exception):
    """Base of all errors of tui-probe. ``str(error)`` names the file and what to do.

    An error that can end the preparation of a kernel may be raised with the ``reason`` that is reported for the kernel.
    """

    def __init__(self, message: str | Reason = "") -> None:
        super().__init__(message if isinstance(message, str) else message.text)
        self._reason = None if isinstance(message, str) else message

    @property
    def reason(self) -> Reason | None:
        """The reason for which a kernel was not probed, if the error is about one."""
        return self._reason


class PtxError(ProbeError):
    """PTX that cannot be read. ``line`` is 1-based, 0 where no line applies."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line
        self._message = message

    @property
    def reason(self) -> Reason:
        return because("ptx-unreadable", line=self.line, words=self._message)


class ImageError(ProbeError):
    """A kernel image that cannot be read or holds no PTX."""

    @property
    def reason(self) -> Reason:
        return self._reason or because("image-unreadable", words=str(self))


class ProbeFileError(ProbeError):
    """A probe file that cannot be used."""


class UnsupportedKernelError(ProbeError):
    """A kernel that cannot be probed without changing what it does.

    ``reason`` has the line of the kernel's PTX, and its advice says what to write instead.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self._reason: Reason = reason

    @property
    def reason(self) -> Reason:
        return self._reason


class ToolchainError(ProbeError):
    """An assembler that is missing or failed. ``details`` are its command and all that it said."""

    def __init__(self, message: str | Reason, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class NewerPtxError(ToolchainError):
    """PTX of a version, or for a target, that is newer than every ptxas on this machine."""


class TraceError(ProbeError):
    """A trace directory, log or result file that cannot be read."""


class ChoiceError(ProbeError):
    """A kernel, launch or view that was asked for and is not in the trace."""


class UsageError(ChoiceError):
    """Words of the command line that contradict each other, or name a page that there is not."""


class HelpError(ProbeError):
    """A help topic, or a word of the glossary, that there is not."""


class ImportFileError(ProbeError):
    """A file of another profiler that cannot be read, or holds nothing to show."""


class BandwidthError(ProbeError):
    """A memory or disk whose bandwidth cannot be measured."""


class LaunchError(ProbeError):
    """A target, driver or hook that cannot be started."""


class NoDriverError(LaunchError):
    """CUDA driver that is missing on this machine."""


class ControlError(ProbeError):
    """A run that cannot be reached, or no run at all."""


class TargetError(LaunchError):
    """A command that cannot be executed. ``status`` is what a shell would return: 127 not found, 126 not executable."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class SimulationError(ProbeError):
    """PTX that the simulated GPU cannot execute."""

    printf_output: bytes = b""
    """Output of the threads of a kernel until the error."""


_SIMILARITY: Final = 0.65
"""Ratio of ``difflib`` from which on a name is suggested: ``probes`` is not for ``frob``."""


def did_you_mean(word: str, names: Iterable[str], max_names: int = 1) -> str:
    """Return ``: did you mean event-log?``, with the ``max_names`` likely of the names; "" if none is like the word."""
    import difflib  # here: it takes longer to import than this module, and most runs have no wrong name

    candidates = list(names)
    containing_names = [name for name in candidates if len(word) > 2 and word in name]
    similar_names = list(
        dict.fromkeys([*difflib.get_close_matches(word, candidates, max_names, _SIMILARITY), *containing_names])
    )[:max_names]
    return suggestion(similar_names)


def suggestion(names: Sequence[str]) -> str:
    """Return ``: did you mean --palette or --probe?``; "" without names."""
    return f": did you mean {' or '.join(names)}?" if names else ""

"""Every error that tui-probe raises on purpose.

ProbeError                 anything below; its text is meant for a person
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


class ProbeError(Exception):
    """Base of all errors of tui-probe. ``str(error)`` names the file and what to do."""


class PtxError(ProbeError):
    """PTX that cannot be read. ``line`` is 1-based, 0 where no line applies."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line


class ImageError(ProbeError):
    """A kernel image that cannot be read or holds no PTX."""


class ProbeFileError(ProbeError):
    """A probe file that cannot be used."""


class UnsupportedKernelError(ProbeError):
    """A kernel that cannot be probed without changing what it does.

    ``line`` is 1-based in the kernel's PTX, 0 where none applies; ``instead`` says what to write, "" if nothing helps.
    """

    def __init__(self, message: str, line: int = 0, instead: str = "") -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line
        self.instead = instead


class ToolchainError(ProbeError):
    """An assembler that is missing or failed."""


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
    """There is no CUDA driver on this machine."""


class TargetError(LaunchError):
    """A command that cannot be executed. ``status`` is what a shell would return: 127 not found, 126 not executable."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class SimulationError(ProbeError):
    """PTX that the simulated GPU cannot execute."""

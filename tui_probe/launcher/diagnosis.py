"""Diagnosis of a run: why there is no trace, and failures of the program's own environment with the usual fix."""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ELF64 = b"\x7fELF\x02"
PROGRAM_HEADERS = struct.Struct("<Q14xHH")
"""Part of an ELF header from byte 32: offset of the program headers; from byte 54 their size and number."""
INTERPRETER = 3
"""``PT_INTERP``: the type of the program header that names the dynamic loader."""
_MAX_MESSAGE_CHARACTERS: Final = 300
"""Limit of what is shown of a message of the program."""
_TAIL_BYTES: Final = 64 << 10
"""Bytes at the end of stderr that are searched."""
_FRAME: Final = re.compile(r'^ *File "(?P<file>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
_LIBRARY_FOLDERS: Final = re.compile(r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|^<frozen ")
_FIXES: Final = tuple(
    (re.compile(pattern, re.MULTILINE | re.IGNORECASE), fix)
    for pattern, fix in (
        (
            r"^.*libnvrtc[\w.-]*(?:: cannot open shared object|.*(?:not found|could not|cannot|failed)).*$"
            r"|^.*(?:could not|cannot|failed to|unable to) (?:find|load|open)[^\n]*nvrtc.*$",
            "install NVRTC for the program's Python (pip install nvidia-cuda-nvrtc), or put its directory into"
            " LD_LIBRARY_PATH",
        ),
        (
            r"^.*(?:libNVVM|libnvvm|libdevice)[^\n]*(?:not found|cannot|could not|missing).*$|^.*NvvmSupportError.*$",
            "install NVVM for the program's Python (pip install 'numba-cuda[cu13]' or the CUDA toolkit)",
        ),
        (
            r"^.*lib(?:cublas|cudnn|cufft|curand|cusolver|cusparse|nvJitLink|cudart|nccl|nvToolsExt)[\w.-]*"
            r": cannot open shared object.*$",
            "install this CUDA library for the program, or put its directory into LD_LIBRARY_PATH",
        ),
        (
            r"^.*Numba needs NumPy.*$|^.*initialization of _internal failed without raising.*$",
            "upgrade numba, or install a NumPy that numba supports: pip install -U numba numba-cuda",
        ),
        (
            r"^.*compiled using NumPy 1\.x cannot be run in.*$|^.*numpy\.dtype size changed.*$"
            r"|^.*numpy\.core\.multiarray failed to import.*$|^.*_ARRAY_API not found.*$"
            r"|^.*module 'numpy' has no attribute .*$",
            "install a NumPy that the program's packages support (pip install 'numpy<2'), or upgrade these packages",
        ),
        (
            r"^.*(?:module 'numba(?:\.cuda)?[\w.]*' has no attribute|cannot import name '\w+' from 'numba).*$"
            r"|^.*No module named 'numba\.cuda.*$",
            "upgrade numba-cuda in the program's Python: pip install -U numba-cuda",
        ),
        (
            r"^.*CUDA driver version is insufficient.*$|^.*CUDA_ERROR_UNSUPPORTED_PTX_VERSION.*$"
            r"|^.*Unsupported \.version \d.*$",
            "the program's CUDA is newer than the driver: update the driver, or install an older CUDA for the program",
        ),
        (
            r"^ModuleNotFoundError: No module named .*$",
            "install the module for the program's Python, or activate its environment",
        ),
        (
            r"^.*error while loading shared libraries: .*$|^.*version `GLIBC(?:XX)?_[\d.]+' not found.*$"
            r"|^OSError: [^\n]*: cannot open shared object file.*$"
            r"|^ImportError: [^\n]*(?:undefined symbol|cannot open shared).*$",
            "install this library for the program, or put its directory into LD_LIBRARY_PATH",
        ),
    )
)  # fmt: skip
"""Messages that name a fault of the program's environment, with the usual fix."""


def unseen_drivers(report: Path, driver: Path) -> list[str]:
    """Return notices of drivers that the hook does not see, one "PID PATH" in each line of the file ``report``.

    ``driver`` is the one that the hook calls. One message for each driver, in the order of the file.
    """
    try:
        lines = report.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    processes: dict[str, list[str]] = {}
    for line in dict.fromkeys(lines):  # the audit library and the hook of a process both write
        pid, _, path = line.partition(" ")
        processes.setdefault(path, []).append(pid)
    return [_driver_message(path, pids, driver) for path, pids in processes.items()]


def _driver_message(path: str, pids: Sequence[str], driver: Path) -> str:
    problem = f"{_processes(pids)} loaded {path} directly, so its launches were not recorded"
    if _is_same_file(Path(path), driver):
        return f"{problem}; load it with dlopen, not with dlmopen or RTLD_DEEPBIND"
    return f"{problem}; tui-probe uses {driver}; to use the program's driver, pass --driver {path}"


def _is_same_file(path: Path, other_path: Path) -> bool:
    try:
        return path.samefile(other_path)
    except OSError:
        return False


def unreachable(command: Sequence[str], path: str | None) -> list[str]:
    """Return the notice of a command that no library can be preloaded into; none if it has a dynamic loader."""
    program = shutil.which(command[0], path=path)
    if program is None:
        return []
    if is_static(Path(program)):
        return [f"{program} is statically linked, so tui-probe cannot see its launches; link it with the shared libc"]
    if takes_other_rights(Path(program)):
        return [
            f"{program} runs with the rights of another user, so the hook cannot be loaded; run the program as"
            " its owner"
        ]
    return []


def untraced(failures: Mapping[str, Sequence[int]]) -> list[str]:
    """Return notices of processes that launch kernels and have no trace, by the reasons that their hooks noted."""
    return [
        f"{_processes(pids)} launched kernels, but their trace could not be created: {reason}"
        for reason, pids in failures.items()
    ]


def still_running() -> list[str]:
    """Return notices of processes of the run that outlive it, as daemons do."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal() and _is_of_run(path)]
    if not pids:
        return []
    return [f"{_processes(pids)} of the run is still running and has launched no kernel yet"]


def _processes(pids: Sequence[int | str]) -> str:
    return f"process {pids[0]}" + (f" and {len(pids) - 1} more" if len(pids) > 1 else "")


def _is_of_run(process: Path) -> bool:
    """Return whether a process was started by this launcher under the hook, and lives."""
    marker = f"TUI_PROBE_LAUNCHER={os.getpid()}".encode()
    try:
        if (process / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z":
            return False
        return marker in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def takes_other_rights(program: Path) -> bool:
    """Return whether the loader ignores LD_PRELOAD for a program: it is setuid, setgid, or has capabilities."""
    try:
        mode = program.stat()
        is_privileged = (mode.st_mode & stat.S_ISUID and mode.st_uid != os.geteuid()) or (
            mode.st_mode & stat.S_ISGID and mode.st_gid != os.getegid()
        )
        return bool(is_privileged) or "security.capability" in os.listxattr(program)
    except OSError:
        return False


def is_static(program: Path) -> bool:
    """Return whether a file is an ELF program without a dynamic loader."""
    try:
        with program.open("rb") as file:
            header = file.read(64)
            if len(header) < 64 or not header.startswith(ELF64):
                return False
            offset, size, count = PROGRAM_HEADERS.unpack_from(header, 32)
            file.seek(offset)
            table = file.read(size * count)
    except OSError:
        return False
    kinds = [int.from_bytes(table[start : start + 4], "little") for start in range(0, len(table), max(size, 1))]
    return INTERPRETER not in kinds


def program_failure(stderr: Path, returncode: int | None, combined_output: Path | None = None) -> str | None:
    """Return what failed in the environment of a program that ended with an error, and the usual fix; else None.

    A program that cannot import NumPy or load NVRTC fails without tui-probe, too. Naming the line and the fix saves the
    user from looking for the fault in the profiler. ``combined_output`` has the text of both streams if they
    are one file, e.g. a terminal; then ``stderr`` is empty.
    """
    if not returncode:
        return None
    return failure_in(_end_of(stderr) or ("" if combined_output is None else _end_of(combined_output)))


def failure_text(stderr: Path, returncode: int | None) -> str:
    """Return why a program ended with an error: a known failure, else the last line of stderr; "" for no error."""
    if not returncode:
        return ""
    text = _end_of(stderr)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return failure_in(text) or (lines[-1][:_MAX_MESSAGE_CHARACTERS] if lines else "")


def _end_of(stderr: Path) -> str:
    """The end of a file of stderr; "" if it cannot be read."""
    try:
        with open_plain(stderr) as file:
            file.seek(max(0, stderr.stat().st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def failure_in(text: str) -> str | None:
    """Return the last known failure in a text of stderr, with the program's line; None if there is none."""
    failures = [(match, fix) for pattern, fix in _FIXES for match in list(pattern.finditer(text))[-1:]]
    if not failures:
        return None
    match, fix = max(failures, key=lambda failure: failure[0].start())
    location = _line_before(text[: match.start()])
    return (
        f"the program's environment is broken{location}: {match[0].strip()[:_MAX_MESSAGE_CHARACTERS]}; usual fix: {fix}"
    )


def _line_before(text: str) -> str:
    """Return `` at train.py:12``, the last line of the program itself in a traceback; "" without a traceback."""
    frames = [(frame["file"], frame["line"]) for frame in _FRAME.finditer(text)]
    program_frames = [frame for frame in frames if not _LIBRARY_FOLDERS.search(frame[0])]
    if not frames:
        return ""
    file, line = (program_frames or frames)[-1]
    return f" at {file}:{line}"

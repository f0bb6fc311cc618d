"""Failures of a program's own environment, recognised in the end of its stderr, with the usual fix.

A program that cannot import NumPy or load NVRTC fails without tui-probe, too. Naming the line and the fix saves the
user from looking for the fault in the profiler.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from pathlib import Path

_TAIL: Final = 64 << 10
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
            "upgrade numba, or install a NumPy that it supports: pip install -U numba numba-cuda",
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


def program_failure(stderr: Path, returncode: int | None) -> str | None:
    """Return what failed in the environment of a program that ended with an error, and the usual fix; else None."""
    if not returncode:
        return None
    try:
        with open_plain(stderr) as file:
            file.seek(max(0, stderr.stat().st_size - _TAIL))
            text = file.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return None
    return failure_in(text)


def failure_in(text: str) -> str | None:
    """Return the last known failure in a text of stderr, with the program's line; None if there is none."""
    failures = [(match, fix) for pattern, fix in _FIXES for match in list(pattern.finditer(text))[-1:]]
    if not failures:
        return None
    match, fix = max(failures, key=lambda failure: failure[0].start())
    where = _line_before(text[: match.start()])
    return f"the program's environment is broken{where}: {match[0].strip()[:300]}; usual fix: {fix}"


def _line_before(text: str) -> str:
    """Return `` at train.py:12``, the last line of the program itself in a traceback; "" without a traceback."""
    frames = [(frame["file"], frame["line"]) for frame in _FRAME.finditer(text)]
    own = [frame for frame in frames if not _LIBRARY_FOLDERS.search(frame[0])]
    if not frames:
        return ""
    file, line = (own or frames)[-1]
    return f" at {file}:{line}"

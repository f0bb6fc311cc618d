"""Bandwidth of the disk under a directory: a file that is written and read, past the page cache where possible."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.bandwidth.rates import Rate
from tui_probe.errors import BandwidthError

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK: Final = 8 << 20
"""Bytes of one write or read."""


def measure_disk(folder: Path, size: int, repeats: int) -> Iterator[Rate]:
    """Write and read a file of ``size`` bytes in ``folder``; it is removed again. Raises BandwidthError."""
    size = max(CHUNK, size // CHUNK * CHUNK)
    try:
        handle, path = tempfile.mkstemp(prefix="tui-probe-bandwidth-", dir=folder)
        os.close(handle)
    except OSError as error:
        raise BandwidthError(f"{folder}: {error.strerror}; pass a writable directory with --disk") from error
    try:
        yield _write_rate(path, size, repeats)
        yield _read_rate(path, size, repeats)
    except OSError as error:
        raise BandwidthError(f"{path}: {error.strerror}; pass another directory with --disk") from error
    finally:
        Path(path).unlink()


def _write_rate(path: str, size: int, repeats: int) -> Rate:
    times = []
    with _chunk() as chunk, _opened(path, os.O_WRONLY) as (file, direct):
        for _ in range(repeats):
            start = time.perf_counter()
            os.lseek(file, 0, os.SEEK_SET)
            for _ in range(size // CHUNK):
                if os.write(file, chunk) != CHUNK:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
            times.append(time.perf_counter() - start)
    return Rate.from_times("disk_write", f"disk, write{_cache_remark(direct)}", size, times)


def _read_rate(path: str, size: int, repeats: int) -> Rate:
    times = []
    with _chunk() as chunk, _opened(path, os.O_RDONLY) as (file, direct):
        for _ in range(repeats):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.lseek(file, 0, os.SEEK_SET)
            start = time.perf_counter()
            while os.readv(file, [chunk]):
                pass
            times.append(time.perf_counter() - start)
    return Rate.from_times("disk_read", f"disk, read{_cache_remark(direct)}", size, times)


@contextmanager
def _opened(path: str, flags: int) -> Iterator[tuple[int, bool]]:
    """Open a file, past the page cache (O_DIRECT) if its file system can; also yield whether it can."""
    try:
        file, direct = os.open(path, flags | os.O_DIRECT), True
    except OSError:
        file, direct = os.open(path, flags), False
    try:
        yield file, direct
    finally:
        os.close(file)


@contextmanager
def _chunk() -> Iterator[mmap.mmap]:
    """Yield page-aligned memory, as O_DIRECT needs; not all zeros, which some file systems do not store."""
    with mmap.mmap(-1, CHUNK) as chunk:
        chunk.write(os.urandom(1 << 16) * (CHUNK >> 16))
        yield chunk


def _cache_remark(direct: bool) -> str:
    """Return a remark where the page cache was not avoided, else ""."""
    return "" if direct else " (through the page cache)"

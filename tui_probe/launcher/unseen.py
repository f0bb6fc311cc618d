"""Why the hook saw nothing of a program that uses the GPU: drivers that are in a process beside the one that it calls,
and programs that it cannot get into."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ELF64 = b"\x7fELF\x02"
PROGRAM_HEADERS = struct.Struct("<Q14xHH")
"""Of an ELF header, from byte 32: where its program headers are; from byte 54 the size and the number of them."""
INTERPRETER = 3


def unseen_drivers(told: Path, driver: Path) -> list[str]:
    """What to say of the drivers that processes told of, one "PID PATH" in each line of the file ``told``.

    ``driver`` is the one that the hook calls. One message for each driver, in the order in which they were told of.
    """
    try:
        lines = told.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    processes: dict[str, list[str]] = {}
    for line in lines:
        pid, _, path = line.partition(" ")
        processes.setdefault(path, []).append(pid)
    return [_of_driver(path, pids, driver) for path, pids in processes.items()]


def _of_driver(path: str, pids: Sequence[str], driver: Path) -> str:
    several = f" and {len(pids) - 1} more" if len(pids) > 1 else ""
    where = f"process {pids[0]}{several} loaded {path} past tui-probe: what was launched through that was not seen"
    if _is_same(Path(path), driver):
        return f"{where}; have it opened with dlopen, not with dlmopen or RTLD_DEEPBIND"
    return f"{where}; tui-probe calls {driver}; --driver {path} has it call this one"


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def unreachable(command: Sequence[str], path: str | None) -> list[str]:
    """What to say of a command that no library can be preloaded into; nothing if it has a dynamic loader."""
    program = shutil.which(command[0], path=path)
    if program is None or not is_static(Path(program)):
        return []
    return [f"{program} is statically linked, so tui-probe cannot see what it launches: link it with the shared libc"]


def is_static(program: Path) -> bool:
    """Whether a file is an ELF program that asks for no dynamic loader."""
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

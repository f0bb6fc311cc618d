"""Files for the importers' tests: the real ones, unpacked, and made-up ones with one trap each."""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Sequence
from pathlib import Path

REAL = Path(__file__).parent.parent / "data"

IDENTITY = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
)  # fmt: skip
DETAILS = (*IDENTITY, "Section Name", "Metric Name", "Metric Unit", "Metric Value")


def real(folder: Path, name: str) -> Path:
    """A real file (``ncu/vec_full.csv``), unpacked into ``folder`` under its own name."""
    source = REAL / name
    if source.exists():
        return source
    path = folder / source.name
    if not path.exists():
        path.write_bytes(lzma.decompress((REAL / f"{name}.xz").read_bytes()))
    return path


def line(cells: Sequence[str]) -> str:
    """A row as ncu writes it."""
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


def identity(
    number: int, kernel: str, *, process: int = 7, grid: str = "(4, 1, 1)", block: str = "(64, 1, 1)"
) -> list[str]:
    """The cells that name a launch."""
    return [str(number), str(process), "app", "host", kernel, "1", "7", block, grid, "0", "9.0"]


def details(launches: Iterable[tuple[list[str], dict[tuple[str, str, str], str]]]) -> str:
    """A details page: of each launch its identity and its values by (section, name, unit)."""
    rows = [line(DETAILS)]
    for cells, values in launches:
        rows += [line([*cells, *metric, value]) for metric, value in values.items()]
    return "\n".join(rows) + "\n"


def write(folder: Path, text: str, name: str = "profile.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path

"""What the sources look like in numbers, and the limits that hold.

    python -m tests.structure

Prints modules, their sizes, files per directory and lines of goldens, each beside its limit and its goal, and ends with
status 1 if one is over its limit. A limit is only ever lowered: to the value that was reached, until it is the goal.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("tui_probe/", "probes/")
SOURCES: Final = (*PACKAGES, "hook/")


@dataclass(frozen=True)
class Row:
    """A number with the most that it may be, and the most that it should be."""

    name: str
    value: int
    limit: int
    goal: int
    where: str = ""

    @property
    def line(self) -> str:
        mark = "over the limit" if self.value > self.limit else "" if self.value <= self.goal else "over the goal"
        return f"{self.name:<44}{self.value:>8}{self.limit:>8}{self.goal:>8}  {mark:<15}{self.where}".rstrip()


def tracked() -> list[str]:
    """Return the paths of the files that are in the repository, and those that are new."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


def lines_of(path: str) -> int:
    return (ROOT / path).read_bytes().count(b"\n")


def rows(paths: list[str]) -> list[Row]:
    """Measure the files at these paths, relative to the repository."""
    modules = {
        path: lines_of(path)
        for path in paths
        if path.startswith(PACKAGES) and path.endswith(".py") and not path.endswith("__init__.py")
    }
    sources = (PurePosixPath(path) for path in paths if path.startswith(SOURCES))
    directories = Counter(str(path.parent) for path in sources if path.suffix in (".py", ".c", ".h"))
    goldens = sum(lines_of(path) for path in paths if path.startswith("tests/") and "/goldens/" in path)
    largest, widest = max(modules, key=modules.__getitem__), max(directories, key=directories.__getitem__)
    small = [path for path, lines in modules.items() if lines < 40]
    return [
        Row("modules of tui_probe and probes", len(modules), 940, 480),
        Row("modules of fewer than 40 lines", len(small), 130, 0, min(small, default="")),
        Row("lines of the largest module", modules[largest], 500, 500, largest),
        Row("files in the widest directory", directories[widest], 90, 40, widest),
        Row("lines of goldens", goldens, 16_000, 16_000),
        Row("lines of the median module, below 130", max(130 - int(statistics.median(modules.values())), 0), 50, 0),
    ]


def main() -> int:
    measured = rows(tracked())
    print(f"{'':<44}{'now':>8}{'limit':>8}{'goal':>8}")
    print("\n".join(row.line for row in measured))
    return int(any(row.value > row.limit for row in measured))


if __name__ == "__main__":
    sys.exit(main())

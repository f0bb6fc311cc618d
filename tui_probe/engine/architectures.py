"""What works on which architecture: the table of ``tui-probe help architectures``.

A test compares it with what the engine does to cubins of all of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because


class Support(NamedTuple):
    """What SASS mode supports on an architecture (90), and ``gpus`` that have it, "" where none is known."""

    arch: int
    gpus: str
    entries: bool = True
    """Probes of entries and exits."""
    counts: bool = True
    """Counts at instructions."""
    records: bool = True
    """Records at instructions."""
    blocks: bool = True
    """Counts of basic blocks."""


SUPPORT: Final = (
    Support(75, "T4, GeForce RTX 20", records=False),
    Support(80, "A100, A30"),
    Support(86, "A10, A40, GeForce RTX 30"),
    Support(87, "Jetson Orin", entries=False, counts=False, records=False, blocks=False),
    Support(88, ""),
    Support(89, "L4, L40, GeForce RTX 40"),
    Support(90, "H100, H200"),
    Support(100, "B200"),
    Support(103, "B300"),
    Support(107, ""),
    Support(110, "Jetson Thor"),
    Support(120, "GeForce RTX 50"),
    Support(121, "GB10"),
)
_OLDEST: Final = SUPPORT[0].arch
_HEAD: Final = (
    "| Architecture | GPUs | PTX mode | SASS: entry, exit | SASS: counts | SASS: records | SASS: blocks |",
    "|---|---|---|---|---|---|---|",
)


def table() -> str:
    """The table in Markdown."""
    return "\n".join([*_HEAD, f"| below sm_{_OLDEST} | V100, P100 | yes | no | no | no | no |", *map(_row, SUPPORT)])


def _row(one: Support) -> str:
    works = ("yes" if each else "no" for each in (one.entries, one.counts, one.records, one.blocks))
    return f"| sm_{one.arch} | {one.gpus or '–'} | yes | {' | '.join(works)} |"


def refuse_architecture(arch: int) -> None:
    """Raise UnsupportedKernelError for machine code of an architecture (90) into which nothing can be grafted."""
    without = {one.arch for one in SUPPORT if not (one.entries or one.counts)}
    if arch < _OLDEST or arch in without:
        raise UnsupportedKernelError(because("graft-architecture", gpu=f"sm_{arch}"))

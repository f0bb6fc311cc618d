"""Reasons not to probe a kernel: its architecture, unsupported PTX, or no match (:func:`no_match_reason`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.helper_values.nonfinite import NONFINITE_HELPERS
from tui_probe.engine.site_file import SiteSources
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.positions import LOOP, PHASE, position_text
from tui_probe.probe_model.probe import Level
from tui_probe.reasons import Reason, because

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.kernel import Kernel
    from tui_probe.probe_model.positions import SourceRange
    from tui_probe.probe_model.probe import Probe
    from tui_probe.ptx.tree import Module

_TABLE_HEAD: Final = (
    "| Architecture | GPUs | PTX mode | SASS: entry, exit | SASS: counts | SASS: records | SASS: blocks |",
    "|---|---|---|---|---|---|---|",
)
_ACTIVEMASK_VERSION: Final = (6, 2)
_MAX_NAMES: Final = 4
"""Positions that are named; the others are counted."""


class ArchitectureSupport(NamedTuple):
    """Features that SASS mode supports on an architecture (90), and ``gpus`` that have it, "" where none is known."""

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


ARCHITECTURE_SUPPORT: Final = (
    ArchitectureSupport(75, "T4, GeForce RTX 20", records=False),
    ArchitectureSupport(80, "A100, A30"),
    ArchitectureSupport(86, "A10, A40, GeForce RTX 30"),
    ArchitectureSupport(87, "Jetson Orin", entries=False, counts=False, records=False, blocks=False),
    ArchitectureSupport(88, ""),
    ArchitectureSupport(89, "L4, L40, GeForce RTX 40"),
    ArchitectureSupport(90, "H100, H200"),
    ArchitectureSupport(100, "B200"),
    ArchitectureSupport(103, "B300"),
    ArchitectureSupport(107, ""),
    ArchitectureSupport(110, "Jetson Thor"),
    ArchitectureSupport(120, "GeForce RTX 50"),
    ArchitectureSupport(121, "GB10"),
)
"""The table of ``tui-probe help architectures``. A test compares it with what the engine does to cubins of all of them.
"""
_OLDEST_ARCHITECTURE: Final = ARCHITECTURE_SUPPORT[0].arch


def architecture_table() -> str:
    """Return the table in Markdown."""
    return "\n".join(
        [
            *_TABLE_HEAD,
            f"| below sm_{_OLDEST_ARCHITECTURE} | V100, P100 | yes | no | no | no | no |",
            *map(_table_row, ARCHITECTURE_SUPPORT),
        ]
    )


def _table_row(support: ArchitectureSupport) -> str:
    cells = (
        "yes" if supported else "no" for supported in (support.entries, support.counts, support.records, support.blocks)
    )
    return f"| sm_{support.arch} | {support.gpus or '–'} | yes | {' | '.join(cells)} |"


def refuse_architecture(arch: int) -> None:
    """Raise UnsupportedKernelError for machine code of an architecture (90) into which nothing can be grafted."""
    unsupported = {support.arch for support in ARCHITECTURE_SUPPORT if not (support.entries or support.counts)}
    if arch < _OLDEST_ARCHITECTURE or arch in unsupported:
        raise UnsupportedKernelError(because("graft-architecture", gpu=f"sm_{arch}"))


def refuse_unsupported(kernel: Kernel, probe: Probe) -> None:
    """Raise UnsupportedKernelError, with its line, for a kernel that ``probe`` cannot be in."""
    _refuse_module(kernel.module, probe)


def _refuse_module(module: Module, probe: Probe) -> None:
    if module.address_size != 64:
        raise UnsupportedKernelError(because("ptx-32-bit"))
    if any(own_map.level is not Level.THREAD for own_map in probe.maps) and module.version < _ACTIVEMASK_VERSION:
        version = ".".join(map(str, module.version))
        raise UnsupportedKernelError(because("no-activemask", version=version))


def is_for_instructions(probe: Probe) -> bool:
    """Return whether a probe is for something that a kernel may lack. One without a loop is nothing to remark on."""
    positions = probe.positions
    return any(not position.is_kernel and position.opcode not in (LOOP, PHASE) for position in positions)


def no_match_reason(probe: Probe, kernel: Kernel | None = None) -> Reason:
    """Return the reason for a probe without sites: the positions sought; for source lines, those of the ``kernel``."""
    all_positions = [position for position in probe.positions if not position.is_kernel]
    positions = [position for position in all_positions if position.opcode not in (LOOP, PHASE)] or all_positions
    names = list(dict.fromkeys(map(position_text, positions)))
    if len(names) > _MAX_NAMES + 1:
        names = [*names[:_MAX_NAMES], f"{len(names) - _MAX_NAMES} others"]
    limits = list(dict.fromkeys(point.within for point in probe.points if point.within))
    positions_text = " or ".join(filter(None, (", ".join(names[:-1]), names[-1]))) + _values_text(probe)
    positions_text += f" in {', '.join(map(str, limits))}" if limits else ""
    ranges = [*limits, *(position.source for position in positions if position.source)]
    hint = "" if kernel is None else _missing_lines_reason(kernel, ranges)
    return because("matched-nothing", probe=probe.name, positions=positions_text + hint)


def _values_text(probe: Probe) -> str:
    """Return a remark on the type of values for a probe of floating-point values; "" for other probes."""
    snippets = [snippet for point in probe.points for snippet in (point.before, point.after) if snippet is not None]
    has_number_helpers = any(snippet.helpers & NONFINITE_HELPERS for snippet in snippets)
    return " of floating-point values" if has_number_helpers else ""


def _missing_lines_reason(kernel: Kernel, source_ranges: Sequence[SourceRange]) -> str:
    """Return why a kernel has none of these lines; "" where it has others of these files."""
    files = SiteSources(kernel, kernel.image).all_files() if source_ranges else []
    if not source_ranges or any(source.is_of(file) for source in source_ranges for file in files):
        return ""
    if not files:
        return ": it has no source lines (compile with -lineinfo)"
    names = [file.rpartition("/")[2] for file in files]
    omitted_text = f" and {len(names) - _MAX_NAMES} others" if len(names) > _MAX_NAMES else ""
    return f": its source lines are in {', '.join(names[:_MAX_NAMES])}{omitted_text}"

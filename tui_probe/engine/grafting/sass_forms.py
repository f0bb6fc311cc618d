"""Forms of probes for kernels without PTX: with other points, shorter code of records, or for bulk copies only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.probe_model.positions import PHASE
from tui_probe.probe_model.probe import Field, Level, Map, Save
from tui_probe.sass.bulk_copies import bulk_copies_of
from tui_probe.sass.record_code import COPY_RECORD_BYTES

if TYPE_CHECKING:
    from tui_probe.probe_model.probe import Probe, ProbePoint
    from tui_probe.sass.target import GraftTarget

_MAX_COPIES: Final = 2048
"""Records of 16 bytes that a warp keeps."""
COPIES: Final = Map(
    "copies",
    Level.WARP,
    tuple(Field(name, "u32", 4 * index) for index, name in enumerate(("clock", "line", "first", "second"))),
    COPY_RECORD_BYTES,
    _MAX_COPIES,
    leader=True,
)
"""Map of the form of a probe that records bulk copies only."""
RECORD_ARCHITECTURES: Final = range(90, 100)
"""Architectures for which there is shorter code of records, which kernels that leave few registers have room for."""
_CLOCK_AND_LINE: Final = ("%clock", "LINE")
"""Values of a record of phases: a probe that saves others has no shorter code."""


def sass_form(probe: Probe) -> Probe:
    """Return the form of a probe for SASS: of one with ``stay`` positions, the points at these and at the kernel."""
    if not any(position.is_stay for position in probe.positions):
        return probe
    points = (
        point for point in probe.points if all(position.is_stay or position.is_kernel for position in point.positions)
    )
    return replace(probe, points=tuple(points))


def first_records_form(probe: Probe) -> Probe | None:
    """Return the form of a probe in which warps keep their first records; None if they do already."""
    maps = tuple(replace(own_map, latest=False, every=0) for own_map in probe.maps)
    first = replace(probe, maps=maps)
    return first if maps != probe.maps else None


def leader_map(probe: Probe) -> Map | None:
    """Return the map whose records, clock and line of a phase, are all that a probe does between entry and exits; None
    for a probe that does something else.
    """
    inside = [point for point in probe.points if not all(position.is_kernel for position in point.positions)]
    snippets = [point.before for point in inside if point.after is None and point.positions[0].opcode == PHASE]
    saves = [snippet.statements for snippet in snippets if snippet is not None]
    if len(inside) != 1 or len(saves) != 1 or len(saves[0]) != 1:
        return None
    (save,) = saves[0]
    if not isinstance(save, Save) or save.values != _CLOCK_AND_LINE:
        return None
    own_map = probe.map_named(save.map)
    others = any(other.cap != 1 for other in probe.maps if other is not own_map) or probe.registers
    return own_map if own_map.leader and not own_map.latest and not own_map.every and not others else None


def copies_form(probe: Probe, target: GraftTarget) -> Probe | None:
    """Return the form of a probe that records the bulk copies of a kernel and what is recorded once for a warp when it
    begins; None if the probe has no such form, or the kernel no copies.
    """
    if not probe.records_copies or not bulk_copies_of(target) or target.arch not in RECORD_ARCHITECTURES:
        return None
    points = tuple(point for point in probe.points if _saves_at_entry(point))
    saved = {name for point in points for name in point.saved_maps}
    begun = [own_map for own_map in probe.maps if own_map.name in saved]
    if any(own_map.cap != 1 for own_map in begun):  # the uniform registers are for the records of COPIES
        return None
    return replace(probe, points=points, maps=(*begun, COPIES), registers={})


def _saves_at_entry(point: ProbePoint) -> bool:
    statements = point.before.statements if point.before and not point.after else ()
    is_entry = all(position.is_kernel for position in point.positions)
    return (
        is_entry
        and bool(statements)
        and all(isinstance(statement, Save) and not statement.adds for statement in statements)
    )

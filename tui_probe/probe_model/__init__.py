"""The probe model: maps, snippets, positions, and the layout of records. Does not import the engine.

What the launcher needs before the program starts is here: modules of this package take longer to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

FUSED_NAME: Final = "fused"
"""Name of the directory of the fused probe: of a kernel with all counting probes of a run at the same time."""


def fused_places(probes: Sequence[tuple[str, bool] | None]) -> tuple[int, ...]:
    """Return the positions of the counting probes of a run; none unless there are several.

    Each has its name, and whether it counts; None: a probe that is not fused.
    """
    places = tuple(place for place, probe in enumerate(probes) if probe is not None and probe[1])
    is_free = all(probe is None or probe[0] != FUSED_NAME for probe in probes)
    return places if len(places) > 1 and is_free else ()

"""``sites.json`` of a kernel that is probed in its machine code: its instructions by their offsets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tui_probe.errors import ImageError
from tui_probe.ptx.facts import facts_of
from tui_probe.ptx.line_tables import source_places
from tui_probe.sass.mnemonics import mnemonic
from tui_probe.sass.words import WORD_BYTES
from tui_probe.trace.sites import FORMAT, GRAFT, MOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.engine.machine_positions import MachineSite
    from tui_probe.sass.target import Target


def graft_site_file(probe: str, target: Target, sites: Sequence[MachineSite], maps: Mapping[str, Sequence[int]]) -> str:
    """The text of the file; ``maps``: the offsets of the instructions that each map has a record for, in order.

    What an instruction would be in PTX tells its class, type and space. Source lines are those of the cubin's line
    table, where it has one.
    """
    files: dict[str, int] = {}
    sources = _sources(target)
    told = [_told(target, one, sources.get(one.at), files) for one in sites]
    places = {one.at: number for number, one in enumerate(sites)}
    own = {
        "probe": probe,
        "way": GRAFT,
        "sites": told,
        "maps": {name: {"sites": [places[at] for at in offsets]} for name, offsets in maps.items()},
        "unchecked": [],
    }
    return json.dumps({"version": FORMAT, "files": list(files), "probes": [own]}) + "\n"


def _sources(target: Target) -> dict[int, tuple[str, int]]:
    try:
        return source_places(target.cubin.image, target.name, target.code.size)
    except ImageError:  # a damaged line table takes nothing but the lines
        return {}


def _told(target: Target, one: MachineSite, source: tuple[str, int] | None, files: dict[str, int]) -> dict[str, object]:
    first = one.places[0]
    facts = facts_of(first.stand_in)
    told: dict[str, object] = {
        "offset": one.at,
        "at": "instruction",
        "points": list(dict.fromkeys(place.point.name for place in one.places)),
        "opcode": mnemonic(target.words[one.at // WORD_BYTES], target.arch),
        "class": facts.work,
        "type": facts.type or None,
        "space": facts.space or None,
        "access": facts.access,
        "bytes": first.told.bytes,
    }
    if source is not None and source[1] < MOST:
        told["source"] = {"file": files.setdefault(source[0], len(files)), "line": source[1]}
    return {name: value for name, value in told.items() if value is not None}

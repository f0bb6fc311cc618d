"""``sites.json`` of a kernel that is probed in its machine code: its instructions by their offsets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tui_probe.errors import ImageError
from tui_probe.ptx.facts import facts_of
from tui_probe.ptx.line_tables import source_places
from tui_probe.sass.mnemonics import mnemonic
from tui_probe.sass.operations import class_of, name_of
from tui_probe.sass.words import WORD_BYTES
from tui_probe.trace.sites import FORMAT, GRAFT, MOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.engine.machine_blocks import MachineBlock
    from tui_probe.engine.machine_positions import MachineSite
    from tui_probe.sass.target import Target


def graft_site_file(
    probe: str,
    target: Target,
    sites: Sequence[MachineSite],
    blocks: Sequence[MachineBlock],
    maps: Mapping[str, Sequence[int]],
) -> str:
    """The text of the file; ``maps``: the offsets of the instructions that each map has a record for, in order.

    What an instruction would be in PTX tells its class, type and space. Source lines are those of the cubin's line
    table, where it has one.
    """
    files: dict[str, int] = {}
    sources = _sources(target)
    told = [_told(target, one, sources.get(one.at), files) for one in sites]
    told += [_told_block(target, one, sources.get(one.first), files) for one in blocks]
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
    return {name: value for name, value in told.items() if value is not None} | _source(source, files)


def _told_block(
    target: Target, one: MachineBlock, source: tuple[str, int] | None, files: dict[str, int]
) -> dict[str, object]:
    """A basic block, by its first instruction."""
    word = target.words[one.first // WORD_BYTES]
    return {
        "offset": one.first,
        "at": "block",
        "points": [code.point.name for code in one.codes if code.point.positions],
        "opcode": name_of(word, target.arch) or mnemonic(word, target.arch),
        "class": class_of(word, target.arch),
        **_source(source, files),
    }


def _source(source: tuple[str, int] | None, files: dict[str, int]) -> dict[str, object]:
    if source is None or source[1] >= MOST:
        return {}
    return {"source": {"file": files.setdefault(source[0], len(files)), "line": source[1]}}

"""Write ``sites.json`` of grafted kernels: instructions, wait sites and basic blocks, with their source lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tui_probe.engine.grafting.sass_positions import SassSite
from tui_probe.engine.grafting.wait_grafts import ProbedWait
from tui_probe.engine.site_file import phase_fields
from tui_probe.ptx.instruction_facts import facts_of
from tui_probe.sass.address_origins import AddressOrigins
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import mnemonic, operation_class, operation_name
from tui_probe.sass.wait_probe import null_wait
from tui_probe.sass.words import WORD_BYTES
from tui_probe.trace.kernel_files import GRAFT, MAX_SITE_NUMBER, SITES_FORMAT
from tui_probe.trace.source_lines import is_of_toolkit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.engine.grafting.sass_blocks import SassBlock
    from tui_probe.sass.bulk_copies import BulkCopy
    from tui_probe.sass.target import GraftTarget

_MAX_PRODUCERS: Final = 16
"""Producers of a wait that are named; a load of a whole tile may be more instructions."""
_MAX_SPILLS: Final = 256
"""Accesses of the stack in a basic block that are named."""


def sass_site_file(
    probe: str,
    target: GraftTarget,
    sites: Sequence[SassSite | ProbedWait],
    blocks: Sequence[SassBlock],
    maps: Mapping[str, Sequence[int]],
    wait_offsets: Sequence[int] = (),
    missing_starts: int = 0,
    *,
    hidden_waits: Mapping[str, Sequence[int]] | None = None,
    copies_only: bool = False,
) -> str:
    """Return the text of ``sites.json`` of a grafted kernel.

    ``maps``: the offsets of the instructions that each map has a record for, in order. ``wait_offsets`` are
    those of the instructions whose waits could be measured, in this group or another; ``hidden_waits`` those of
    instructions whose waits cannot be, by name. ``missing_starts`` is the number of phase starts without a site.
    ``copies_only``: sites of bulk copies have the place of their tensor map. Class, type and space are those of an
    instruction's PTX equivalent; source lines are from the cubin's line table, where it has one.
    """
    files: dict[str, int] = {}
    sources = target.source_lines()
    calls = target.inlined_calls() if any(isinstance(site, SassSite) and site.phase for site in sites) else {}
    origins = AddressOrigins(target, FlowGraph.from_target(target)) if copies_only else None
    fields = [
        _wait_fields(target, site, sources, files)
        if isinstance(site, ProbedWait)
        else _instruction_fields(target, site, _source_of(site, sources, calls), files, origins)
        for site in sites
    ]
    fields += [_block_fields(target, block, sources.get(block.start_offset), files) for block in blocks]
    places = {site.offset: number for number, site in enumerate(sites)}
    probe_fields = {
        "probe": probe,
        "way": GRAFT,
        "sites": fields,
        "maps": {name: {"sites": [places[offset] for offset in offsets]} for name, offsets in maps.items()},
        "unchecked": [],
        **({"wait_sites": len(wait_offsets), "wait_offsets": [*wait_offsets]} if wait_offsets else {}),
        **({"hidden_waits": hidden_waits} if hidden_waits else {}),
        **({"phases_missing": missing_starts} if missing_starts else {}),
    }
    return json.dumps({"version": SITES_FORMAT, "files": list(files), "probes": [probe_fields]}) + "\n"


def _source_of(
    site: SassSite, sources: Mapping[int, tuple[str, int]], calls: Mapping[int, Sequence[tuple[str, int]]]
) -> tuple[str, int] | None:
    """Return the source line of a site.

    A phase has the line of its work; if that is in a header of the CUDA Toolkit, the line of the call.
    """
    offset = site.offset if site.phase is None else site.phase.main
    source = sources.get(offset)
    if source is None or site.phase is None or not is_of_toolkit(source[0]):
        return source
    return next((call for call in calls.get(offset, ()) if not is_of_toolkit(call[0])), source)


def _instruction_fields(
    target: GraftTarget,
    site: SassSite,
    source: tuple[str, int] | None,
    files: dict[str, int],
    origins: AddressOrigins | None,
) -> dict[str, object]:
    first_place = site.places[0]
    facts = facts_of(first_place.ptx_equivalent)
    fields: dict[str, object] = {
        "offset": site.offset,
        "at": "instruction",
        "points": list(dict.fromkeys(place.point.name for place in site.places)),
        "opcode": _opcode(target, site),
        "class": facts.work,
        "type": facts.type or None,
        "space": facts.space or None,
        "access": facts.access,
        "bytes": first_place.facts.bytes,
    }
    if site.phase is not None:
        inside_field = {"inside": True} if site.phase.may_be_inside else {}
        fields["phase"] = phase_fields(site.phase.start, site.phase.loop) | inside_field
    if site.copy is not None and origins is not None:
        fields["copy"] = _copy_fields(site, site.copy, origins)
    return {name: value for name, value in fields.items() if value is not None} | _source_fields(source, files)


def _copy_fields(site: SassSite, copy: BulkCopy, origins: AddressOrigins) -> dict[str, object]:
    """Return what the records of a bulk copy do not have: its direction, and where its tensor map is."""
    place = origins.map_place(site.offset // WORD_BYTES)
    return {
        "load": copy.is_load,
        "sized": copy.size is not None,
        "dimensions": copy.dimensions,
        **({} if place is None else {"map": {"parameter": place[0], "offset": place[1]}}),
    }


def _opcode(target: GraftTarget, site: SassSite) -> str:
    word = target.words[site.offset // WORD_BYTES]
    name = operation_name(word, target.arch) if site.phase is not None else ""
    return name or mnemonic(word, target.arch)


def _wait_fields(
    target: GraftTarget, wait: ProbedWait, sources: Mapping[int, tuple[str, int]], files: dict[str, int]
) -> dict[str, object]:
    """Return the fields of a wait site, with its class and the instructions that warps wait for."""
    site = wait.site
    return {
        **_named_fields(target, site.index, sources, files),
        "at": "instruction",
        "points": list(wait.points),
        "wait": {
            "class": site.kind,
            "depth": site.depth,
            "one_iteration": site.is_of_one_iteration,
            "null": null_wait(target.words[site.index], waits_itself=site.own_class is not None),
            "producers": [
                {
                    **_named_fields(target, producer.index, sources, files),
                    "previous": producer.from_previous,
                }
                for producer in site.report_order(sources)[:_MAX_PRODUCERS]
            ],
            "spills": [
                {**_named_fields(target, access.index, sources, files), "bytes": access.bytes}
                for access in wait.spills[:_MAX_SPILLS]
            ],
            **({"parameters": [*wait.parameters]} if wait.parameters else {}),
        },
    }


def _named_fields(
    target: GraftTarget, index: int, sources: Mapping[int, tuple[str, int]], files: dict[str, int]
) -> dict[str, object]:
    word, offset = target.words[index], index * WORD_BYTES
    return {
        "offset": offset,
        "opcode": operation_name(word, target.arch) or mnemonic(word, target.arch),
        "class": operation_class(word, target.arch),
        **_source_fields(sources.get(offset), files),
    }


def _block_fields(
    target: GraftTarget, block: SassBlock, source: tuple[str, int] | None, files: dict[str, int]
) -> dict[str, object]:
    """Return the fields of a basic block, from its first instruction."""
    word = target.words[block.start_offset // WORD_BYTES]
    return {
        "offset": block.start_offset,
        "at": "block",
        "points": [code.point.name for code in block.codes if code.point.positions],
        "opcode": operation_name(word, target.arch) or mnemonic(word, target.arch),
        "class": operation_class(word, target.arch),
        **_source_fields(source, files),
    }


def _source_fields(source: tuple[str, int] | None, files: dict[str, int]) -> dict[str, object]:
    if source is None or source[1] >= MAX_SITE_NUMBER:
        return {}
    return {"source": {"file": files.setdefault(source[0], len(files)), "line": source[1]}}

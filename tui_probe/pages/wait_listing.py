"""Wait sites of a kernel for ``tui-probe check --waits``, as text and JSON."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.units import NOT_MEASURED, count, counted
from tui_probe.sass.wait_classes import WAIT_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.wait_listing import KernelWaits
    from tui_probe.sass.scoreboards import Producer, WaitSite

_HEADINGS: Final = ("offset", "SASS", "source", "loops", "waits for", "producers")
_MOST_PRODUCERS: Final = 3


def wait_lines(waits: KernelWaits) -> Iterator[str]:
    """Yield totals, then a line per wait site."""
    if waits.reason is not None:
        yield f"  waits     {NOT_MEASURED} {waits.reason.sentence}"
        return
    in_loops = sum(site.depth > 0 for site in waits.sites)
    yield (
        f"  waits     {count(len(waits.sites))} of {counted(waits.instructions, 'SASS instruction')}, "
        f"{count(in_loops)} in loops"
    )
    kinds = Counter(site.kind for site in waits.sites)
    yield f"  by class  {', '.join(f'{WAIT_CLASSES[kind]} {number}' for kind, number in kinds.most_common())}"
    yield from _aligned([_HEADINGS, *(_cells(waits, site) for site in waits.sites)])


def _cells(waits: KernelWaits, site: WaitSite) -> tuple[str, ...]:
    producers = sorted(site.producers, key=lambda each: each is not site.producer)
    texts = [_producer_text(waits, producer) for producer in producers[:_MOST_PRODUCERS]]
    if len(producers) > _MOST_PRODUCERS:
        texts.append(f"{len(producers) - _MOST_PRODUCERS} more")
    return (
        f"{site.at:#06x}",
        waits.name(site),
        _line_text(waits, site),
        str(site.depth),
        WAIT_CLASSES[site.kind],
        ", ".join(texts) or NOT_MEASURED,
    )


def _producer_text(waits: KernelWaits, producer: Producer) -> str:
    """Return ``LDG 0x0b10 attn.py:49 (previous iteration)``."""
    line = _line_text(waits, producer)
    parts = [waits.name(producer), f"{producer.at:#06x}", *([line] if line != NOT_MEASURED else [])]
    return " ".join(parts) + (" (previous iteration)" if producer.from_previous else "")


def _line_text(waits: KernelWaits, place: WaitSite | Producer) -> str:
    line = waits.line(place)
    return f"{PurePosixPath(line[0]).name}:{line[1]}" if line else NOT_MEASURED


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        yield f"  {'  '.join(cells)}".rstrip()


def wait_record(waits: KernelWaits) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "reason": waits.reason and waits.reason.sentence,
        "instructions": waits.instructions or None,
        "sites": [_site_record(waits, site) for site in waits.sites],
    }


def _site_record(waits: KernelWaits, site: WaitSite) -> dict[str, Any]:
    return {
        **_place_record(waits, site),
        "class": site.kind,
        "scoreboards": list(site.barriers),
        "waits_itself": site.own is not None,
        "loop_depth": site.depth,
        "producers": [
            {
                **_place_record(waits, producer),
                "class": producer.kind,
                "register_read": producer.is_read,
                "previous_iteration": producer.from_previous,
            }
            for producer in site.producers
        ],
    }


def _place_record(waits: KernelWaits, place: WaitSite | Producer) -> dict[str, Any]:
    file, line = waits.line(place) or (None, None)
    return {"offset": place.at, "sass": waits.name(place), "file": file, "line": line}

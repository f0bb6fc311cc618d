"""``read.py`` of a trace directory: a reader of its result files that needs nothing of ours."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import FIELD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.model import Field, Map, Probe

_NO_MAPS: Final = "MAPS: dict[str, Any] = {}\n"
_NO_REDUCED: Final = "REDUCED: dict[str, Any] = {}\n"


def read_script(probe: Probe) -> str:
    """The text of ``read.py`` for the traces of a probe: ``read_template.py`` with the probe's maps in it."""
    template = Path(__file__).with_name("read_template.py").read_text(encoding="utf-8")
    lines = [line for own_map in probe.maps for line in _entries(own_map)]
    maps = "".join(["MAPS: dict[str, Any] = {\n", *lines, "}\n"])
    kept = [_entry(one.name, [field.to for field in one.reduction.fields], one.reduction.record_bytes)
            for one in probe.maps if one.reduction is not None]  # fmt: skip
    reduced = "".join(["REDUCED: dict[str, Any] = {\n", *kept, "}\n"]) if kept else _NO_REDUCED
    return template.replace("  # noqa: T201", "").replace(_NO_MAPS, maps, 1).replace(_NO_REDUCED, reduced, 1)


def _entries(own_map: Map) -> list[str]:
    """The lines of ``MAPS`` for a map and, where records are counted, for its attempts."""
    entry = _entry(own_map.name, own_map.fields, own_map.record_bytes)
    attempts = f'    "{own_map.name}.attempts": np.dtype("<u4"),\n'
    return [entry] if own_map.cap == 1 else [entry, attempts]


def _entry(name: str, own_fields: Sequence[Field], size: int) -> str:
    fields = sorted(own_fields, key=lambda one: one.offset)
    names, offsets = [one.name for one in fields], [one.offset for one in fields]
    formats = [f"<u{FIELD_BYTES[one.type]}" for one in fields]
    record = {"names": names, "formats": formats, "offsets": offsets, "itemsize": size}
    inner = textwrap.wrap(json.dumps(record)[1:-1], 110, break_long_words=False, break_on_hyphens=False)
    return "".join([f'    "{name}": np.dtype({{\n', *(f"        {line}\n" for line in inner), "    }),\n"])

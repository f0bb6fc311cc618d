"""Write ``read.py`` of a trace directory: a reader of its result files that needs only NumPy."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.probe_model.probe import FIELD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probe_model.probe import Field, Map, Probe

_NO_MAPS: Final = "MAPS: dict[str, Any] = {}\n"
_NO_OPTIONAL: Final = "OPTIONAL: set[str] = set()\n"
_OPTIONAL_CODE: Final = re.compile(
    r"# Maps that results of kernels.*\nOPTIONAL.*\n|    if len\(data\) >= 32 and .*\n.*OPTIONAL\}\n"
)
"""Part needed only for probes with optional maps."""
_NO_PROBES: Final = "PROBES: dict[str, dict[str, Any]] = {}\n"
_MULTI_PROBE_CODE: Final = re.compile(
    r"# The same by probe.*\n.*\n|def maps_of\(.*(?:\n(?!def ).*)*\n(?=def )|^from pathlib.*\n", re.MULTILINE
)
"""Part needed only for traces of several probes: left out of scripts meant for readers."""

BEGIN_MARKER: Final = "# BEGIN OF GENERATED CODE: reads the result files of this kernel"
END_MARKER: Final = "# END OF GENERATED CODE"


def with_markers(script: str) -> str:
    """The script as it is at the end of ``process.log``, between a line that says so and one that ends it."""
    return f"{BEGIN_MARKER}\n{script}{END_MARKER}\n"


def read_script(*probes: Probe) -> str:
    """The text of ``read.py`` for the traces of one or several probes: ``read_template.py`` with their maps in it."""
    template = Path(__file__).with_name("read_template.py").read_text(encoding="utf-8").replace("  # noqa: T201", "")
    template = _with_optional(template, [own_map for probe in probes for own_map in probe.maps if own_map.optional])
    if len(probes) == 1:
        maps = "".join(["MAPS: dict[str, Any] = {\n", *_map_table(probes[0]), "}\n"])
        return _MULTI_PROBE_CODE.sub("", template).replace("maps_of(path)", "MAPS").replace(_NO_MAPS, maps, 1)
    tables = "".join(_probe_table(probe) for probe in probes)
    return template.replace(_NO_PROBES, f"PROBES: dict[str, dict[str, Any]] = {{\n{tables}}}\n", 1)


def _with_optional(template: str, optional: Sequence[Map]) -> str:
    """The template with the names of maps that results may lack; without the code for them if there are none."""
    if not optional:
        return _OPTIONAL_CODE.sub("", template)
    names = [name for own_map in optional for name in (own_map.name, f"{own_map.name}.attempts")]
    return template.replace(_NO_OPTIONAL, f"OPTIONAL: set[str] = {{{', '.join(map(json.dumps, names))}}}\n", 1)


def _probe_table(probe: Probe) -> str:
    return f'    "{probe.name}": {{\n{textwrap.indent("".join(_map_table(probe)), "    ")}    }},\n'


def _map_table(probe: Probe) -> list[str]:
    return [line for own_map in probe.maps for line in _map_entries(own_map)]


def _map_entries(own_map: Map) -> list[str]:
    """The lines of ``MAPS`` for a map and, where records are counted, for its attempts."""
    lines = [f'    "{own_map.name}": np.dtype({{', *_record_dtype(own_map.fields, own_map.record_bytes)]
    if own_map.reduction is None:
        lines.append("    }),")
    else:
        reduced_names = [field.to for field in own_map.reduction.fields]
        lines.append('    }, metadata={"reduced": np.dtype({')
        lines += [*_record_dtype(reduced_names, own_map.reduction.record_bytes), "    })}),"]
    entry = "".join(f"{line}\n" for line in lines)
    attempts = f'    "{own_map.name}.attempts": np.dtype("<u4"),\n'
    return [entry] if own_map.cap == 1 else [entry, attempts]


def _record_dtype(own_fields: Sequence[Field], size: int) -> list[str]:
    fields = sorted(own_fields, key=lambda field: field.offset)
    names, offsets = [field.name for field in fields], [field.offset for field in fields]
    formats = [f"<u{FIELD_BYTES[field.type]}" for field in fields]
    record = {"names": names, "formats": formats, "offsets": offsets, "itemsize": size}
    inner = textwrap.wrap(json.dumps(record)[1:-1], 110, break_long_words=False, break_on_hyphens=False)
    return [f"        {line}" for line in inner]

"""Files of a kernel: ``kernel.info``, ``process.log``, names in ``sites.json``, and positions of instructions."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import TraceError
from tui_probe.input_limits import KERNEL_INFO, PROCESS_LOG
from tui_probe.reasons import read_reason
from tui_probe.trace.plain_file import plain_descriptor, read_within, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tui_probe.reasons import Reason
    from tui_probe.trace.launch_shape import Level

SITES_FILE: Final = "sites.json"
SITES_FORMAT: Final = 1
"""Version of ``sites.json``."""
PTX: Final = "ptx"
"""The way, in ``sites.json``, of a probe that was put into PTX."""
GRAFT: Final = "graft"
"""The way of a probe that was grafted into SASS: its sites have an ``offset`` in place of a ``line``."""
MAX_SITE_NUMBER: Final = 1 << 32
"""All numbers of ``sites.json`` are smaller."""
_LEVELS: Final[dict[str, Level]] = {"0": "thread", "1": "warp"}
_READER, _READER_END = "# BEGIN OF GENERATED CODE", "# END OF GENERATED CODE"
"""Markers around the text in process.log that is a program that reads results."""
_VARIANT = re.compile(r"\b(pruned|probed)\.(?:ptx|s|asm|bin)\b")
_TOOL_OUTPUT = re.compile(r"\s|ptxas +(?:info|warning|error|fatal)\b|ptxas .*, line \d+;")
_REGISTERS = re.compile(r"Used (\d{1,6}) registers")
_SPILLS = re.compile(r"(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads")
_SHARED_BYTES = re.compile(r"(\d{1,9})(?:\+\d+)? bytes smem")
_CONSTANT_BYTES = re.compile(r"(\d{1,9}) bytes cmem\[0\]")
_ERROR = re.compile(r"^ptxas .*\b(?:fatal|error)\s*:|^ptxas (?:fatal|error)")
_LOG_STATUS = re.compile(r"^\[(?:failed|skipped)\] (.+)")
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|NotFound|Expired)\b(?::|$)")
_FAILURE_WORDS = (
    "error", "fatal", "[failed]", "[skipped]", "Error", "Exception", "Warning", "Interrupt", "Exit", "NotFound",
    "Expired",
)  # fmt: skip
"""One of these is in every line that names the reason of a failure."""


class Offset(int):
    """Bytes from the beginning of a kernel's SASS, where of a kernel in PTX a line would stand."""

    __slots__ = ()


def code_page(lines: Iterable[int | None]) -> str:
    """The page with the code at these lines: ``sass`` if one is an offset in SASS, else ``ptx``."""
    return "sass" if any(isinstance(line, Offset) for line in lines) else "ptx"


def short_position(line: int) -> str:
    """``PTX:32``; of SASS ``0x0150``."""
    return f"{line:#06x}" if isinstance(line, Offset) else f"PTX:{line}"


def long_position(line: int) -> str:
    """``PTX line 32``; of SASS ``offset 0x0150``."""
    return f"offset {line:#06x}" if isinstance(line, Offset) else f"PTX line {line}"


class MapInfo(NamedTuple):
    """One map of a probe: a slot a ``thread`` or a ``warp``, ``size`` bytes each (-1: known only at the launch)."""

    level: Level
    size: int


class Graft(NamedTuple):
    """Offsets of changes in a kernel's SASS, in bytes from its beginning: instructions at ``replaced_offsets`` became
    branches to code that was added from ``appended_offset`` on.
    """

    replaced_offsets: tuple[int, ...]
    appended_offset: int


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """``kernel.info``: the parameters and maps of a probed kernel, the analysis it asks for, and shared variables."""

    name: str
    parameters: int
    maps: tuple[MapInfo, ...]
    callback: str | None = None
    variables: tuple[str, ...] = ()
    no_replay: str | None = None
    """Reason why the kernel must not run a second time, if so."""
    sites: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The lines in ``pruned.ptx`` of the instructions that maps, by their index, have a record for; of a grafted kernel
    their offsets in its SASS, in bytes.
    """
    graft: Graft | None = None
    """Graft of a kernel that was probed in SASS mode; None in PTX mode."""
    is_resident: bool = False
    """True if results have the warps that were on the GPU at a time."""


class Resources(NamedTuple):
    """Resources of one function by ptxas: registers per thread, bytes of spills, stack, shared and constant memory."""

    registers: int
    spill_bytes: int | None = None
    """Spill stores + spill loads, in bytes per thread."""
    stack_bytes: int | None = None
    shared_bytes: int | None = None
    constant_bytes: int | None = None
    """Bank 0, which holds the parameters."""


class ProcessLog(NamedTuple):
    """``process.log``: the resources of the pruned and the probed kernel, or why there are none."""

    pruned: Resources | None = None
    probed: Resources | None = None
    reason: Reason | None = None

    @property
    def complete(self) -> bool:
        """True if both variants were assembled."""
        return self.pruned is not None and self.probed is not None


def read_kernel_info(path: Path) -> KernelInfo:
    """Read ``kernel.info``; TraceError names the line that is not as it should be."""
    try:
        return _parse_info_bytes(read_within(path, KERNEL_INFO), str(path))
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error


@lru_cache(maxsize=1024)
def _parse_info_bytes(data: bytes, source: str) -> KernelInfo:
    """Parse the same contents once: a report asks for them dozens of times per kernel."""
    return parse_kernel_info([text_of(line) for line in data.splitlines()], source)


def parse_kernel_info(lines: list[str], source: str = "kernel.info") -> KernelInfo:
    """The lines of ``kernel.info``, older ones (a bare callback as the last line) and ours."""
    if len(lines) < 3 or not lines[0]:
        raise TraceError(
            f"{source}: {len(lines)} lines instead of at least 3 (name, parameters, maps); the file is truncated"
        )
    parameters, count = (_parse_count(lines[i], f"{source}, line {i + 1}") for i in (1, 2))
    if len(lines) < 3 + count:
        raise TraceError(
            f"{source}: the file announces {count} maps, but {len(lines) - 3} lines follow; the file is truncated"
        )
    maps = tuple(_parse_map(lines[3 + i], f"{source}, line {4 + i}") for i in range(count))
    entries = [line.strip().partition(" ") for line in lines[3 + count :] if line.strip()]
    values = {word: value for word, _, value in reversed(entries)}
    bare_callback = next((word for word, _, value in entries if not value), None)
    variables = tuple(value for word, _, value in entries if word == "global" and value)
    sites = dict(_parse_sites(value, source) for word, _, value in entries if word == "sites")
    graft = _parse_graft(values, source)
    if graft is not None:
        sites = {index: tuple(map(Offset, places)) for index, places in sites.items()}
    return KernelInfo(
        name=lines[0],
        parameters=parameters,
        maps=maps,
        callback=values.get("callback") or bare_callback,
        variables=variables,
        no_replay=_reason_text(values.get("no-replay")),
        sites=sites,
        graft=graft,
        is_resident=any(word == "storage" and value.split()[1:2] == ["resident"] for word, _, value in entries),
    )


def _parse_graft(values: Mapping[str, str], source: str) -> Graft | None:
    """``grafted OFFSET … appended START``, None for a kernel that was probed in PTX."""
    if values.get("way") != "graft":
        return None
    offsets, location = values.get("grafted", "").split(), f"{source}, 'grafted'"
    if len(offsets) < 2 or offsets[-2] != "appended":
        raise TraceError(f"{location}: expected 'OFFSET … appended START', not {' '.join(offsets)[:40]!r}")
    *replaced_offsets, appended = (_parse_count(word, location, 9) for word in (*offsets[:-2], offsets[-1]))
    return Graft(tuple(replaced_offsets), appended)


def _reason_text(reason: str | None) -> str | None:
    return None if reason is None else read_reason(reason).text


def _parse_sites(words: str, source: str) -> tuple[int, tuple[int, ...]]:
    """``INDEX LINE …``."""
    index, *lines = (_parse_count(word, f"{source}, 'sites'", 9) for word in words.split() or [""])
    return index, tuple(lines)


def _parse_count(word: str, location: str, digits: int = 6) -> int:
    word = word.strip()
    if not re.fullmatch(rf"[0-9]{{1,{digits}}}", word):
        raise TraceError(f"{location}: expected a count, not {word[:40]!r}")
    return int(word)


def _parse_map(line: str, location: str) -> MapInfo:
    match = re.fullmatch(r"\s*([01])\s*,\s*(-1|[0-9]{1,12})\s*", line)
    if match is None:
        raise TraceError(f"{location}: expected 'type,bytes', not {line[:40]!r}")
    return MapInfo(_LEVELS[match[1]], int(match[2]))


def read_process_log(path: Path) -> ProcessLog:
    """Read ``process.log``. A file that is missing, cut or garbage gives less information, never an error."""
    log_and_size = read_grown_log(path, -1)
    return ProcessLog() if log_and_size is None else log_and_size[0]


def read_grown_log(path: str | Path, size: int) -> tuple[ProcessLog, int] | None:
    """Read a log, and return it with its size; None if the size is still ``size``, or if there is no such file."""
    try:
        descriptor = plain_descriptor(path)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if status.st_size == size:
            return None
        text = text_of(os.read(descriptor, min(status.st_size, PROCESS_LOG.maximum)))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return parse_process_log(lines), status.st_size


def parse_process_log(lines: list[str]) -> ProcessLog:
    """ptxas' words for each variant, which the command before them names, and the reason of a failure."""
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    in_reader = False
    for line in lines:
        if line.startswith((_READER, _READER_END)):
            in_reader = line.startswith(_READER)
        if in_reader:
            continue
        may_name = "pruned." in line or "probed." in line
        variant = _VARIANT.search(line) if may_name and not _TOOL_OUTPUT.match(line) else None
        if variant is not None:
            is_assembled_again = "ptxas" in line and variant[1] in sections  # the last assembly is the one that counts
            current = sections[variant[1]] = [] if is_assembled_again else sections.get(variant[1], [])
        elif current is not None:
            current.append(line)
    pruned, probed = (_parse_resources(sections.get(name, [])) for name in ("pruned", "probed"))
    return ProcessLog(pruned, probed, _failure_reason(lines))


def _failure_reason(lines: list[str]) -> Reason | None:
    text = "\n".join(lines)
    if not any(word in text for word in _FAILURE_WORDS):
        return None
    reason: Reason | None = None
    for line in lines:
        if status_match := _LOG_STATUS.match(line):
            reason = read_reason(status_match[1].strip())
        elif _ERROR.search(line):
            reason = reason or read_reason(line.strip())
        elif _EXCEPTION.match(line) and (reason is None or reason.code is None):
            reason = read_reason(line.strip())
    return reason


def _parse_resources(lines: list[str]) -> Resources | None:
    """The entry's registers, and the spills of the entry and of the functions that it calls."""
    register_match: re.Match[str] | None = None
    spills: list[tuple[int, ...]] = []
    for line in lines:
        if register_match is None and "Used " in line:
            register_match = _REGISTERS.search(line)
        if "stack frame" in line:
            spills += [tuple(map(int, sizes)) for sizes in _SPILLS.findall(line)]
    if register_match is None:
        return None
    text = register_match.string[register_match.start() :]
    shared_match, constant_match = _SHARED_BYTES.search(text), _CONSTANT_BYTES.search(text)
    return Resources(
        registers=int(register_match[1]),
        spill_bytes=sum(stores + loads for _, stores, loads in spills) if spills else None,
        stack_bytes=sum(stack for stack, _, _ in spills) if spills else None,
        shared_bytes=int(shared_match[1]) if shared_match else 0,
        constant_bytes=int(constant_match[1]) if constant_match else None,
    )

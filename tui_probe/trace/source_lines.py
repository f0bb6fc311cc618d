"""Source lines of instructions, and the copies of source files in a trace.

Compilers say it in ``.loc`` directives, which name a file (``.file``), a line and a column, and hold for the
instructions that follow. Inlined code has its innermost position. The PTX that a cubin keeps for debuggers has empty
lines in their place; there the way leads over the machine code in ``original.bin``: its line tables tell for each
address the line of the PTX and the line of the source.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.fatbin import EntryKind
from tui_probe.binaries.line_tables import call_chains, line_tables, source_locations
from tui_probe.errors import ImageError, PtxError, TraceError
from tui_probe.input_limits import CUBIN, PTX_TEXT, SOURCE_FILE
from tui_probe.ptx.images import cubin_with_ptx, image_entries
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Function
from tui_probe.trace.kernel_files import Offset, read_kernel_info
from tui_probe.trace.locate import path_in_trace
from tui_probe.trace.plain_file import read_start, read_within

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tui_probe.binaries.line_tables import FunctionTables
    from tui_probe.ptx.tree import Module

_FILE: Final = re.compile(r'^\s*\.file\s+(\d{1,9})\s+"([^"]*)"(?:\s+"([^"]*)")?', re.MULTILINE)
_LOC: Final = re.compile(r"\s*\.loc\s+(\d{1,9})\s+(\d{1,9})\b")
_INLINED_LOC: Final = re.compile(
    r"\s*\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?:.*\binlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9}))?"
)
_TOOLKIT_HEADER: Final = re.compile(r"/(cuda[^/]*|nvidia/[^/]+)/(.+/)?include/")
SOURCE_FOLDER: Final = "source"
"""Folder of a trace with the copies of source files."""
_DIGITS: Final = 12
"""Hexadecimal digits of a path's SHA-1 in the name of a copy."""
_LONGEST_NAME: Final = 80
"""Characters of a file name that a copy keeps; file systems allow 255 bytes, a digest comes before it."""
_COPY_NAME: Final = re.compile(rf"[0-9a-f]{{{_DIGITS}}}_.+", re.DOTALL)
_FUNCTION: Final = re.compile(r"\s*(?:\.visible\s+|\.weak\s+|\.extern\s+)*\.(?:entry|func)\b")


class SourceLine(NamedTuple):
    """A line of a source file, counted from 1. ``file`` is the path as the compiler was given it."""

    file: str
    line: int


def source_position(source: SourceLine | None) -> str:
    """``softmax.cu:31``; "" where it is not known."""
    return "" if source is None else f"{source.file.rpartition('/')[2]}:{source.line}"


@dataclass(frozen=True, slots=True)
class SourceLines:
    """The source lines of one kernel, by line of ``pruned.ptx``, or by offset in machine code that was probed itself;
    empty if nothing tells them.
    """

    lines: dict[int, SourceLine]
    calls: dict[int, SourceLine] = field(default_factory=dict)
    """The lines of the program that call the headers of the CUDA Toolkit which ``lines`` are in."""

    @classmethod
    def from_folder(cls, folder: Path) -> SourceLines:
        """Read the lines of a kernel's directory, or of one of several probes in it.

        Files that are missing or damaged give fewer lines, never an error.
        """
        try:
            pruned = _read_text(folder / "pruned.ptx")
        except OSError:
            lines = _lines_of_sass(folder)
            has_toolkit = any(is_of_toolkit(source.file) for source in lines.values())
            return cls(lines, call_lines(folder) if has_toolkit else {})
        lines = lines_of_directives(pruned)
        if lines:
            return cls(lines, _calls_of_directives(pruned))
        try:
            return cls(*_lines_of_machine_code(pruned, folder))
        except (OSError, ImageError, PtxError):
            return cls({})

    def ptx_line(self, number: int) -> SourceLine | None:
        """The source of a line of ``pruned.ptx``, counted from 1; None if it is not known."""
        return self.lines.get(number)

    def program_line(self, number: int) -> SourceLine | None:
        """``ptx_line``; of code that a header of the CUDA Toolkit defines, the line of the program that calls it."""
        return self.calls.get(number) or self.lines.get(number)

    def following(self, number: int) -> SourceLine | None:
        """The source of the first line from ``number`` on whose source is known.

        For the head of a loop or block, whose first instruction may have no machine code of its own.
        """
        line_numbers = sorted(self.lines)
        place = bisect_right(line_numbers, number - 1)
        return self.lines[line_numbers[place]] if place < len(line_numbers) else None


def _lines_of_sass(folder: Path) -> dict[int, SourceLine]:
    """Source lines of a kernel that was probed in its SASS, by offset; none of another."""
    try:
        info = read_kernel_info(folder / "kernel.info")
        if info.graft is None:
            return {}
        places = source_locations(read_within(folder / "pruned.bin", CUBIN), info.name, info.graft.appended_offset)
    except (OSError, ImageError, TraceError):
        return {}
    return {Offset(offset): SourceLine(*place) for offset, place in places.items()}


def call_lines(folder: Path) -> dict[int, SourceLine]:
    """The lines of the calls through which headers of the CUDA Toolkit were inlined, by offset in SASS that was probed
    itself: of each instruction of such a header the innermost call in a file of the program; none if nothing tells.
    """
    try:
        info = read_kernel_info(folder / "kernel.info")
        image = read_within(folder / "pruned.bin", CUBIN)
        size = info.graft.appended_offset if info.graft else 0
        places = source_locations(image, info.name, size)
        chains = call_chains(image, info.name, size)
    except (OSError, ImageError, TraceError):
        return {}
    of_toolkit = {
        offset: calls for offset, calls in chains.items() if offset in places and is_of_toolkit(places[offset][0])
    }
    program_calls = {
        offset: next((call for call in calls if not is_of_toolkit(call[0])), None)
        for offset, calls in of_toolkit.items()
    }
    return {Offset(offset): SourceLine(*call) for offset, call in program_calls.items() if call and all(call)}


def lines_of_original_ptx(folder: Path, ptx: str, offsets: Iterable[int]) -> tuple[dict[int, int], bool]:
    """Return the line of ``original.ptx`` of each offset in SASS that was probed itself, where it is known.

    True if these lines are from the cubin's table. Without one, it is the first instruction of the same source line.
    """
    try:
        name, pruned = read_kernel_info(folder / "kernel.info").name, read_within(folder / "pruned.bin", CUBIN)
        rows = _ptx_rows(pruned, name) or _ptx_rows_of_original(folder, name, pruned)
    except (OSError, ImageError, TraceError):
        return {}, False
    if rows:
        places = {offset: bisect_right(rows, offset, key=lambda row: row[0]) - 1 for offset in offsets}
        return {offset: rows[place][1] for offset, place in places.items() if place >= 0}, True
    first_lines: dict[SourceLine, int] = {}
    for number, source in lines_of_directives(_function_text(ptx, name)).items():
        first_lines.setdefault(source, number)
    sources = _lines_of_sass(folder)
    return {
        offset: first_lines[sources[offset]]
        for offset in offsets
        if offset in sources and sources[offset] in first_lines
    }, False


def _ptx_rows(cubin: bytes, name: str) -> list[tuple[int, int]]:
    """The table of PTX lines of a kernel: address and line. Raises ImageError."""
    tables = (table for table in line_tables(cubin) if table.name == name)
    return sorted((row.address, row.line) for table in tables for row in table.ptx)


def _ptx_rows_of_original(folder: Path, name: str, pruned: bytes) -> list[tuple[int, int]]:
    """The table in the image of the program, as a cubin that was pruned to one kernel has none. Raises ImageError.

    Without the image there is no table; callers then use source lines.
    """
    try:
        image = read_within(_shared_file(folder, "original.bin"), CUBIN)
    except OSError:
        return []
    entries = image_entries(image)
    arch = Cubin.read(pruned).arch
    cubins = (entry.content() for entry in entries if entry.kind == EntryKind.ELF and entry.arch == arch)
    return next(filter(None, (_ptx_rows(cubin, name) for cubin in cubins)), [])


def _function_text(ptx: str, name: str) -> str:
    """Return the text with empty lines for labels and for what is not code of a function, but for ``.file``."""
    lines, is_inside = [], False
    for text in ptx.split("\n"):
        if _FUNCTION.match(text):
            is_inside = re.search(rf"\b{re.escape(name)}\(", text) is not None
        is_code = is_inside and not re.match(r"\s*([{}()]|\.(?!loc)|\S+:\s*$)", text)
        lines.append(text if is_code or _FILE.match(text) else "")
    return "\n".join(lines)


def is_of_toolkit(file: str) -> bool:
    """True for a header of the CUDA Toolkit."""
    return _TOOLKIT_HEADER.search(file) is not None


def files_of(folder: Path) -> list[str]:
    """The source files that the lines of a kernel name, as the compiler was given them; none if nothing tells them."""
    if lines := _lines_of_sass(folder):
        return sorted({source.file for source in lines.values()})
    try:
        pruned = _read_text(folder / "pruned.ptx")
        used_numbers = {int(match[1]) for text in pruned.split("\n") if (match := _LOC.match(text)) is not None}
        if used_numbers:
            return [path for number, path in named_files(pruned).items() if number in used_numbers]
        tables = line_tables(_read_cubin(folder))
    except (OSError, ImageError):
        return []
    return sorted({row.file for table in tables for row in table.source if row.file})


def _read_text(path: Path) -> str:
    return read_within(path, PTX_TEXT).decode("utf-8", "replace")


def lines_of_directives(ptx: str) -> dict[int, SourceLine]:
    """Source lines by the ``.loc`` directives of a PTX text: one for every line that a directive holds for."""
    files = named_files(ptx)
    lines: dict[int, SourceLine] = {}
    current: SourceLine | None = None
    for number, text in enumerate(ptx.split("\n"), 1):
        if (match := _LOC.match(text)) is not None:
            file, line = files.get(int(match[1])), int(match[2])
            current = SourceLine(file, line) if file and line else None
        elif _FUNCTION.match(text):
            current = None
        elif current is not None and text.strip():
            lines[number] = current
    return lines


def _calls_of_directives(ptx: str) -> dict[int, SourceLine]:
    """Lines of the program that call headers of the CUDA Toolkit, by line of a PTX text, from ``.loc`` directives.

    The place of a call is that of the last directive before it, which may be inlined itself.
    """
    files = named_files(ptx)
    calls: dict[int, SourceLine] = {}
    inlined_at: dict[tuple[str, ...], tuple[str, ...]] = {}
    current: SourceLine | None = None
    for number, text in enumerate(ptx.split("\n"), 1):
        if (match := _INLINED_LOC.match(text)) is not None:
            place, call = match.group(1, 2, 3), match.group(4, 5, 6)
            chain = [place]
            while call[0] and call not in chain:
                chain.append(call)
                call = inlined_at.get(call, (None,))
            inlined_at[place] = match.group(4, 5, 6)
            current = _call_of(SourceLine(files.get(int(file), ""), int(line)) for file, line, _ in chain)
        elif _FUNCTION.match(text):
            current = None
            inlined_at.clear()
        elif current is not None and text.strip():
            calls[number] = current
    return calls


def named_files(ptx: str) -> dict[int, str]:
    """The files that the ``.file`` directives of a text name, by their numbers."""
    return {int(number): f"{path}/{name}" if name else path for number, path, name in _FILE.findall(ptx)}


def _shared_file(folder: Path, name: str) -> Path:
    """A file that all probes of a kernel share, in the kernel's folder, which contains folders of several probes."""
    path = folder / name
    return path if path.exists() else folder.parent / name


def _read_cubin(folder: Path) -> bytes:
    """The cubin that the PTX of a kernel came from; nothing if it came from elsewhere. Raises OSError, ImageError."""
    image = read_within(_shared_file(folder, "original.bin"), CUBIN)
    return cubin_with_ptx(image_entries(image), _read_text(_shared_file(folder, "original.ptx")))


def _lines_of_machine_code(pruned: str, folder: Path) -> tuple[dict[int, SourceLine], dict[int, SourceLine]]:
    """The lines, and the lines of calls, of a kernel whose PTX came from a cubin with line tables."""
    image = _read_cubin(folder)
    if not image:
        return {}, {}
    original = parse(_read_text(_shared_file(folder, "original.ptx")))
    by_name = {function.name: function for function in _functions(original)}
    pairs = [(by_name[function.name], function) for function in _functions(parse(pruned)) if function.name in by_name]
    chains = chains_of_tables(
        image,
        [
            (original_function, pruned_function.span.line - original_function.span.line)
            for original_function, pruned_function in pairs
        ],
    )
    calls = {line: _call_of(chain) for line, chain in chains.items()}
    return {line: chain[0] for line, chain in chains.items()}, {line: call for line, call in calls.items() if call}


def _call_of(chain: Iterable[SourceLine]) -> SourceLine | None:
    """The first line of the program in a chain of calls that begins in a header of the CUDA Toolkit; else None."""
    innermost, *calls = chain
    return (
        next((call for call in calls if not is_of_toolkit(call.file)), None) if is_of_toolkit(innermost.file) else None
    )


def _functions(module: Module) -> list[Function]:
    return [item for item in module.items if isinstance(item, Function) and item.body_span is not None]


def chains_of_tables(image: bytes, functions: Iterable[tuple[Function, int]]) -> dict[int, tuple[SourceLine, ...]]:
    """Source lines by the line tables of a cubin, for functions of the PTX that the assembler saw: of each line the
    innermost place, then those of the calls that were inlined around it.

    Lines are counted as in a text in which each function begins some lines later, as given. Raises ImageError.
    """
    tables = {table.name: table for table in line_tables(image)}
    chains: dict[int, tuple[SourceLine, ...]] = {}
    for function, shift in functions:
        if (table := tables.get(function.name)) is not None:
            chains |= {line + shift: chain for line, chain in _chains_in(table, function).items()}
    return chains


def _chains_in(table: FunctionTables, function: Function) -> dict[int, tuple[SourceLine, ...]]:
    """The chain of each line of a function: that of most of its instructions."""
    last_line = max((node.span.line for node in function.body or ()), default=function.span.line)
    addresses = [row.address for row in table.source]
    votes: dict[int, Counter[tuple[tuple[str, int], ...]]] = {}
    for row in table.ptx:
        place = bisect_right(addresses, row.address) - 1
        if place >= 0 and function.span.line <= row.line <= last_line:
            _, file, line, _ = table.source[place]
            if file and line > 0:
                votes.setdefault(row.line, Counter())[(file, line), *table.calls[place]] += 1
    chains = {line: max(chain_votes, key=chain_votes.__getitem__) for line, chain_votes in votes.items()}
    return {line: tuple(SourceLine(*place) for place in chain) for line, chain in chains.items()}


def copy_name(path: str) -> str:
    """The name of a file's copy in the folder of copies: ``DIGEST_NAME``, with the digest of its path."""
    name = re.sub(r"[^\w.+-]", "_", path.rpartition("/")[2])[-_LONGEST_NAME:]
    return f"{hashlib.sha1(path.encode('utf-8', 'surrogateescape')).hexdigest()[:_DIGITS]}_{name}"


def copied_names(trace: Path) -> list[str]:
    """The names of the files that a trace has copies of, without their folders; none where it has none."""
    folder = path_in_trace(trace, SOURCE_FOLDER)
    try:
        names = [] if folder is None else [path.name for path in folder.iterdir() if not path.is_symlink()]
    except OSError:
        return []
    return sorted(name[_DIGITS + 1 :] for name in names if _COPY_NAME.fullmatch(name))


class SourceFiles:
    """The copies in one trace: the text behind source lines. They are made while the program runs, since a trace is
    read later and elsewhere, and no path in it is ever followed out of it.

    Each copy is read once; what is not there, or no text, has no lines.
    """

    def __init__(self, trace: Path) -> None:
        self._trace = trace
        self._cached_lines = lru_cache(maxsize=64)(self._read_lines)

    def lines(self, path: str) -> tuple[str, ...]:
        """The lines of a file by the path that the compiler was given; none if the trace has no copy of it."""
        return self._cached_lines(path)

    def text(self, line: SourceLine) -> str:
        """The text of a line without the white space around it, "" if it is not known."""
        lines = self.lines(line.file)
        return lines[line.line - 1].strip() if 1 <= line.line <= len(lines) else ""

    def _read_lines(self, path: str) -> tuple[str, ...]:
        copy = path_in_trace(self._trace, SOURCE_FOLDER, copy_name(path))
        try:
            if copy is None or not copy.is_file():
                return ()
            data = read_start(copy, SOURCE_FILE)
        except OSError:
            return ()
        return tuple(_printable_line(line) for line in data.decode("utf-8", "replace").splitlines())


def _printable_line(line: str) -> str:
    """A line as a terminal can show it."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line.expandtabs(4))

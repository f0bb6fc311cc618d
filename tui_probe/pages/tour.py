"""A walk through one trace: its files, its log in words, a kernel before and after, a result byte by byte."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.hanging import hanging
from tui_probe.draw.printable import printable
from tui_probe.draw.table import safe
from tui_probe.errors import TraceError
from tui_probe.input_limits import LOG_LINE, PTX_TEXT
from tui_probe.pages.event_words import event_words
from tui_probe.probekit.measured import all_measured, name_of_probe
from tui_probe.trace.events import parse_line
from tui_probe.trace.locate import LOG, inside
from tui_probe.trace.plain_file import open_plain, read_start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.trace.model import Kernel, Trace

OF_EACH_KIND: Final = 2
"""Lines of the log that are explained of each kind; the others are counted."""
MOST_LINES: Final = 50_000
"""Lines of the log that are looked through."""
_HEADER: Final = 32
_SECTION: Final = 16
_FILES: Final = (
    ("probe.toml", "the probe as it was used"),
    (LOG, "what the hook did in the program, a line for each event"),
    ("kernel", "a folder for each kernel that was prepared"),
    ("result", "what the probe recorded, a file for each launch, named by seconds since the start"),
    ("read.py", "a program that reads these files, made for this probe"),
    ("run.json", "how the run was started, on what, and how it ended"),
    ("stdout.log", "what the program wrote to stdout"),
    ("stderr.log", "what the program wrote to stderr"),
    ("tensor.trace", "the tensors that the program said it had"),
)
_KERNEL_FILES: Final = (
    ("original.bin", "the image as the program loaded it"),
    ("original.ptx", "all PTX that was found in it"),
    ("pruned.ptx", "the PTX of this kernel alone"),
    ("probed.ptx", "the same with the probe"),
    ("pruned.bin", "the first one assembled"),
    ("probed.bin", "the second one assembled, which was launched"),
    ("kernel.info", "what the hook has to know of it"),
    ("process.log", "how it was prepared, and what the assembler said"),
)


def tour_lines(trace: Trace, cells: int, kernel: Kernel | None = None) -> Iterator[str]:
    """The whole walk, as lines of at most ``cells`` cells. Without a ``kernel`` the first with a result is taken."""
    chosen = kernel or _best(trace)
    for title, lines in (
        ("The files of the trace", _files(trace)),
        ("event.log in words", _log(trace)),
        ("A kernel, before and after", _kernel(chosen)),
        ("How a result file is laid out", _result(trace, chosen)),
        ("What reads it, and what it says", _analysis(trace, chosen)),
    ):
        yield title
        for line in lines:
            yield from hanging(f"  {line}", cells)
        yield ""


def _files(trace: Trace) -> Iterator[str]:
    for name, words in _FILES:
        path = inside(trace.directory, name)
        if path is not None and path.is_dir():
            yield f"{name + '/':<14}{words}: {units.count(sum(1 for _ in path.iterdir()))} there"
        else:
            size = units.size(path.stat().st_size) if path is not None and path.is_file() else "not in this trace"
            yield f"{name:<14}{words}: {size}"


def _log(trace: Trace) -> Iterator[str]:
    path = trace.file(LOG)
    seen: Counter[str] = Counter()
    if path is None:
        return
    with open_plain(path) as file:
        for line in islice(iter(lambda: file.readline(LOG_LINE.most), b""), MOST_LINES):
            event = parse_line(line.rstrip(b"\n"))
            words = event_words(event)
            kind = type(event).__name__ if words else "others"
            seen[kind] += 1
            if words and seen[kind] <= OF_EACH_KIND:
                yield printable(line.rstrip(b"\n"))
                yield f"    → {safe(words)}"
        rest = bool(file.readline())
    shown = sum(min(count, OF_EACH_KIND) for kind, count in seen.items() if kind != "others")
    more = units.counted(sum(seen.values()) - shown, "more line") + (" and those behind them" if rest else "")
    yield f"{more} of these kinds and others: the page of events has them"


def _kernel(kernel: Kernel | None) -> Iterator[str]:
    if kernel is None:
        yield "no kernel was prepared"
        return
    yield f"#{kernel.index} {safe(kernel.demangled)}: {kernel.status}"
    for name, words in _KERNEL_FILES:
        if (path := kernel.file(name)) is not None:
            yield f"{name:<14}{words}: {units.size(path.stat().st_size)}"
    if (info := kernel.info) is not None:
        yield f"kernel.info says: {units.counted(info.parameters, 'parameter')}, {units.counted(len(info.maps), 'map')}"
        for number, each in enumerate(info.maps):
            size = "as many bytes as are needed" if each.size < 0 else units.counted(each.size, "byte")
            yield f"  map {number}: {size} for each {each.level}"
    yield from _added(kernel)
    if kernel.registers_pruned is not None and kernel.registers_probed is not None:
        yield f"registers per thread: {kernel.registers_pruned} before, {kernel.registers_probed} with the probe"


def _added(kernel: Kernel) -> Iterator[str]:
    """What the probed text has more than the pruned one."""
    pruned, probed = kernel.file("pruned.ptx"), kernel.file("probed.ptx")
    if pruned is None or probed is None:
        return
    before, after = _lines(pruned), _lines(probed)
    added = list((Counter(after) - Counter(before)).elements())
    parameters = sum(".param" in line and ".entry" not in line and line.startswith(".param") for line in added)
    more = f"{units.counted(len(added), 'line')} that pruned.ptx does not have"
    yield f"probed.ptx has {more}, {units.counted(parameters, 'parameter')} among them: the page Diff marks them"


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in read_start(path, PTX_TEXT).decode("utf-8", "replace").splitlines()]


def _result(trace: Trace, kernel: Kernel | None) -> Iterator[str]:
    row = None if kernel is None else kernel.newest_result
    path = None if row is None else trace.results.path(row)
    if kernel is None or path is None:
        yield "no result was saved"
        return
    try:
        result = kernel.read(path)
    except TraceError as error:
        yield safe(str(error))
        return
    header = result.header
    yield f"result/{path.name}, {units.counted(path.stat().st_size, 'byte')}, little-endian"
    grid, block = units.extent(header.grid), units.extent(header.block)
    said = f"grid {grid}, block {block}, shared memory {header.shared}, {units.counted(header.maps, 'map')}"
    yield f"0       8 numbers of 4 bytes: {said}"
    for number, section in enumerate(result.sections):
        at, slots = _HEADER + _SECTION * number, header.blocks * header.slots(section.level)
        if not section.slot_bytes:
            yield f"{at:<8}map {number}: no slots of its own; what is kept of it stands behind the maps"
            continue
        yield f"{at:<8}map {number}: {section.slot_bytes} bytes for each {section.level}, from byte {section.offset} on"
        yield f"{section.offset:<8}{units.counted(slots, 'slot')} of it, block by block"
    if result.dialect == "older":
        yield "the sections are those of older systems: 8 bytes for the size of all slots, 8 for where they begin"


def _analysis(trace: Trace, kernel: Kernel | None) -> Iterator[str]:
    if kernel is None:
        yield "no result was saved"
        return
    if trace.file("read.py") is not None:
        yield "read.py: header, sections, records = parse(FILE); records[MAP][block][slot][record].FIELD"
    yield f"the probe is {safe(name_of_probe(kernel))}"
    for each in all_measured(trace, kernel, most=OF_EACH_KIND):
        yield f"{each.label}: {each.words}"


def _best(trace: Trace) -> Kernel | None:
    """The first kernel with a result, else the first that was prepared."""
    kernels = list(trace.kernels)
    with_results = (kernel for kernel in kernels if kernel.result_rows)
    return next(with_results, next((kernel for kernel in kernels if kernel.folder is not None), None))

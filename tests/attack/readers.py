"""The parsers of the project, each with real files to begin with and a call that reads one."""

from __future__ import annotations

import contextlib
import json
import lzma
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.engine.cubin_entries import kernels_in
from tests.importers import test_nsys_csv
from tests.importers.export import call, kernel, span, tables, write_export
from tests.recorded import DATA, H200, SIMULATED, unpacked
from tests.trace.test_sites import PROBE, WHOLE
from tui_probe.binaries import elf, line_tables
from tui_probe.binaries.cubin import Cubin
from tui_probe.errors import ProbeError, UnsupportedKernelError
from tui_probe.evals.bandwidth import read_products
from tui_probe.evals.dmat.raster import read_page_map
from tui_probe.evals.inputs import read_collected
from tui_probe.evals.overhead.costs import PUBLISHED_STUDY, SMALL_STUDY, read_study
from tui_probe.launcher.control import page_of_trace
from tui_probe.nsight.importers.ncu import read_ncu_file
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.pages.code import sass_text
from tui_probe.pages.views import kinds
from tui_probe.probe_files.loading import built_in_files, read_probe
from tui_probe.probekit.measured import analyse_results
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.ptx.images import ptx_texts
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import prune_to_kernel
from tui_probe.sass.prune import prune_cubin
from tui_probe.sass.target import GraftTarget
from tui_probe.settings import read_settings
from tui_probe.trace.events import parse_line
from tui_probe.trace.follow import open_trace
from tui_probe.trace.kernel_files import parse_kernel_info, parse_process_log
from tui_probe.trace.locate import parse_address
from tui_probe.trace.model import Trace
from tui_probe.trace.recent import exit_counts, summarize_trace
from tui_probe.trace.results import read_result
from tui_probe.trace.run_info import read_run_info
from tui_probe.trace.sites import parse_sites
from tui_probe.trace.source_lines import files_of, lines_of_directives, named_files
from tui_probe.trace.tensors import read_tensors
from tui_probe.verdicts.bandwidth import parse_bandwidth

LARGEST: Final = 40_000
"""Bytes of a seed: small files are damaged at their heart sooner, and read faster."""


@dataclass(frozen=True)
class Reader:
    """One parser. ``cost`` is how long an input takes, in the same unit for all: those that take long get fewer."""

    name: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], object]
    cost: float = 1.0


def files(pattern: str, most: int = 12) -> Callable[[], list[bytes]]:
    """The smallest recorded files of a pattern, unpacked."""

    @cache
    def seeds() -> list[bytes]:
        contents = (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
                 for path in sorted(DATA.glob(pattern)) if path.stat().st_size < LARGEST)  # fmt: skip
        fitting = sorted((data for data in contents if len(data) < LARGEST), key=lambda data: (len(data), data))
        return list(dict.fromkeys(fitting))[:most]

    return seeds


def written(read: Callable[[Path], object], name: str) -> Callable[[bytes, Path], object]:
    """A reader of files as one of bytes."""

    def read_bytes(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        return read(path)

    return read_bytes


def text(read: Callable[[str], object]) -> Callable[[bytes, Path], object]:
    return lambda data, _: read(data.decode("utf-8", "surrogateescape"))


def _result(path: Path) -> None:
    """The arrays, and all that a file may tell about them."""
    result = read_result(path)
    for index in range(len(result.maps)):
        for look in (
            result.attempts,
            result.record_counts,
            result.capacity,
            result.written_mask,
            result.totals,
            result.group,
        ):
            look(index)
        size = result.map_records[index].record_bytes if result.map_records else result.sections[index].slot_bytes
        for of in (result.sites, result.reduced, result.records):
            of(index, f"V{size}")


@cache
def _measured_trace(name: str, folder: Path) -> tuple[Trace, Path]:
    copy = unpacked(SIMULATED / name, folder / "measured")
    return open_trace(copy), next(path for path in sorted(copy.glob("result/*.bin")))


def _analysis(name: str) -> Reader:
    """A probe's analysis of damaged records, its timeline and its pages' text."""

    def seeds() -> list[bytes]:
        results = [path for path in sorted(SIMULATED.glob(f"{name}/result/*")) if path.stat().st_size < 200_000]
        contents = [
            lzma.decompress(result.read_bytes()) if result.suffix == ".xz" else result.read_bytes()
            for result in results
        ]
        return [data for data in contents if len(data) < 1 << 20]

    def read(data: bytes, folder: Path) -> None:
        trace, path = _measured_trace(name, folder)
        path.write_bytes(data)
        for traced in trace.kernels:
            for measured in analyse_results(trace, traced):
                _ = measured.label
            for kind in kinds():
                source = ViewSource(trace, traced)
                if kind.name in _DRAWN and kind.missing_reason(source) is None:
                    view = kind.open(source, lambda _: None)
                    view.record()

    return Reader(f"probe {name}", seeds, read, 60.0)


_DRAWN: Final = ("timeline", "blocks", "summary", "lines", "sectors", "memory", "progress", "dmat", "latency")


def _event_lines(data: bytes, _: Path) -> None:
    for line in data.split(b"\n")[:40]:
        parse_line(line)


def _log(data: bytes, folder: Path) -> None:
    """A trace of a log only, as a user opens it."""
    trace = folder / "log"
    trace.mkdir(exist_ok=True)
    (trace / "event.log").write_bytes(data)
    opened = open_trace(trace)
    for row in range(len(opened.launches)):
        _ = opened.launches[row]
    for traced in opened.kernels:
        _ = traced.demangled, traced.status, traced.reason
    summarize_trace(trace)
    exit_counts(trace)


def _run(data: bytes, folder: Path) -> None:
    (folder / "run.json").write_bytes(data)
    read_run_info(folder / "run.json")
    page_of_trace(folder)


def _ptx(data: str) -> None:
    module = parse(data)
    for entry in module.entries():
        if entry.body_span is not None:
            prune_to_kernel(module, entry.name)
    lines_of_directives(data)
    named_files(data)


def _image(data: bytes, folder: Path) -> None:
    for part in (ptx_texts, kernels_in, line_tables.line_tables, elf.Sections):
        with contextlib.suppress(ProbeError):
            part(data)
    (folder / "pruned.bin").write_bytes(data)
    (folder / "pruned.ptx").write_bytes(b'.file 1 "a.cu"\n')
    files_of(folder)


def _cubin(data: bytes, _: Path) -> None:
    cubin = Cubin.read(data)
    for section in cubin.relocation_sections():
        cubin.relocations(section)
    for name in cubin.kernels[:4]:
        with contextlib.suppress(UnsupportedKernelError):
            GraftTarget.from_cubin(cubin, name)
        with contextlib.suppress(UnsupportedKernelError):
            prune_cubin(cubin, name, line_tables.cut_table)


def _probe(suffix: str) -> Callable[[bytes, Path], object]:
    return lambda data, folder: read_probe(data, folder / f"probe.{suffix}")


def _built_in_probes() -> list[bytes]:
    return [path.read_bytes() for path in built_in_files().values()]


def _probes_in_python() -> list[bytes]:
    return [path.read_bytes() for path in sorted((Path(__file__).parent.parent / "dsl" / "programs").glob("*.py"))]


def _site_seeds() -> list[bytes]:
    """Of PTX, and of machine code."""
    load = {"offset": 0x70, "at": "instruction", "points": ["load"], "opcode": "LDG.E", "class": "load"}
    graft = {"probe": "g", "way": "graft", "sites": [load], "maps": {"m": {"sites": [0]}}, "unchecked": []}
    return [json.dumps({**WHOLE, "probes": probes}).encode() for probes in ([PROBE], [graft], [PROBE, graft])]


def _tensors(data: bytes, folder: Path) -> None:
    trace = folder / "tensors"
    if not trace.exists():
        shutil.copytree(H200 / "demo", trace)
    (trace / "tensor.trace").write_bytes(data)
    for tensor in read_tensors(open_trace(trace)):
        _ = tensor.text, tensor.index(0), tensor.index(tensor.size - 1)


def _page_map_seeds() -> list[bytes]:
    head = struct.pack("<QQ3Q", 3, 2, 0x7F00_0000_0000, 0x7F00_0001_0000, 0x7F00_0002_0000)
    return [
        head + struct.pack("<QQ", 3, 1) + struct.pack(count, 0x7F00_0000_0000, 5)
        + struct.pack("<QQ", 9, 1) + struct.pack(count, 0x7F00_0002_0000, 1)
        for count in ("<QI", "<QQ")
    ]  # fmt: skip


@cache
def _sqlite_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
        path = write_export(
            Path(folder) / "one.sqlite",
            tables(
                kernels=[kernel(100, 150, 1), kernel(200, 260, 2, name=4, stream=8)],
                calls=[call(10, 20, 1), call(30, 40, 2)],
                ranges=[span(0, 300, "outer"), span(5, 25, None, text_id=3)],
            ),
        )
        return [path.read_bytes()]


def _csv_seeds() -> list[bytes]:
    return [table.encode() for table in (test_nsys_csv.TRACE, test_nsys_csv.RANGES, test_nsys_csv.SUMS)]


def _words() -> list[bytes]:
    return [b"trace:3@5", b"trace/Nov01:kernel.*@12", b":0", b"@7", b"a/result/0.123456.bin", b"x:3:4"]


def _json(value: object) -> list[bytes]:
    return [json.dumps(value).encode()]


def _bandwidth_seeds() -> list[bytes]:
    rate = {"key": "memory_read", "bytes_per_second": 4.4e12, "spread": 0.01, "bytes": 1 << 30, "repeats": 5}
    return _json({"bandwidth": [rate], "device": {"name": "NVIDIA H200", "sms": 132, "l2_bytes": 1 << 25}})


_PRODUCT: Final = {"product": [64, 64, 64], "dtype": "bf16", "device": "cuda", "milliseconds": [0.1, 0.2]}
_COLLECTED: Final = {"version": 1, "runs": {"a": {"command": "x", "problem": None, "kept": 1, "note": "words"}}}


def _all() -> Iterator[Reader]:
    yield Reader("results", files("*/*/result/*"), written(_result, "0.000001.bin"), 3.0)
    yield from map(_analysis, ("block_sched", "gmem_bytes", "gmem_sectors", "warp_progress", "dmat"))
    yield Reader("event lines", files("*/*/event.log"), _event_lines)
    yield Reader("event.log", files("*/*/event.log"), _log, 10.0)
    yield Reader("run.json", files("*/*/run.json"), _run)
    yield Reader("kernel.info", files("*/*/kernel/*/kernel.info"), lambda data, _: _lines(parse_kernel_info, data))
    yield Reader("process.log", files("*/*/kernel/*/process.log"), lambda data, _: _lines(parse_process_log, data))
    yield Reader("sites.json", _site_seeds, lambda data, _: parse_sites(data))
    yield Reader("tensor.trace", _tensor_lines, _tensors, 8.0)
    yield Reader("page maps", _page_map_seeds, written(read_page_map, "one.dmat"))
    yield Reader("ptx", files("ptx/*.ptx"), text(_ptx), 30.0)
    yield Reader("images", files("ptx/*.[cfo]*"), _image, 10.0)
    yield Reader("cubins", files("ptx/*.cubin"), _cubin, 5.0)
    yield Reader("sass", files("sass/*.txt"), text(sass_text.parse_sass), 3.0)
    yield Reader("probes in TOML", _built_in_probes, _probe("toml"), 8.0)
    yield Reader("probes in Python", _probes_in_python, _probe("py"), 20.0)
    yield Reader("ncu", files("*/ncu/*"), written(read_ncu_file, "one.csv"), 5.0)
    yield Reader("nsys sqlite", _sqlite_seeds, written(lambda path: read_nsys([path]), "one.sqlite"), 8.0)
    yield Reader("nsys csv", _csv_seeds, written(lambda path: read_nsys([path]), "one.csv"), 2.0)
    yield Reader("settings", _settings, written(read_settings, "config.toml"))
    yield Reader(
        "studies", lambda: [SMALL_STUDY.read_bytes(), PUBLISHED_STUDY.read_bytes()], written(read_study, "s.toml"), 3.0
    )
    yield Reader(
        "collected", lambda: _json(_COLLECTED), written(lambda one: read_collected(one.parent), "collected.json")
    )
    yield Reader("bandwidth", _bandwidth_seeds, lambda data, _: parse_bandwidth(data, Path("b.json")))
    yield Reader(
        "products", lambda: _json(_PRODUCT), text(lambda words: list(read_products(words, Path("stdout.log"))))
    )
    yield Reader("addresses", _words, text(lambda word: parse_address(word, lambda _: False)))


def _lines(read: Callable[[list[str]], object], data: bytes) -> object:
    return read(data.decode("utf-8", "replace").splitlines())


def _settings() -> list[bytes]:
    return [b'trace_dir = "~/traces"\nmouse = false\npalette = "dark"\nbandwidth = "4.4T"\n[keys]\nquit = "q"\n']


def _tensor_lines() -> list[bytes]:
    """As existing systems write them, and as we do."""
    older = b"[call]  1795233173461932827  torch.Size([128, 128])  65536  140486113558528  weights  f  a.py:3\n"
    return [older, older.rstrip() + b"  torch.float32  4  (128, 1)  140486113558528\n" + older.replace(b"call", b"ret")]


READERS: Final = tuple(_all())

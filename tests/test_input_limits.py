"""Limits of readers: each file from elsewhere is read up to a limit of the table, and refused above it."""

from __future__ import annotations

import ast
import gzip
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

import tui_probe
from tui_probe.engine.image_kernels import read_kernel_file
from tui_probe.errors import ProbeError, TraceError
from tui_probe.evals.dmat.raster import read_page_map
from tui_probe.evals.evaluation import evaluate
from tui_probe.evals.inputs import COLLECTED_FILE, read_collected
from tui_probe.evals.latency import read_median_table
from tui_probe.input_limits import ACCESSES, LIMITS
from tui_probe.launcher.control import page_of_trace
from tui_probe.trace.kernel_files import read_kernel_info
from tui_probe.ui.help_text import help_page

PACKAGE = Path(tui_probe.__file__).parent
READING = ("analysis", "api", "evals", "nsight", "pages", "probekit", "trace", "ui")
"""Packages that read files from elsewhere."""
UNBOUNDED = {"read_bytes", "read_text", "readlines", "decompress", "fromfile"}
EXCEPTIONS = {
    "evals/critical/__init__.py": "read",  # of a Program, not of a file
    "trace/run_info.py": "read_bytes",  # of /proc
    "trace/user_state.py": "read_text",  # our own file
    "trace/trace_directory.py": "read",  # what this run wrote
    "ui/app.py": "read",  # of a mark on the screen
}
FIVE_GB = 5 << 30

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "kernels": ("x.so", read_kernel_file),
    "page map": ("x.dmat", read_page_map),
    "kernel.info": ("kernel.info", read_kernel_info),
    "collection": (COLLECTED_FILE, lambda path: read_collected(path.parent)),
    "medians": ("x.csv", read_median_table),
    "accesses": ("x.json", lambda path: evaluate("dmat", path)),
}


@pytest.mark.parametrize("name", READERS)
def test_reader_refuses_sparse_file(tmp_path: Path, name: str) -> None:
    file, read = READERS[name]
    path = tmp_path / file
    with path.open("wb") as sparse:
        sparse.truncate(FIVE_GB)
    with pytest.raises(ProbeError, match="larger than") as error:
        read(path)
    assert str(path) in str(error.value)


def test_check_refuses_large_file_of_other_kind_by_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.so"
    with path.open("wb") as sparse:
        sparse.truncate(1 << 30)
    monkeypatch.setattr("tui_probe.engine.image_kernels.read_within", None)  # which would take 1 GiB
    with pytest.raises(ProbeError, match=r"x\.so: the image \(1073741824 bytes, .* is not a cubin, fatbin or PTX"):
        read_kernel_file(path)


def test_trace_with_large_run_json_counts_as_ended(tmp_path: Path) -> None:
    with (tmp_path / "run.json").open("wb") as sparse:
        sparse.truncate(FIVE_GB)
    assert page_of_trace(tmp_path) is None


def test_packed_accesses_are_unpacked_up_to_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("tui_probe.evals.dmat"), "ACCESSES", ACCESSES._replace(maximum=1 << 20))
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(bytes(16 << 20)))
    with pytest.raises(TraceError, match="the limit for a decompressed JSON file of accesses") as error:
        evaluate("dmat", path)
    assert str(path) in str(error.value)


def test_help_lists_all_limits() -> None:
    page = help_page("formats")
    assert len(LIMITS) > 20
    for limit in LIMITS:
        assert f"| {limit.subject} | {limit.size} | {limit.consequence} |" in page


def test_packages_that_read_files_have_no_unbounded_reads() -> None:
    unbounded = {(name, call) for name, call in _unbounded_calls() if EXCEPTIONS.get(name) != call}
    assert unbounded == set()


def _unbounded_calls() -> Iterator[tuple[str, str]]:
    for package in READING:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            name = str(path.relative_to(PACKAGE))
            if "programs" in path.parts:  # which are not imported
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    call = node.func.attr
                    if call in UNBOUNDED or (call == "read" and not node.args):
                        yield name, call

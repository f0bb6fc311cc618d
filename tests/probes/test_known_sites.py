"""What a probe found of lines is the same from ``sites.json`` alone as from ``pruned.ptx`` alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.probes.running import example, result_of
from tests.probes.test_lines_view import OWN, ROUNDS, RUNS
from tests.trace.make import TraceWriter
from tui_probe.analysis.known_sites import sites_of
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.prepare import with_probe
from tui_probe.engine.site_file import site_file
from tui_probe.errors import TraceError
from tui_probe.pages.findings import found
from tui_probe.pages.findings.found import Found, find
from tui_probe.probe_files.loading import load_probe
from tui_probe.probekit.kind import Source
from tui_probe.probekit.lines import LineRows
from tui_probe.probekit.measures import line_rows
from tui_probe.probekit.probe_results import read
from tui_probe.ptx.parser import parse
from tui_probe.trace.follow import open_trace

ALL = {**RUNS, "inst_mix_by_line": ("matmul", (ROUNDS * 0, ROUNDS, ROUNDS, np.int32(64)), (4, 4, 1), (16, 16, 1))}


def recorded(tmp_path: Path, probe: str) -> tuple[Source, Path]:
    """A launch of a probed kernel, and the kernel's folder with all that the engine writes but machine code."""
    name, arguments, grid, block = ALL[probe]
    text = OWN.get(name) or example(name)
    kernel = Kernel.of(parse(text), parse(text).entries()[0].name)
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    folder = writer.kernel(0, kernel.entry.name)
    probed = with_probe(kernel, load_probe(probe))
    (folder / "pruned.ptx").write_text(kernel.pruned)
    (folder / "kernel.info").write_text(probed.info)
    (folder / "sites.json").write_text(site_file(probe, kernel, probed.notes, b""))
    result = result_of(tmp_path, probe, text, *arguments, grid=grid, block=block)
    writer.save(0, writer.launch(0, grid, block), result.path.read_bytes())
    trace = open_trace(writer.directory)
    return Source(trace, trace.kernels[0]), folder


def told(of: Source) -> tuple[LineRows, Found | None]:
    found._remembered.clear()
    return line_rows(read(of))[1], find(of)


@pytest.mark.parametrize("probe", ALL)
def test_the_same_from_either_file(probe: str, tmp_path: Path) -> None:
    of, folder = recorded(tmp_path, probe)
    written = (folder / "sites.json").read_bytes()
    (folder / "sites.json").unlink()
    older = told(of)
    (folder / "pruned.ptx").unlink()
    neither = told(of) if probe != "inst_mix_by_line" else None
    (folder / "sites.json").write_bytes(written)
    assert told(of) == older
    assert older != neither
    assert older[0].rows


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    of, folder = recorded(tmp_path, "nan_check")
    (folder / "sites.json").write_text("{}")
    with pytest.raises(TraceError, match=r"sites\.json: .*; without this file pruned\.ptx is read in its place"):
        line_rows(read(of))


def test_nothing_is_known_without_a_folder() -> None:
    known = sites_of(None)
    assert (list(known.instructions()), list(known.unchecked()), list(known.blocks([3]))) == ([], [], [])
    assert (known.ptx_line(3), known.following(3)) == (None, None)

"""Counts of snippets that are called are those of snippets that are written out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.kernels import HEADER, probed_with_sites
from tests.engine.test_fusion import contents, maps_after
from tests.engine.test_same_results import cases
from tests.turns import due
from tui_probe.engine import insertion
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.snippet_functions import MAX_WRITTEN_OUT
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.probe_model.probe import Level, Probe
from tui_probe.toolchain import Tool

BY_LINE = [
    probe
    for probe in map(load_probe, built_in_names())
    if probe.counts and any(own_map.level is Level.SITE for own_map in probe.maps)
]
ACCESSES = "\n".join(f"ld.global.b32 %r{index}, [%p+{index * 64}];" for index in range(100))
LONG = f"""
.visible .entry long(.param .u64 x)
{{
	.reg .b64 %p; .reg .b32 %r<100>;
	ld.param.u64 %p, [x];
	{ACCESSES}
	ret;
}}
"""


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insertion, "MAX_WRITTEN_OUT", 0)


@pytest.mark.parametrize(("place", "probe"), list(enumerate(BY_LINE)), ids=lambda value: getattr(value, "name", ""))
def test_called_snippets_count_what_written_ones_do(place: int, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    for case in due(cases())[place :: len(BY_LINE)]:  # each kernel with one of the probes
        try:
            written = contents(maps_after(case, probe))
        except UnsupportedKernelError:
            continue
        with monkeypatch.context() as patch:
            patch.setattr(insertion, "MAX_WRITTEN_OUT", 0)
            assert contents(maps_after(case, probe)) == written, case.name
        compared += 1
    assert compared


def test_kernel_with_many_sites_calls_its_snippets() -> None:
    probe = load_probe("gmem_sectors_by_line")
    assert 100 * len(next(point.before for point in probe.points if point.before).statements) > MAX_WRITTEN_OUT
    source, _, sites = probed_with_sites(HEADER + LONG, "long", probe)
    assert source.count("call.uni tp_snippet_0,") == 100
    assert source.count("match.any") == 1
    assert sites


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("arch", [80, 90, 120])
def test_called_snippets_are_assembled(arch: int, ptxas: Tool, tmp_path: Path) -> None:
    assembler = Assembler([ptxas])
    for probe in BY_LINE:
        source, *_ = probed_with_sites(HEADER + LONG, "long", probe)
        (tmp_path / "long.ptx").write_text(source)
        assembler.assemble(tmp_path / "long.ptx", tmp_path / "long.bin", f"sm_{arch}", "long")

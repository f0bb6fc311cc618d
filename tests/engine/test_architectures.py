"""The table of ``help architectures`` says what the engine does to cubins of the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sass.corpus import ARCHITECTURES, cubin
from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.line_tables import cut_table
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.refusals import ARCHITECTURE_SUPPORT, ArchitectureSupport, architecture_table, refuse_architecture
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.prune import prune_cubin
from tui_probe.toolchain import tool_architectures
from tui_probe.ui.help_text import help_page

if TYPE_CHECKING:
    from tui_probe.toolchain import Tool

PROBES = {"block_sched": "entries", "gmem_sectors": "counts", "dmat": "records", "inst_mix": "blocks"}
"""A probe for each column."""


@pytest.fixture(scope="module")
def grafters(ptxas: Tool) -> dict[str, Grafter]:
    return {name: Grafter(load_probe(name), Assembler([ptxas]), samples_blocks=False) for name in PROBES}


def can_graft(grafter: Grafter, arch: int) -> bool:
    image = prune_cubin(Cubin.read(cubin(f"lines.sm_{arch}")), "scale", cut_table)
    try:
        grafter.graft(image, "scale")
    except UnsupportedKernelError:
        return False
    return True


@pytest.mark.parametrize("support", ARCHITECTURE_SUPPORT, ids=lambda support: f"sm_{support.arch}")
def test_table_is_what_grafts_do(support: ArchitectureSupport, grafters: dict[str, Grafter], ptxas: Tool) -> None:
    if support.arch not in tool_architectures(ptxas):
        pytest.skip(f"this ptxas does not know sm_{support.arch}")
    can = {column: can_graft(grafters[name], support.arch) for name, column in PROBES.items()}
    assert can == {column: getattr(support, column) for column in PROBES.values()}


def test_table_has_the_architectures_of_the_corpus() -> None:
    assert [support.arch for support in ARCHITECTURE_SUPPORT] == ARCHITECTURES
    assert architecture_table() in help_page("architectures")


@pytest.mark.parametrize("arch", [52, 61, 70, 72, 87])
def test_unsupported_architecture_is_refused(arch: int) -> None:
    with pytest.raises(UnsupportedKernelError, match=f"SASS mode does not support sm_{arch}"):
        refuse_architecture(arch)


@pytest.mark.parametrize("arch", [75, 90, 121, 130])
def test_supported_architecture_is_not_refused(arch: int) -> None:
    refuse_architecture(arch)

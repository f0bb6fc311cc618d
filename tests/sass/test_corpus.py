"""Every cubin of the corpus: its PTX, its line tables, and its kernels cut out of it."""

from __future__ import annotations

import pytest

from tests.sass.corpus import ARCHITECTURES, NAMES, cubin
from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.line_tables import cut_table, line_tables, source_locations
from tui_probe.ptx.images import ptx_texts
from tui_probe.sass.prune import prune_cubin

LINES = {"scale": {2, 3, 6, 7, 8, 9}, "reverse": {2, 3, 11, 13, 14, 15, 16, 17, 18}}
"""Of ``lines.cu``: those of each kernel, and of the function that both call."""


def test_corpus_has_every_architecture() -> None:
    assert ARCHITECTURES == [75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121]
    assert len(NAMES) == 35


@pytest.mark.parametrize("name", NAMES)
def test_cubin_keeps_its_ptx(name: str) -> None:
    image = Cubin.read(cubin(name))
    (text,) = ptx_texts(image.image)
    assert sorted(text.entry_names) == sorted(image.kernels)
    assert text.arch == image.arch == int(name.partition(".sm_")[2])


@pytest.mark.parametrize("name", NAMES)
def test_line_tables_are_those_of_single_functions(name: str) -> None:
    tables = line_tables(cubin(name))
    kernels = Cubin.read(cubin(name)).kernels
    assert len(tables) == len(kernels)
    files = {row.file.rpartition("/")[2] for table in tables for row in table.source}
    assert ("lines.cu" if name.startswith("lines") else "kernels.py") in files
    if name.startswith("lines"):
        own = [{row.line for row in table.source} & {8, 15} for table in tables]
        assert sorted(own, key=min) == [{8}, {15}]


@pytest.mark.parametrize("name", NAMES)
def test_source_places_are_those_of_the_kernel(name: str) -> None:
    cubin_file = Cubin.read(cubin(name))
    for kernel in cubin_file.kernels:
        size = cubin_file.section(f".text.{kernel}").size
        places = source_locations(cubin_file.image, kernel, size)
        assert len(places) == size // 16
        if name.startswith("lines"):
            assert {line for file, line in places.values() if file.endswith("lines.cu")} <= LINES[kernel]
        assert source_locations(prune_cubin(cubin_file, kernel, cut_table).image, kernel, size) == places

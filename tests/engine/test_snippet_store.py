"""SASS of snippets is assembled once, and kept for other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.test_instruction_grafts import KERNEL
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler, AssemblyReport
from tui_probe.engine.cache import Cache
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.grafting.snippet_ptx import ptx_version
from tui_probe.probe_files.loading import load_probe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tui_probe.toolchain import Tool


class Counting(Assembler):
    """An assembler that counts the kernels that it assembled."""

    def __init__(self, tool: Tool) -> None:
        super().__init__([tool])
        self.kernels: list[int] = []

    def assemble(
        self, ptx: Path, binary: Path, arch: str, entry: str, started: Callable[[], object] | None = None
    ) -> AssemblyReport:
        self.kernels.append(ptx.read_text().count(".entry"))
        return super().assemble(ptx, binary, arch, entry, started)


@pytest.fixture(scope="module")
def cubin(ptxas: Tool, tmp_path_factory: pytest.TempPathFactory) -> Cubin:
    folder = tmp_path_factory.mktemp("cubin")
    (folder / "k.ptx").write_text(f".version {ptx_version(90)}\n.target sm_90\n.address_size 64\n{KERNEL}")
    Assembler([ptxas]).assemble(folder / "k.ptx", folder / "k.bin", "sm_90", "mixed")
    return Cubin.read((folder / "k.bin").read_bytes())


def grafted(cubin: Cubin, assembler: Assembler, cache: Cache | None) -> bytes:
    probe = load_probe("gmem_sectors_by_line")
    return Grafter(probe, assembler, cache, samples_blocks=False).graft(cubin, "mixed").probed_image


def test_kept_snippets_make_the_same_kernel_without_ptxas(cubin: Cubin, ptxas: Tool, tmp_path: Path) -> None:
    first, second, alone = Counting(ptxas), Counting(ptxas), Counting(ptxas)
    images = {
        grafted(cubin, first, Cache(tmp_path)),
        grafted(cubin, second, Cache(tmp_path)),
        grafted(cubin, alone, None),
    }
    assert len(images) == 1
    (kernels,) = first.kernels
    assert kernels > 1
    assert (second.kernels, alone.kernels) == ([], [kernels])


def test_only_damaged_snippet_is_assembled_again(cubin: Cubin, ptxas: Tool, tmp_path: Path) -> None:
    image, again = grafted(cubin, Counting(ptxas), Cache(tmp_path)), Counting(ptxas)
    entry = next(tmp_path.glob("*.entry"))
    entry.write_bytes(entry.read_bytes()[:-1])
    assert grafted(cubin, again, Cache(tmp_path)) == image
    assert again.kernels == [1]

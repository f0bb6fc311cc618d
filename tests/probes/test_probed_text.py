"""Text that each probe inserts into a small kernel, compared with reviewed texts."""

from __future__ import annotations

import pytest

from tests.engine.kernels import entry, inserted, probed, without_insertions, words
from tests.golden import golden
from tests.probes.running import example, simulated
from tests.probes.specimens import ptx_probes, specimen_of
from tui_probe.engine.kernel import Kernel
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.parser import parse

BARRIER = entry(".reg .b32 %r<2>;\nbar.sync 0;\nret;")
TILE = entry(".shared .b32 tile[32];\n.reg .b32 %r<2>;\nst.shared.u32 [tile+4], %r1;\nret;")
STORE = entry(".reg .f32 %f<2>;\n.reg .b64 %rd<2>;\nadd.f32 %f1, %f1, %f1;\nst.global.f32 [%rd1], %f1;\nret;")
LOOP = entry(".reg .pred %p<2>;\n$again:\n@%p1 bra $again;\nret;")
SMALL = {
    "dmat": (example("strided_store"), "strided_store"),
    "dmat_compact": (example("strided_store"), "strided_store"),
    "nan_check": (STORE, "kernel"),
    "program_progress": (LOOP, "kernel"),
    "warp_progress": (LOOP, "kernel"),
    "gmem_bytes": (example("saxpy"), "saxpy"),
    "gmem_bytes_by_line": (example("saxpy"), "saxpy"),
    "gmem_sectors": (example("strided_store"), "strided_store"),
    "gmem_sectors_by_line": (example("strided_store"), "strided_store"),
    "smem_conflicts_by_line": (TILE, "kernel"),
    "divergence_by_line": (example("zero_fill"), "zero_fill"),
    "tensorop_count_by_line": (simulated("matrices"), "fragments_double"),
    "tensorop_count": (simulated("matrices"), "fragments_double"),
    "inst_mix": (example("zero_fill"), "zero_fill"),
    "inst_mix_by_line": (example("zero_fill"), "zero_fill"),
    "block_sched": (example("zero_fill"), "zero_fill"),
    "divergence": (example("zero_fill"), "zero_fill"),
    "barrier_wait_by_line": (BARRIER, "kernel"),
    "barrier_wait": (BARRIER, "kernel"),
    "smem_conflicts": (TILE, "kernel"),
    "stuck_warps": (LOOP, "kernel"),
}
"""Kernels with little more than what the probe looks at; a probe that is not named here goes into its specimen."""


def of_specimen(probe: str) -> tuple[str, str]:
    specimen = specimen_of(probe)
    return specimen.text, specimen.kernel.entry.name


@pytest.mark.parametrize("name", ptx_probes())
def test_inserted_lines(name: str) -> None:
    text, kernel = SMALL[name] if name in SMALL else of_specimen(name)
    result = probed(text, kernel, load_probe(name))
    assert words(without_insertions(result)) == words(Kernel.of(parse(text), kernel).pruned)
    golden(f"{name}.{kernel}.ptx", "".join(f"{line}\n" for line in inserted(result)))

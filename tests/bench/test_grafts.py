"""The part of the graft corpus that needs no library: kernels of CUDA C, Triton, PyTorch, JAX, numba and CuPy."""

from __future__ import annotations

import pytest

from tests.bench.grafts import Tally, of_corpus, refused_by_nvdisasm, tally
from tests.turns import due
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.probe_files.loading import load_probe
from tui_probe.toolchain import find_disassembler

CHOSEN = {
    "assembly.sm_80.ptx", "bounds.sm_80.ptx", "calls.sm_80.ptx", "control.sm_80.ptx", "cooperative.sm_80.ptx",
    "cupy_sin.sm_90.ptx", "jax_reduce.sm_90a.ptx", "numba_saxpy.sm_80.ptx", "nvrtc.sm_80.ptx", "tensor.sm_80.ptx",
    "torch_softmax.sm_90a.ptx", "triton_matmul.sm_80.ptx", "variables.sm_80.ptx", "warps.sm_80.ptx",
}  # fmt: skip
UNDERSTOOD = {"graft-variable", "graft-function"}
"""Texture references, and functions that end the kernel."""
AT_INSTRUCTIONS = {"graft-called", "graft-calls", "graft-registers"}
"""Functions whose instructions would not be counted, or that may use what counts live in; no register left for them."""


def tallied(probe: str, arch: int) -> Tally:
    assembler = Assembler()
    if not assembler.tools():
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    return tally(of_corpus(arch, CHOSEN), Grafter(load_probe(probe), assembler, samples_blocks=False))


@pytest.mark.parametrize("arch", due([80, 90, 100]))
def test_kernels_are_grafted_or_refused_for_a_known_reason(arch: int) -> None:
    tally = tallied("block_sched", arch)
    assert tally.grafted > 20
    assert tally.refused.keys() <= UNDERSTOOD, "\n".join(tally.lines())
    if find_disassembler() is not None:
        assert refused_by_nvdisasm(tally.images[:3]) == []


@pytest.mark.parametrize(
    ("arch", "probe"), due([(90, "gmem_sectors"), (86, "gmem_sectors_by_line"), (100, "tensorop_count")])
)
def test_counts_at_instructions_are_grafted_or_refused_for_a_known_reason(arch: int, probe: str) -> None:
    tally = tallied(probe, arch)
    assert tally.grafted > 20
    assert tally.sites > 10
    assert tally.refused.keys() <= UNDERSTOOD | AT_INSTRUCTIONS, "\n".join(tally.lines())
    if find_disassembler() is not None:
        assert refused_by_nvdisasm(tally.images[:5]) == []

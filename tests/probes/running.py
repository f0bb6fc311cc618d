"""Probed kernels on the simulated GPU, their results in a result file, and what the analysis makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tui_probe.simgpu.examples
from tests.engine.device_maps import DeviceMaps
from tests.simgpu.device import Device
from tui_probe.engine.insertion import probed_kernel, with_matched_maps
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.map_layout import parse_layout
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_model.storage import fold_sums
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import compile_kernel
from tui_probe.trace.kernel_files import parse_kernel_info
from tui_probe.trace.results import Result, read_result

if TYPE_CHECKING:
    from tui_probe.probe_model.probe import Probe

Extent = tuple[int, ...]
ESTIMATE = 64
"""Records per slot of dynamic maps, as in a kernel's first launch."""

SIMULATED_MAPS = (
    "d0:0:512.0.32/b0:0:672.0.9/e0:0:832.0.4/s0:0:260.4.36/d1:0:544.0.32/b1:0:704.0.9/e1:0:864.0.4/s1:0:324.4.36/"
    "d2:0:576.0.32/b2:0:736.0.9/e2:0:896.0.4/s2:0:388.4.36/d3:0:608.0.32/b3:0:768.0.9/e3:0:928.0.4/s3:0:452.4.36/"
    "d4:0:640.0.32/b4:0:800.0.9/e4:0:960.0.4/a0:0:4.4.53/t0:0:96.0.4/T:0122331223122-------------------"
)
"""Layout of tensor maps that the hook finds on the simulated GPU."""
EXAMPLES = Path(tui_probe.simgpu.examples.__path__[0]) / "kernels"
KERNELS = Path(__file__).parent.parent / "simgpu" / "kernels"


def example(name: str) -> str:
    """The PTX of a bundled kernel."""
    return (EXAMPLES / f"{name}.ptx").read_text()


def simulated(name: str) -> str:
    """The PTX of a kernel that the simulated GPU is tested with."""
    return (KERNELS / f"{name}.ptx").read_text()


def result_of(
    folder: Path,
    probe: Probe | str,
    text: str,
    *arguments: Any,
    grid: Extent = (1,),
    block: Extent = (32,),
    shared: int = 0,
    name: str = "",
    sample: range | None = None,
    detail: bool = True,
) -> Result:
    """Run a kernel and the probed one on copies of the arguments; the results must agree. What the probe saved."""
    tree = parse(text)
    name = name or tree.entries()[0].name
    own = load_probe(probe) if isinstance(probe, str) else probe
    own = own if detail else fold_sums(own)
    originals = [argument.copy() for argument in arguments]
    Device().launch(compile_kernel(tree, name), *originals, grid=grid, block=block, shared=shared)
    kernel = replace(Kernel.of(tree, name), map_layout=parse_layout(SIMULATED_MAPS) if SIMULATED_MAPS else None)
    own = with_matched_maps(kernel, own)
    probed, info = probed_kernel(kernel, own, samples_blocks=sample is not None)
    known = parse_kernel_info(info.splitlines())
    assert known.variables == ()
    sites = {map_.name: known.sites.get(index, ()) for index, map_ in enumerate(own.maps)}
    dynamic = {map_.name: ESTIMATE for map_ in own.maps if map_.cap is None}
    maps = DeviceMaps(own, grid, block, dynamic, sites, sample, detail=detail)
    copies = [argument.copy() for argument in arguments]
    function = compile_kernel(parse(probed), name)
    Device(1 << 26).launch(function, *copies, *maps.arguments, grid=grid, block=block, shared=shared)
    for original, copy in zip(originals, copies, strict=True):
        np.testing.assert_array_equal(copy, original)
    path = folder / "1.000000.bin"
    maps.save(path, shared)
    return read_result(path)

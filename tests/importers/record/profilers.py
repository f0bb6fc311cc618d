"""Records the Chrome traces that the tests read, on a machine with a GPU:  profilers.py DIRECTORY

torch.json.gz   PyTorch's profiler: a linear layer in a range, a kernel on another stream, and a CUDA graph
jax.json.gz     JAX's profiler, of a compiled function that is called three times
proton.json     Proton's trace (``data="trace"``) of kernels of PyTorch, in two nested scopes

Those in tests/data/chrome are of an H100, PyTorch 2.11, JAX 0.11.2 and Triton 3.6.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from shutil import copy


def torch_trace(out: Path) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    layer, values = torch.nn.Linear(256, 256).cuda(), torch.ones(256, 256, device="cuda")
    other, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    layer(values).sum()
    with torch.no_grad(), torch.cuda.graph(graph):
        layer(values).relu()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_modules=True) as found:
        for _ in range(2):
            with record_function("step"):
                layer(values).relu().sum()
            with torch.cuda.stream(other):
                values.cos()
            graph.replay()
        torch.cuda.synchronize()
    found.export_chrome_trace(str(out / "torch.json.gz"))


def jax_trace(out: Path) -> None:
    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
    values = jnp.ones((256, 256))
    step(values).block_until_ready()
    with jax.profiler.trace(str(out / "jax")):
        for number in range(3):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                step(values).block_until_ready()
    (written,) = (out / "jax").rglob("*.trace.json.gz")
    copy(written, out / "jax.json.gz")


def proton_trace(out: Path) -> None:
    import torch
    import triton.profiler as proton

    values = torch.ones(1 << 16, device="cuda")
    proton.start(str(out / "proton"), data="trace", backend="cupti")
    for _ in range(2):
        with proton.scope("step"):
            with proton.scope("inner"):
                values.cos()
            values.sum()
    torch.cuda.synchronize()
    proton.finalize()
    (out / "proton.chrome_trace").rename(out / "proton.json")


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for record in (torch_trace, jax_trace, proton_trace):
        try:
            record(out)
        except Exception:  # noqa: BLE001 - the others are recorded all the same
            traceback.print_exc()


if __name__ == "__main__":
    main()

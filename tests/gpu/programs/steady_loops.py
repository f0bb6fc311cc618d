"""Three loops of PyTorch, each warmed up and then measured: prints ``LOOP MEDIAN_STEP_MS``.

    python steady_loops.py SECONDS [kineto | proton]

Loops: training steps of a ResNet-18, eager decoding of one token by eight transformer layers, replays of a CUDA graph
of twelve linear layers. ``STEADY_BEFORE`` is a command that is run before the first measured step.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torchvision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

WARM_UP = 1.0
LEAST_STEPS = 20


def training() -> Callable[[], None]:
    model = torchvision.models.resnet18().cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(32, 3, 128, 128, device="cuda"), torch.arange(32, device="cuda") % 10

    def step() -> None:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimiser.step()

    return step


def decoding() -> Callable[[], None]:
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 2816, batch_first=True, norm_first=True)
    model = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False).half().cuda().eval()
    token = torch.randn(1, 1, 1024, device="cuda", dtype=torch.half)
    return torch.no_grad()(lambda: model(token))


def graph() -> Callable[[], None]:
    layers = [layer for _ in range(12) for layer in (torch.nn.Linear(256, 256), torch.nn.GELU())]
    model, values = torch.nn.Sequential(*layers).cuda(), torch.randn(128, 256, device="cuda")
    with torch.no_grad():
        model(values)
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            model(values)
    return captured.replay


def steps(step: Callable[[], None], seconds: float) -> list[float]:
    """Run steps for so long; the time of each, in ms, to the end of its kernels."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < LEAST_STEPS or time.perf_counter() < end:
        begun = time.perf_counter()
        step()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - begun) * 1e3)
    return taken


def kineto() -> AbstractContextManager[object]:
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    return torch.profiler.profile(activities=activities)


@contextlib.contextmanager
def proton() -> Iterator[None]:
    from triton import profiler

    with tempfile.TemporaryDirectory() as folder:
        session = profiler.start(str(Path(folder) / "loop"))
        yield
        profiler.finalize(session)


PROFILERS: dict[str, Callable[[], AbstractContextManager[object]]] = {"kineto": kineto, "proton": proton}


def main() -> None:
    torch.manual_seed(0)
    loops = {"training": training(), "decoding": decoding(), "graph": graph()}
    for step in loops.values():
        steps(step, WARM_UP)
    if command := os.environ.get("STEADY_BEFORE"):
        subprocess.run(shlex.split(command), check=True, stdout=subprocess.DEVNULL)
    for name, step in loops.items():
        with PROFILERS[sys.argv[2]]() if len(sys.argv) > 2 else contextlib.nullcontext():
            taken = steps(step, float(sys.argv[1]))
        print(name, statistics.median(taken))


if __name__ == "__main__":
    main()

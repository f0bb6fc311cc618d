"""One of three loops of PyTorch, measured in windows: see ``steady_windows``.

    python steady_loops.py training|decoding|graph WARM_UP_SECONDS [kineto | proton]

Loops: training steps of a ResNet-18, eager decoding of one token by eight transformer layers, replays of a CUDA graph
of twelve linear layers.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from steady_windows import Instructions, pin_processors, serve_windows

pin_processors()
INSTRUCTIONS = Instructions()

import torch  # noqa: E402  its threads keep the processors, and count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


def training() -> Callable[[], None]:
    import torchvision

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


LOOPS: dict[str, Callable[[], Callable[[], None]]] = {"training": training, "decoding": decoding, "graph": graph}
PROFILERS: dict[str, Callable[[], AbstractContextManager[object]]] = {"kineto": kineto, "proton": proton}


def main() -> None:
    torch.manual_seed(0)
    name, warm_up, *profilers = sys.argv[1:]
    profiler = PROFILERS[profilers[0]] if profilers else contextlib.nullcontext
    serve_windows(LOOPS[name](), torch.cuda.synchronize, INSTRUCTIONS, float(warm_up), profiler)


if __name__ == "__main__":
    main()

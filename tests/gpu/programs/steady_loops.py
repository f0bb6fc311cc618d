"""One of three loops of PyTorch, measured in windows: see ``steady_windows``.

    python steady_loops.py training|decoding|graph WARM_UP_SECONDS [kineto | proton]

Loops: training steps of a ResNet-50; a Llama of eight layers with random weights that decodes one token per step, eager
and under ``torch.compile(mode="reduce-overhead")``, which replays a CUDA graph.

``kineto`` is torch.profiler, started anew for each window. ``proton`` is that of Triton, started before the model is
made, since it attributes the kernels of a graph only if it sees the capture.
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

    Step = Callable[[], object]

DEVICE = "cuda"
LLAMA = {
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}
TOKENS = 512
"""Tokens in the cache of keys and values, until it begins anew."""
FIRST_STEPS = 4
"""Steps in which PyTorch compiles, warms up, captures and replays."""


def training() -> Step:
    import torchvision

    model = torchvision.models.resnet50().to(DEVICE)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(32, 3, 128, 128, device=DEVICE), torch.arange(32, device=DEVICE) % 10

    def step() -> None:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimiser.step()

    return step


def decoding() -> Step:
    return decoding_step(lambda model: model)


def graph() -> Step:
    from torch._dynamo.utils import counters

    step = decoding_step(lambda model: torch.compile(model, mode="reduce-overhead"))
    for _ in range(FIRST_STEPS):
        step()
    if counters["inductor"]["cudagraph_skips"]:
        sys.exit("torch.compile made no CUDA graph of the step")
    return step


def decoding_step(compile_model: Callable[[torch.nn.Module], Callable[..., object]]) -> Step:
    """Return a step that decodes one token with what ``compile_model`` makes of the model."""
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    config = LlamaConfig(**LLAMA)
    with torch.device(DEVICE):
        model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    cache = StaticCache(config=config, max_cache_len=TOKENS)
    token, decoded = torch.ones(1, 1, dtype=torch.long, device=DEVICE), 1
    with torch.no_grad():
        model(token, past_key_values=cache)  # not compiled: it allocates the cache
    compiled = compile_model(model)

    @torch.no_grad()
    def step() -> None:
        nonlocal decoded
        if decoded % TOKENS == 0:
            cache.reset()
        compiled(token, past_key_values=cache)
        decoded += 1

    return step


def kineto() -> AbstractContextManager[object]:
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    return torch.profiler.profile(activities=activities)


@contextlib.contextmanager
def proton() -> Iterator[None]:
    from triton import profiler

    with tempfile.TemporaryDirectory() as folder:
        session = profiler.start(str(Path(folder) / "loop"), backend="cupti")
        yield
        profiler.finalize(session)
        if not any('"time (ns)"' in path.read_text() for path in Path(folder).iterdir()):
            sys.exit("Proton recorded no kernel")


LOOPS: dict[str, Callable[[], Step]] = {"training": training, "decoding": decoding, "graph": graph}


def main() -> None:
    torch.manual_seed(0)
    name, warm_up, *profilers = sys.argv[1:]
    around = kineto if "kineto" in profilers else contextlib.nullcontext
    with proton() if "proton" in profilers else contextlib.nullcontext():
        serve_windows(LOOPS[name](), torch.cuda.synchronize, INSTRUCTIONS, float(warm_up), around)


if __name__ == "__main__":
    main()

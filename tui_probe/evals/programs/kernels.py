"""Kernels, each launched a few times: a layer through torch.compile, or an operation of Triton.

Usage: kernels.py NAME... Layers are batch_norm, layer_norm, softmax, sum, max_pool, avg_pool, embedding, gather; attn
is flash attention of 4 sequences of 4096 with 32 heads of 64, gmm a product of 512 by 512 matrices, block rows in
groups.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

LAUNCHES = 4


def random(*shape: int) -> Any:
    return torch.randn(*shape, device="cuda")


def batch_norm(x: Any) -> Any:
    return functional.batch_norm(x, None, None, training=True)


LAYERS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "batch_norm": (batch_norm, lambda: (random(32, 256, 56, 56),)),
    "layer_norm": (lambda x: functional.layer_norm(x, (4096,)), lambda: (random(4096, 4096),)),
    "softmax": (lambda x: torch.softmax(x, -1), lambda: (random(4096, 4096),)),
    "sum": (lambda x: x.sum(-1), lambda: (random(4096, 8192),)),
    "max_pool": (lambda x: functional.max_pool2d(x, 3, 2), lambda: (random(32, 64, 112, 112),)),
    "avg_pool": (lambda x: functional.avg_pool2d(x, 3, 2), lambda: (random(32, 64, 112, 112),)),
    "embedding": (
        functional.embedding,
        lambda: (torch.randint(0, 50000, (32, 512), device="cuda"), random(50000, 512)),
    ),
    "gather": (
        lambda x, index: torch.gather(x, 1, index),
        lambda: (random(4096, 4096), torch.randint(0, 4096, (4096, 1024), device="cuda")),
    ),
}


def layer(name: str) -> bool:
    """Return True if the compiled layer agrees with PyTorch's own."""
    function, inputs = LAYERS[name]
    compiled, tensors = torch.compile(function), inputs()
    for _ in range(LAUNCHES):
        result = compiled(*tensors)
    return bool(torch.allclose(result, function(*tensors), rtol=1e-3, atol=1e-3))


def operation(name: str) -> bool:
    """Launch a kernel of Triton, and return whether its result is right."""
    from kernels_triton import attention, product

    launch, is_right = attention(4, 32, 4096, 64) if name == "attn" else product(512, 512, 512, 8)
    for _ in range(LAUNCHES):
        launch()
    torch.cuda.synchronize()
    return bool(is_right())


def main() -> int:
    names = (*LAYERS, "attn", "gmm")
    choices = sys.argv[1:]
    if not choices or not set(choices) <= set(names):
        print(f"usage: kernels.py NAME...; names are {', '.join(names)}", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    wrong_names = [name for name in choices if not (layer(name) if name in LAYERS else operation(name))]
    print(*(f"{name}: {'WRONG' if name in wrong_names else 'right'}" for name in choices), sep="\n")
    return 1 if wrong_names else 0


if __name__ == "__main__":
    sys.exit(main())

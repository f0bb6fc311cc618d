"""Layers through torch.compile: layer norm, softmax, sum, pooling, embedding, gather. Prints checksums."""

import sys

import torch
from torch.nn import functional

torch.manual_seed(0)
LAYERS = {
    "layer_norm": (lambda x: functional.layer_norm(x, (4096,)), lambda: (torch.randn(4096, 4096, device="cuda"),)),
    "softmax": (lambda x: torch.softmax(x, -1), lambda: (torch.randn(4096, 4096, device="cuda"),)),
    "sum": (lambda x: x.sum(-1), lambda: (torch.randn(4096, 8192, device="cuda"),)),
    "pooling": (lambda x: functional.avg_pool2d(x, 3, 2), lambda: (torch.randn(32, 64, 112, 112, device="cuda"),)),
    "embedding": (
        lambda index, table: functional.embedding(index, table),
        lambda: (torch.randint(0, 50000, (32, 512), device="cuda"), torch.randn(50000, 512, device="cuda")),
    ),
    "gather": (
        lambda x, index: torch.gather(x, 1, index),
        lambda: (torch.randn(4096, 4096, device="cuda"), torch.randint(0, 4096, (4096, 1024), device="cuda")),
    ),
}


def main() -> None:
    for name in sys.argv[1:] or LAYERS:
        function, inputs = LAYERS[name]
        compiled = torch.compile(function)
        tensors = inputs()
        for _ in range(3):
            result = compiled(*tensors)
        print(name, f"{result.double().abs().sum().item():.6e}")


main()

"""Kernels of PyTorch, cuBLAS and cuDNN between cudaProfilerStart and cudaProfilerStop; prints their operations.

``counts``: elementwise operations, products of floats and a convolution. ``products``: products of halves, whose
operations are known.
"""

import sys

import torch

torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def counts() -> None:
    torch.relu(x) + x[: 1 << 19].repeat(2)
    torch.where(x > 0, x.view(1024, 1024).t().contiguous().flatten(), x)
    for size in (128, 512):
        a[:size, :size].contiguous() @ a[:size, :size].contiguous()
    torch.nn.functional.conv2d(image, filters, padding=1)


def products() -> int:
    size = 512
    for aligned in (True, False):
        padded = torch.ones(size, size + 8 if aligned else size + 1, device="cuda", dtype=torch.half)
        assert (padded[:, :size] @ padded[:, :size] == size).all()
    return 2 * 2 * size**3


generator = torch.Generator("cuda").manual_seed(1)
x = torch.randn(1 << 20, device="cuda", generator=generator)
a = torch.randn(512, 512, device="cuda", generator=generator)
image = torch.randn(4, 32, 56, 56, device="cuda", generator=generator)
filters = torch.randn(32, 32, 3, 3, device="cuda", generator=generator)
chosen = {"counts": counts, "products": products}[sys.argv[1]]
chosen()  # what libraries do once
torch.cuda.synchronize()
torch.cuda.profiler.start()
operations = chosen()
torch.cuda.synchronize()
torch.cuda.profiler.stop()
print(operations)

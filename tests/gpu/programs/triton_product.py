"""Matrix products in Triton of several sizes; prints the sizes."""

import torch
from tiles import matmul

for m, n, k in ((512, 512, 512), (256, 1024, 128), (2048, 2048, 2048)):
    a = torch.ones((m, k), device="cuda", dtype=torch.float16)
    b = torch.ones((k, n), device="cuda", dtype=torch.float16)
    c = torch.empty((m, n), device="cuda", dtype=torch.float32)
    matmul[(m // 64, n // 64)](a, b, c, n, k, BLOCK=64)
    torch.cuda.synchronize()
    assert (c == k).all()
    print(m, n, k)

"""More than 20 deterministic kernels of PyTorch and its libraries, each once, after memory is warm."""

import torch

torch.manual_seed(0)
torch.use_deterministic_algorithms(mode=True, warn_only=True)
a, b = (torch.randn(256, 256, device="cuda") for _ in range(2))
h = a.half()
image, weights = torch.randn(2, 8, 32, 32, device="cuda"), torch.randn(16, 8, 3, 3, device="cuda")
indices = torch.arange(0, 256, 3, device="cuda")
torch.cuda.synchronize()
operations = (
    lambda: a + b,
    lambda: a * 2.5,
    lambda: torch.relu(a),
    lambda: torch.exp(a),
    lambda: torch.softmax(a, 1),
    lambda: torch.nn.functional.layer_norm(a, (256,)),
    lambda: a.sum(1),
    lambda: a.max(1),
    lambda: a.argmax(0),
    lambda: torch.cumsum(a, 1),
    lambda: a.t().contiguous(),
    lambda: torch.cat([a, b]),
    lambda: a[indices],
    lambda: torch.where(a > 0, a, b),
    lambda: torch.gather(a, 0, indices.expand(256, -1)),
    lambda: torch.flip(a, (0,)),
    lambda: torch.topk(a, 4),
    lambda: torch.triu(a),
    lambda: torch.nn.functional.gelu(a),
    lambda: torch.nn.functional.max_pool2d(image, 2),
    lambda: a @ b,
    lambda: h @ h,
    lambda: torch.nn.functional.conv2d(image, weights),
    lambda: h.float(),
)
for operation in operations:
    operation()
torch.cuda.synchronize()

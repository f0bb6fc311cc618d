"""A product and a sum of tinygrad."""

import numpy as np
from tinygrad import Tensor

a, b = (np.random.default_rng(seed).standard_normal((64, 48)).astype(np.float32) for seed in (0, 1))
product = (Tensor(a, device="CUDA") @ Tensor(b, device="CUDA").T).relu().numpy()
np.testing.assert_allclose(product, np.maximum(a @ b.T, 0), rtol=1e-3, atol=1e-4)
print("ok")

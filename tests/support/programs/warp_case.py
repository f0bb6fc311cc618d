"""A kernel of Warp."""

import numpy as np
import warp as wp


@wp.kernel
def scale(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


wp.config.quiet = True
wp.init()
x = wp.array(np.arange(4096, dtype=np.float32), dtype=float, device="cuda:0")
y = wp.zeros_like(x)
wp.launch(scale, dim=4096, inputs=[x, y], device="cuda:0")
np.testing.assert_array_equal(y.numpy(), 2 * np.arange(4096, dtype=np.float32))
print("ok")

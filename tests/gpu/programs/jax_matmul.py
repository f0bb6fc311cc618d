"""JAX: a jitted matmul with an elementwise tail."""

import os

# The autotuner picks a kernel by its time, and kernels differ in the last digits.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"

import jax
import jax.numpy as jnp


@jax.jit
def step(a, b):
    return jnp.tanh(a @ b * 0.001).sum(axis=1)


a = jnp.arange(256 * 256, dtype=jnp.float32).reshape(256, 256) / 65536.0
result = step(a, a.T)
print("jax", f"{float(result.sum()):.4f}", result.shape)

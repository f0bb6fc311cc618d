"""A jitted gradient of JAX."""

import jax
import jax.numpy as jnp
import numpy as np

assert jax.default_backend() == "gpu"
x = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float32)
gradient = jax.jit(jax.grad(lambda a: jnp.sum(jnp.tanh(a) ** 2)))(x)
np.testing.assert_allclose(gradient, 2 * np.tanh(x) * (1 - np.tanh(x) ** 2), rtol=1e-3, atol=1e-5)
print("ok")

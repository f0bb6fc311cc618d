"""JAX: a small network trained with Adam, compiled by XLA."""

import jax
import jax.numpy as jnp
import optax

keys = jax.random.split(jax.random.key(0), 4)
weights = [jax.random.normal(key, (512, 512)) * 0.05 for key in keys]
inputs = jax.random.normal(keys[0], (4096, 512))
optimiser = optax.adam(1e-3)


def loss(weights, inputs):
    outputs = inputs
    for weight in weights:
        outputs = jax.nn.gelu(outputs @ weight)
    return jnp.mean((outputs - inputs) ** 2)


@jax.jit
def step(weights, state, inputs):
    value, gradients = jax.value_and_grad(loss)(weights, inputs)
    updates, state = optimiser.update(gradients, state)
    return optax.apply_updates(weights, updates), state, value


state = optimiser.init(weights)
for _ in range(1500):
    weights, state, value = step(weights, state, inputs)
print(f"{float(value):.2g}")

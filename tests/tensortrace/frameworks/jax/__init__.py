"""As much of JAX's interface as names of arrays need."""

from ._src import array  # noqa: F401

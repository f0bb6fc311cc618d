"""Values seen as several smaller ones, and put together from them. The first word is the lowest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.simgpu.executor.scalars import DType, Value


def split_words(value: Value, dtype: DType) -> list[Value]:
    """The parts of ``dtype`` that make up each element of ``value``."""
    parts = value.reshape((*value.shape, 1)).view(dtype)
    return [parts[..., index].copy() for index in range(parts.shape[-1])]


def join_words(parts: Sequence[Value], dtype: DType) -> Value:
    """Elements of ``dtype`` made up of ``parts``, which fill it. Scalars are repeated for all lanes."""
    joined: Value = np.stack(np.broadcast_arrays(*parts), axis=-1).view(dtype)[..., 0]
    return joined


def pairs(value: Value, dtype: DType) -> Value:
    """Two 16-bit elements of ``dtype`` for each 32-bit element, in a last axis of 2."""
    result: Value = value.reshape((*value.shape, 1)).view(dtype)
    return result


def unpaired(value: Value, dtype: DType) -> Value:
    """32-bit elements from a last axis of two 16-bit ones."""
    result: Value = np.ascontiguousarray(value).view(dtype)[..., 0]
    return result

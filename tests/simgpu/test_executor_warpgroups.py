"""Products of four warps read shared memory as their descriptors say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simgpu.device import Device, compiled
from tests.simgpu.warpgroup_products import PRODUCTS, Operand, Product
from tui_probe.errors import SimulationError


def launched(product: Product, image: np.ndarray, fragments: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    data = np.zeros((128, 8), np.uint32)
    a = np.uint64(product.a.descriptor if product.a else 0)
    Device().launch(compiled(product.source), data, image, fragments, a, np.uint64(product.b.descriptor), block=(128,))
    return product.result(data)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    product = PRODUCTS[name]
    generator = np.random.default_rng(1)
    image, fragments = product.image(generator), product.image(generator, 128 * 16)
    assert (launched(product, image, fragments) == product.exact(image, fragments)).all()


def test_a_base_offset_is_refused() -> None:
    product = PRODUCTS["inner-1"]
    image = product.image(np.random.default_rng(1))

    class Shifted(Operand):
        @property
        def descriptor(self) -> int:
            return super().descriptor | 1 << 49

    shifted = Product(Shifted(16384, 0, 1024, 1), product.a)
    with pytest.raises(SimulationError, match="base offset"):
        launched(shifted, image, image[:2048])

"""The simulated GPU computes what a GPU of sm_90 does: products of four warps, conversions, arithmetic, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.simulated import Gpu
from tests.simgpu.device import evaluate, evaluation
from tests.simgpu.instruction_forms import COUNT, FORMS, Form, dtype_of
from tests.simgpu.warpgroup_products import PRODUCTS

HEADER = ".version 8.1\n.target sm_90\n.address_size 64\n"


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    return Gpu()


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(gpu: Gpu, name: str) -> None:
    product = PRODUCTS[name]
    generator = np.random.default_rng(1)
    image, fragments = product.image(generator), product.image(generator, 128 * 16)
    output = np.zeros((128, 8), np.uint32)
    module = gpu.load(product.source)
    descriptors = [operand.descriptor if operand else 0 for operand in (product.a, product.b)]
    gpu.launch(module, "multiplies", [output, image, fragments, *descriptors])
    gpu.unload(module)
    assert (product.result(output) == product.exact(image, fragments)).all()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_forms(gpu: Gpu, form: Form) -> None:
    inputs = form.inputs(np.random.default_rng(1))
    kinds = tuple((name, array.dtype.str) for name, array in zip("abc", inputs, strict=False))
    module = gpu.load(HEADER + evaluation(form.text, kinds, dtype_of(form.written).str))
    computed = np.zeros(COUNT, dtype_of(form.written))
    gpu.launch(module, "evaluate", [computed, *inputs, COUNT], grid=COUNT // 64, block=64)
    gpu.unload(module)
    simulated = evaluate(form.text, inputs, dtype_of(form.written))
    wrong = np.flatnonzero(~form.same(computed, simulated))
    differences = [
        (*(f"{array[place]:#x}" for array in inputs), f"{computed[place]:#x}", f"{simulated[place]:#x}")
        for place in wrong
    ]
    assert not differences, f"operands, the GPU's result, the simulated one: {differences[:4]}"

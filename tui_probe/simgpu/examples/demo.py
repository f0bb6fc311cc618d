"""A small CUDA program: runs kernels through the driver API and checks each result against NumPy.

It runs on a GPU as on the simulated one: the driver compiles the PTX next to it.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tui_probe.cuda_driver import CudaDevice, DriverError

if TYPE_CHECKING:
    from collections.abc import Callable

KERNELS = Path(__file__).resolve().parent / "kernels"
PAUSE_SECONDS = 0.25

Array = NDArray[Any]
Dimensions = tuple[int, int, int]


class Gpu(CudaDevice):
    """The first CUDA device, with kernels of PTX files and copies of arrays."""

    def function(self, ptx: Path, name: str) -> ctypes.c_void_p:
        """The kernel ``name`` of a PTX file."""
        return self.module_function(self.load_module(text_with_paths(ptx).encode()), name)

    def upload(self, array: Array) -> ctypes.c_uint64:
        """A copy of ``array`` in device memory."""
        address = self.allocate(array.nbytes)
        self.write_memory(address, array.ctypes.data, array.nbytes)
        return address

    def download(self, address: ctypes.c_uint64, array: Array) -> None:
        """Fill ``array`` from device memory."""
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), address, ctypes.c_size_t(array.nbytes))

    def launch(self, function: ctypes.c_void_p, case: Case, arguments: list[Any]) -> None:
        """Launch and wait."""
        self.launch_kernel(function, case.grid, case.block, case.shared_bytes, *arguments)
        self.synchronize()


def text_with_paths(ptx: Path) -> str:
    """The text of a PTX file; the source file next to it, which it names, is named with its folder."""
    file_directive = re.compile(r'^(\s*\.file\s+\d+\s+)"([^"/]+)"', re.MULTILINE)
    return file_directive.sub(lambda match: f'{match[1]}"{ptx.parent}/{match[2]}"', ptx.read_text())


@dataclass(frozen=True)
class Case:
    """A launch and what must come out. Arguments: ``output``'s address, the addresses of ``inputs``, ``scalars``.

    ``tolerance`` is relative; 0 where the arithmetic is exact.
    """

    output: Array
    inputs: list[Array]
    scalars: list[Any]
    expected: Array
    grid: Dimensions
    block: Dimensions = (256, 1, 1)
    shared_bytes: int = 0
    tolerance: float = 0


def block_count(count: int, block: int) -> int:
    """Blocks of ``block`` threads for ``count`` of them."""
    return -(-count // block)


def whole_numbers(*shape: int) -> Array:
    """float32 of small whole numbers: sums and products of them are exact, in any order."""
    return np.random.default_rng(1).integers(-4, 5, shape).astype(np.float32)


def zero_fill(size: int) -> Case:
    output = np.arange(1, size + 1, dtype=np.uint32)
    return Case(output, [], [ctypes.c_uint(size)], np.zeros_like(output), (block_count(size, 128), 1, 1), (128, 1, 1))


def coalesced_store(size: int) -> Case:
    expected = np.arange(size, dtype=np.uint32)
    return Case(np.zeros_like(expected), [], [ctypes.c_uint(size)], expected, (block_count(size, 256), 1, 1))


def strided_store(size: int) -> Case:
    expected = np.zeros(2 * size, np.uint32)
    expected[::2] = np.arange(size)
    return Case(np.zeros_like(expected), [], [ctypes.c_uint(size)], expected, (block_count(size, 256), 1, 1))


def saxpy(size: int) -> Case:
    x, y = whole_numbers(2, size)
    scalars = [ctypes.c_float(2), ctypes.c_int(size)]
    return Case(y, [x], scalars, 2 * x + y, (block_count(size, 256), 1, 1))


def matmul(size: int) -> Case:
    """Matrices of about ``size`` elements."""
    side = max(1, math.isqrt(size))
    a, b = whole_numbers(2, side, side)
    grid = (block_count(side, 16), block_count(side, 16), 1)
    return Case(np.zeros_like(a), [a, b], [ctypes.c_int(side)], a @ b, grid, (16, 16, 1))


def reduction(size: int) -> Case:
    values = whole_numbers(size)
    total = np.zeros(1, np.float32)
    expected = values.sum(dtype=np.float64, keepdims=True).astype(np.float32)
    return Case(total, [values], [ctypes.c_int(size)], expected, (min(block_count(size, 256), 64), 1, 1))


def softmax(size: int) -> Case:
    """Rows whose length is not a multiple of the number of threads."""
    columns, threads = 257, 128
    rows = block_count(size, columns)
    values = np.random.default_rng(2).normal(0, 2, (rows, columns)).astype(np.float32)
    powers = np.exp(values.astype(np.float64) - values.max(axis=1, keepdims=True))
    expected = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return Case(
        np.zeros_like(values),
        [values],
        [ctypes.c_int(columns)],
        expected,
        (rows, 1, 1),
        (threads, 1, 1),
        shared_bytes=4 * threads,
        tolerance=1e-5,
    )


EXAMPLES: dict[str, Callable[[int], Case]] = {
    example.__name__: example
    for example in (zero_fill, coalesced_store, strided_store, saxpy, matmul, reduction, softmax)
}


def run_case(gpu: Gpu, function: ctypes.c_void_p, case: Case) -> bool:
    """Launch once and tell whether the result is right."""
    addresses = [gpu.upload(array) for array in (case.output, *case.inputs)]
    gpu.launch(function, case, [*addresses, *case.scalars])
    result = np.empty_like(case.output)
    gpu.download(addresses[0], result)
    for address in addresses:
        gpu.free(address)
    if case.tolerance:
        return bool(np.allclose(result, case.expected, rtol=case.tolerance, atol=0))
    return bool(np.array_equal(result, case.expected))


def load_example(gpu: Gpu, name: str) -> ctypes.c_void_p:
    """Load the kernel of an example."""
    return gpu.function(KERNELS / f"{name}.ptx", name)


def run_example(gpu: Gpu, name: str, options: argparse.Namespace, function: ctypes.c_void_p | None = None) -> bool:
    """Launch an example as often as asked for, and say how it went. Without its kernel, this is loaded first."""
    function = function or load_example(gpu, name)
    case = EXAMPLES[name](options.size)
    is_right = True
    for _ in range(options.repeat):
        is_right = run_case(gpu, function, case) and is_right
        if options.slow:
            time.sleep(PAUSE_SECONDS)
    sys.stdout.write(f"{name} {'ok' if is_right else 'WRONG'}\n")
    sys.stdout.flush()
    return is_right


def positive_integer(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def main() -> int:
    parser = argparse.ArgumentParser(description="Run CUDA kernels and check their results against NumPy.")
    parser.add_argument("--kernel", action="append", choices=EXAMPLES, help="repeatable; default: all")
    parser.add_argument(
        "--size", type=positive_integer, default=1 << 14, help="elements of the arrays (default %(default)s)"
    )
    parser.add_argument("--repeat", type=positive_integer, default=1, metavar="N", help="launches of each kernel")
    parser.add_argument("--slow", action="store_true", help=f"pause {PAUSE_SECONDS} s after each launch")
    options = parser.parse_args()
    try:
        gpu = Gpu()
        # All are loaded before the first launch, so that the next ones can be prepared while one runs.
        functions = {name: load_example(gpu, name) for name in options.kernel or EXAMPLES}
        results = [run_example(gpu, name, options, function) for name, function in functions.items()]
    except DriverError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

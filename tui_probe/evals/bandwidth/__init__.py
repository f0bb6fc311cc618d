"""Evaluation of measured memory bandwidth and of times of dense matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.charts import Bar, BarChart
from tui_probe.draw.table import Column
from tui_probe.errors import ImportFileError, TraceError
from tui_probe.evals.answer import Answer, Table, compare_published
from tui_probe.evals.evaluation import (
    PROGRAMS_PLACEHOLDER,
    PYTHON_PLACEHOLDER,
    Collection,
    Evaluation,
    nothing_measured_error,
)
from tui_probe.input_limits import PROGRAM_OUTPUT, parse_json
from tui_probe.trace.plain_file import read_start
from tui_probe.verdicts.bandwidth import parse_bandwidth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.bandwidth.rates import Bandwidth, Rate
    from tui_probe.draw.view import Progress
    from tui_probe.evals.evaluation import Setting
    from tui_probe.evals.inputs import EvaluationInput

PRODUCT: Final = '{"product": '
"""Start of a line that has a product."""
_UNPROBED_OPTIONS: Final = ("-k", "no kernel of this name", "--launches", "0", "--no-times", "--no-source",
                   "--max-trace-bytes", "1M", "--max-log-bytes", "1M")  # fmt: skip
NAME: Final = "bandwidth"
_PUBLISHED_PRODUCTS: Final = {"product_100k": (700, 100_000), "product_400k": (700, 400_000)}


@dataclass(frozen=True, slots=True)
class Product:
    """``(m, k) @ (k, n)``; ``milliseconds`` of each launch."""

    shape: tuple[int, int, int]
    dtype: str
    device: str
    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.milliseconds)

    @property
    def spread(self) -> float:
        """(most - least) / median."""
        return (max(self.milliseconds) - min(self.milliseconds)) / self.median

    @property
    def operations_per_second(self) -> float:
        """Multiplications and additions."""
        m, k, n = self.shape
        return 2e3 * m * k * n / self.median

    @property
    def text(self) -> str:
        """The shapes, as ``[m, k] @ [k, n]``."""
        m, k, n = self.shape
        return f"[{m}, {k}] @ [{k}, {n}]"


def read_products(text: str, path: Path) -> Iterator[Product]:
    """Return the products in the output of a program. Raises TraceError for a broken line."""
    for line in text.splitlines():
        if not line.startswith(PRODUCT):
            continue
        try:
            data = parse_json(line)
            m, k, n = map(int, data["product"])
            times = tuple(float(time) for time in data["milliseconds"])
            if not times or min(times) <= 0:
                raise ValueError("the line has no times")
            yield Product((m, k, n), str(data["dtype"]), str(data["device"]), times)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise TraceError(
                f"{path}: cannot read a line with times of matrix products ({error}); collect the file again"
            ) from error


def collect(_: Setting) -> list[Collection]:
    """Return the two measurements, whose JSON is stored. The simulated GPU has no bandwidth."""
    measure = (PYTHON_PLACEHOLDER, "-m", "tui_probe", "bandwidth", "--auto", "--format", "json")
    return [
        Collection("memories", measure, _UNPROBED_OPTIONS, ("tui_probe",), gpu=True, output_kind="output"),
        Collection(
            "products",
            (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/products.py"),
            _UNPROBED_OPTIONS,
            ("torch",),
            gpu=True,
            output_kind="output",
        ),
    ]


def answer(inputs: Sequence[EvaluationInput], progress: Progress) -> Answer:
    """Answer from files of ``tui-probe bandwidth`` and of the products. Raises TraceError if none has a measurement."""
    progress(0.0)
    bandwidths: list[Bandwidth] = []
    products: list[Product] = []
    notes = []
    for file in inputs:
        path = file.path if file.trace is None else file.trace.file("stdout.log") or file.path
        text = _read_output(path)
        products += read_products(text, path)
        bandwidth = _saved_bandwidth(text, path)
        if isinstance(bandwidth, str):
            notes += [] if PRODUCT in text else [bandwidth]
        else:
            bandwidths.append(bandwidth)
    rates = [rate for entry in bandwidths for rate in entry.rates]
    if not rates and not products:
        raise nothing_measured_error(NAME, notes)
    return Answer(
        said=[
            *(_memory_sentence(entry) for entry in bandwidths),
            *(_product_sentence(entry) for entry in products),
        ],
        tables={
            "bandwidth": Table("bandwidths", _RATES, rates),
            **({"products": Table("dense matrix products", _PRODUCTS, products)} if products else {}),
        },
        drawings={"bandwidth": _chart(rates)} if rates else {},
        compared=compare_published(NAME, **_ours(rates, products)),
        notes=notes,
        hardware=", ".join(dict.fromkeys(_gpu_names(bandwidths, products))),
    )


def _gpu_names(bandwidths: Sequence[Bandwidth], products: Sequence[Product]) -> Iterator[str]:
    """Yield the names of the GPUs that were measured."""
    yield from (entry.card.name for entry in bandwidths if entry.card is not None)
    yield from (entry.device for entry in products)


def _read_output(path: Path) -> str:
    if not path.is_file():
        return ""
    return read_start(path, PROGRAM_OUTPUT).decode("utf-8", "replace")


def _saved_bandwidth(text: str, path: Path) -> Bandwidth | str:
    """The document in what was written, between messages; or why there is none."""
    lines = text.splitlines()
    begins = (place for place, line in enumerate(lines) if line.startswith("{") and not line.startswith(PRODUCT))
    begin = next(begins, None)
    if begin is None:
        return f"{path}: no result of tui-probe bandwidth --format json in this file"
    end = max(place for place, line in enumerate(lines) if line.endswith("}"))
    try:
        return parse_bandwidth("\n".join(lines[begin : end + 1]).encode(), path)
    except ImportFileError as error:
        return str(error)


def _ours(rates: Sequence[Rate], products: Sequence[Product]) -> dict[str, float | None]:
    best: dict[str, float | None] = {}
    for rate in rates:
        best[rate.key] = max(best.get(rate.key) or 0.0, rate.bytes_per_second)
    gigabytes = {key: value / 1e9 for key, value in best.items() if value is not None}
    times = {product.shape[1:]: product.median for product in products}
    return {
        "to_shared": gigabytes.get("to_shared"),
        "to_shared_a100": gigabytes.get("to_shared"),
        "disk_write": gigabytes.get("disk_write"),
        "disk_read": gigabytes.get("disk_read"),
        **{key: times.get(shape) for key, shape in _PUBLISHED_PRODUCTS.items()},
    }


def _memory_sentence(bandwidth: Bandwidth) -> str:
    """The GPU, and the memory's best rate next to what it could carry."""
    gpu = "no GPU" if bandwidth.card is None else bandwidth.card.name
    read_rate = bandwidth.rate("memory_read")
    if read_rate is None:
        return f"{gpu}: device memory was not measured"
    part = f", {read_rate.bytes_per_second / read_rate.limit:.0%} of its limit" if read_rate.limit else ""
    return f"{gpu}: device memory reads {units.rate(read_rate.bytes_per_second)}{part}"


def _product_sentence(product: Product) -> str:
    return (
        f"{product.text} {product.dtype} on {product.device}: {product.median:.2f} ms,"
        f" {product.operations_per_second / 1e12:.0f} TFLOP/s"
    )


def _chart(rates: Sequence[Rate]) -> BarChart:
    bars = [Bar(rate.what, (rate.bytes_per_second,)) for rate in rates]
    return BarChart("bandwidths", bars, ("measured",), "bytes per second", units.rate)


def _share_of_limit(rate: Rate) -> float | None:
    return rate.bytes_per_second / rate.limit if rate.limit else None


_RATES: Final[tuple[Column[Rate], ...]] = (
    Column("key", lambda r: r.key),
    Column("what", lambda r: r.what, "memory", lambda r: r.what, right=False, narrow=20),
    Column("bytes_per_second", lambda r: r.bytes_per_second, "measured", lambda r: units.rate(r.bytes_per_second)),
    Column("limit", lambda r: r.limit, "limit", lambda r: units.rate(r.limit), rank=1),
    Column("part", _share_of_limit, "of limit", lambda r: units.percentage(_share_of_limit(r)), rank=1),
    Column("spread", lambda r: r.spread, "spread", lambda r: units.percentage(r.spread), rank=2),
    Column("repeats", lambda r: r.repeats, "repeats", lambda r: units.count(r.repeats), rank=3),
    Column("blocks", lambda r: r.blocks, "blocks", lambda r: units.count(r.blocks), rank=3),
)
_PRODUCTS: Final[tuple[Column[Product], ...]] = (
    Column("product", lambda r: r.text, "product", lambda r: r.text, right=False),
    Column("dtype", lambda r: r.dtype, "type", lambda r: r.dtype, right=False),
    Column("device", lambda r: r.device, "on", lambda r: r.device, right=False, rank=1),
    Column("milliseconds", lambda r: r.median, "ms", lambda r: f"{r.median:.3f}"),
    Column("spread", lambda r: r.spread, "spread", lambda r: units.percentage(r.spread), rank=2),
    Column(
        "operations_per_second", lambda r: r.operations_per_second, "TFLOP/s",
        lambda r: f"{r.operations_per_second / 1e12:.0f}",
    ),
)  # fmt: skip


EVALUATION: Final = Evaluation(
    name="bandwidth",
    question="what bandwidth do this machine's memories and disk reach, and how long do matrix products take?",
    probes=(),
    reading=(
        "Bandwidths are measured as by tui-probe bandwidth --auto: each value is the best of several launches. For"
        " shared memory, each value is the best of several numbers of blocks and bytes in flight. The limit is"
        " the bandwidth that the clock and the width of the memory bus allow.",
        "Published values are from other GPUs and other machines, which explains most differences. A published value"
        " far below the hardware's limit comes from a test with too few bytes in flight.",
        "Matrix products are computed by PyTorch (cuBLAS) and timed with events on the GPU after a warm-up. Rows of 700"
        " numbers of 2 bytes have 1 400 bytes, which is not a multiple of 16; the fastest kernels need inputs that"
        " are aligned to 16 bytes.",
    ),
    open=answer,
    collect=collect,
)

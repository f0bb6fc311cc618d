"""Tensor maps that a program makes are logged, and the engine gets the layout that the driver gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hook.test_ahead import images as images
from tests.hook.test_launches import engine_of
from tests.tensor_map_calls import TENSOR_MAPS
from tui_probe.engine.map_layout import BitRun, MapField, split_target
from tui_probe.trace.event_types import TensorMapMade
from tui_probe.trace.events import parse_line

if TYPE_CHECKING:
    from tests.hook.conftest import Host
    from tests.hook.test_ahead import Images

LAUNCH = "launch(function(module(), 'add__8'), word())\n"
MAPS = {"STUB_TENSOR_MAPS": "1"}


def maps_of(lines: list[str]) -> list[TensorMapMade]:
    events = [parse_line(line.encode()) for line in lines]
    return [event for event in events if isinstance(event, TensorMapMade)]


def test_hook_finds_the_layout_that_the_driver_gives_maps(host: Host) -> None:
    host.python("context()\n" + LAUNCH, **MAPS)
    (target,) = engine_of(host).architectures
    architecture, layout = split_target(target)
    assert architecture == "sm_90"
    assert layout is not None
    fields = layout.fields
    assert fields["d1"] == MapField(1, (BitRun(8 * 36, 0, 32),))
    assert [fields[name] for name in ("b0", "b4", "e2")] == [
        MapField(1, (BitRun(bit, 0, width),)) for bit, width in ((8 * 52, 8), (8 * 56, 8), (8 * 60 + 6, 3))
    ]
    assert fields["s1"].runs == (BitRun(8 * 20, 4, 32), BitRun(8 * 62 + 4, 36, 4))
    assert fields["a0"].runs == (BitRun(4, 4, 28), BitRun(32, 32, 25))
    assert [layout.element_sizes[number] for number in range(8)] == [0, 1, 2, 2, 3, 3, 1, 2]


def test_without_tensor_maps_the_engine_gets_the_architecture(host: Host) -> None:
    run = host.python("context()\n" + LAUNCH)
    assert engine_of(host).architectures == ["sm_90"]
    assert run.lines(r"\[tensor-map\]") == []


def test_layout_is_found_once_there_is_a_context(host: Host, images: Images) -> None:
    """A library that is loaded first is prepared ahead of launches, where the driver encodes no map yet."""
    run = host.python(
        "call('cuInit', 0)\nowner = library()\ncontext()\nlaunch(kernel(owner, 'add__8'), word())\n", **MAPS
    )
    assert [architecture for _, architecture in images.sent()] == ["sm_90"]
    (target,) = engine_of(host).architectures
    assert split_target(target)[1] is not None
    assert len(run.lines(r"\[tensor-map\] layout d0:1:")) == 1


def test_each_map_has_a_line(host: Host) -> None:
    run = host.python("context()\n" + TENSOR_MAPS + LAUNCH, **MAPS)
    tiled, replaced, pixels, wide = maps_of(run.log)
    assert (tiled.address, tiled.sizes, tiled.strides, tiled.box) == (0x7F0000000000, (44, 20), (192,), (16, 8))
    assert (replaced.address, replaced.origin) == (0x7F0000001000, tiled.content)
    assert (pixels.call, pixels.sizes, pixels.box) == ("cuTensorMapEncodeIm2col", (44, 20, 6), None)
    assert run.lines(r".*cuTensorMapEncodeIm2col .* channels 8 pixels 4 lower -1 upper -1 steps 1,1,1 ")
    assert run.lines(r".*cuTensorMapEncodeIm2colWide .* channels 16 pixels 4 lower -1 upper 1 mode 0 steps")
    assert len({own.content for own in (tiled, replaced, pixels, wide)} - {None}) == 4


H200_LAYOUT = (
    "d0:1:256.0.32/b0:1:440.0.8/s0:0:96.4.32,224.36.4/d1:1:288.0.32/b1:1:448.0.8/e1:1:419.0.3/s1:0:128.4.32,228.36.4/"
    "d2:1:320.0.32/b2:1:456.0.8/e2:1:422.0.3/s2:0:160.4.32,232.36.4/d3:1:352.0.32/b3:1:464.0.8/e3:1:425.0.3/"
    "s3:0:192.4.32,236.36.4/d4:1:384.0.32/b4:1:472.0.8/e4:1:428.0.3/a0:0:4.4.53/t0:0:71.0.4,80.4.1/T:01"
)
"""As found on an H200 with driver 580.159, but for the types."""


def test_layout_of_a_gpu_reads_its_map() -> None:
    """The map of 1500 × 1000 numbers with rows of 6016 bytes, and boxes of 64 × 32, was encoded there."""
    parameters = "0000801c147f00009003040078010000" + 32 * "0" + "db050000e7030000" + 30 * "0" + "3f1f"
    map_bits = int.from_bytes(bytes.fromhex(parameters.ljust(256, "0")), "little")
    _, layout = split_target(f"sm_90+{H200_LAYOUT}")
    assert layout is not None
    read = {
        name: field.bias + sum((map_bits >> run.bit & (1 << run.width) - 1) << run.shift for run in field.runs)
        for name, field in layout.fields.items()
    }
    assert [read[name] for name in ("d0", "d1", "b0", "b1", "s0", "e1", "a0", "t0")] == [
        1500, 1000, 64, 32, 6016, 1, 0x7F141C800000, 7,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["cuTensorMapEncodeTiled", "cuTensorMapReplaceAddress"])
def test_failed_calls_fail_as_without_the_hook(host: Host, name: str) -> None:
    arguments = "at, c_uint64(0)" if "Replace" in name else "at, 0, 9, c_uint64(16), None, None, None, None, 0, 0, 0, 0"
    script = f"at = (c_uint64 * 24)()\nprint(cuda.{name}({arguments}))\n"
    run = host.python("context()\n" + script + LAUNCH)
    assert (run.status, run.stdout.split()[0]) == (0, "801")
    (failed,) = maps_of(run.log)
    assert (failed.call, failed.status, failed.content) == (name, 801, None)

"""``run --tensors``: the arrays of a program that knows nothing of it are named where the DMAT shows them."""

from __future__ import annotations

import json
import sys

import pytest

from tests.tensortrace.programs import FRAMEWORKS

from .conftest import Tool

PROGRAM = f"""
import ctypes, sys
sys.path.insert(0, {str(FRAMEWORKS)!r})
import torch
from tui_probe.simgpu.examples import demo

def saxpy(gpu, case, output, x):
    kernel = gpu.function(demo.KERNELS / "saxpy.ptx", "saxpy")
    addresses = ctypes.c_uint64(output.data_ptr()), ctypes.c_uint64(x.data_ptr())
    gpu.launch(kernel, case, [*addresses, *case.scalars])

gpu, case = demo.Gpu(), demo.saxpy(4096)
tensors = [torch.Tensor(gpu.upload(array).value, (64, 128)) for array in (case.output, *case.inputs)]
saxpy(gpu, case, *tensors)
print("PYTHONPATH" in __import__("os").environ, sys.getprofile() is None)
"""


@pytest.fixture
def program(tool: Tool) -> list[str]:
    (tool.folder / "program.py").write_text(PROGRAM)
    return [sys.executable, "program.py"]


def test_names_in_the_picture_and_in_json(tool: Tool, program: list[str]) -> None:
    done, trace = tool.run(program, "-p", "dmat", "--tensors")
    assert (done.returncode, done.stdout.split()[0]) == (0, "True"), done.stderr
    assert "[call]" in (trace / "tensor.trace").read_text()
    shown = json.loads(tool("show", "dmat", str(trace), "--format", "json").stdout)
    text = tool("show", "dmat", str(trace), "--width", "120", "--height", "30").stdout
    view = shown["data"]
    bands = view["bands"]
    assert [(band["name"], band["shape"], band["function"]) for band in bands] == [
        ("output", [64, 128], "saxpy"), ("x", [64, 128], "saxpy"),
    ]  # fmt: skip
    assert view["cursor"]["index"] is not None
    assert "] of (64, 128) float16 · " in text
    assert json.loads((trace / "run.json").read_text())["options"]["tensors"] is True


def test_without_it_there_is_no_file(tool: Tool, program: list[str]) -> None:
    done, trace = tool.run(program, "-p", "dmat")
    assert done.stdout.split() == ["True", "True"]
    assert trace.is_dir()
    assert not (trace / "tensor.trace").exists()

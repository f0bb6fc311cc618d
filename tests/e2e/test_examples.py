"""The example in C that other tests run: it does as the one in Python, and recognizes wrong results."""

from __future__ import annotations

import re
import shutil

import pytest

from tui_probe.simgpu.examples import demo

from .conftest import EXAMPLE, PYTHON_EXAMPLE, Tool

pytestmark = pytest.mark.skipif(EXAMPLE == PYTHON_EXAMPLE, reason="no C compiler")


def test_examples_launch_what_the_python_example_launches(tool: Tool) -> None:
    calls = []
    for command in (EXAMPLE, PYTHON_EXAMPLE):
        done, trace = tool.run([*command, "--size", "5000"])
        assert (done.returncode, done.stdout) == (0, "".join(f"{name} ok\n" for name in demo.EXAMPLES)), done.stderr
        log = re.sub(r"dptr \w+", "", (trace / "event.log").read_text())
        memory, shapes = (re.findall(rf"^\[{tag}\] .*", log, re.MULTILINE) for tag in ("mem", "key"))
        calls.append([memory, sorted(shapes)])  # a shape is logged with its first time, as soon as that is read
    assert calls[0] == calls[1] != [[], []]


def test_examples_recognize_wrong_results(tool: Tool) -> None:
    folder = shutil.copytree(demo.KERNELS, tool.folder / "kernels")
    for path in folder.glob("*.ptx"):
        path.write_text(re.sub(r"\b(st|red|atom)(?=\.global)", r"// \1", path.read_text()))
    done = tool.unprofiled(EXAMPLE[0], str(folder))
    assert (done.returncode, done.stdout) == (1, "".join(f"{name} WRONG\n" for name in demo.EXAMPLES)), done.stderr

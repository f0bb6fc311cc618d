"""Names, shapes and addresses of a program's tensors, written into its trace while it runs.

    from tui_probe.tensortrace import TensorTrace

    with TensorTrace():
        out = attention(q, k, v)

    @TensorTrace()
    def step(x): ...

Under ``tui-probe run`` the trace then has a ``tensor.trace``, from which pages of accesses name their bands; without
it nothing happens. ``run --tensors`` does the same for a whole program, and leaves its source as it is. Nothing is
watched outside of the blocks. Seen are tensors of PyTorch, CuPy and JAX in device memory that a variable, an argument
or an attribute of ``self`` holds. None of these is imported here, and this package needs nothing but Python 3.8.

Why calls are watched, and no mode of a framework is used: under a dispatch mode of PyTorch ``torch.compile`` compiles
nothing, so the program would launch other kernels.
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from .lines import TensorLines
from .look import TensorWriter, start_watching, stop_watching

if TYPE_CHECKING:
    from typing import Self

__all__ = ["TensorTrace", "begin", "end", "tensortrace"]

Function = TypeVar("Function", bound=Callable[..., Any])


class _State:
    """State of the watch: ``depth`` blocks have begun and not ended."""

    depth = 0
    writer: TensorWriter | None = None


class TensorTrace(ContextDecorator):
    """A block, or each call of a function, whose tensors are written down. Blocks may be in one another."""

    def __enter__(self) -> Self:
        begin()
        return self

    def __exit__(self, *_: object) -> None:
        if _State.writer is not None:  # what the last statement of the block made
            _State.writer(sys._getframe(1))
        end()


def tensortrace(function: Function) -> Function:
    """``TensorTrace`` as a plain decorator."""
    return TensorTrace()(function)


def begin(everywhere: bool = False) -> None:
    """Watch calls from now on, of threads that start later too if ``everywhere``; outside of a run only count."""
    _State.depth += 1
    root = os.environ.get("TUI_PROBE_TRACE_ROOT")
    if _State.depth > 1 or not root:
        return
    lines = TensorLines(root)
    _State.writer = TensorWriter(lines)
    atexit.register(stop_watching)  # before Python takes itself apart
    if not start_watching(_State.writer, everywhere):
        lines.write_line("another Python profiler is active in this program, so tensors cannot be named")
        _State.writer = None


def end() -> None:
    """Stop watching where the first ``begin`` has its ``end``."""
    _State.depth -= 1
    if _State.depth == 0 and _State.writer is not None:
        stop_watching()
        atexit.unregister(stop_watching)
        _State.writer.close()
        _State.writer = None

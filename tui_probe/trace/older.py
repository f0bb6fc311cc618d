"""Kernels of traces whose log has no ``[kernel]`` lines: pieced together from how each function was prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.reasons import because
from tui_probe.trace.kernel_events import (
    EngineAnswer,
    FileStep,
    FunctionFound,
    FunctionMissing,
    ImageFound,
    InfoRead,
    KernelFolder,
    KernelReady,
    ModuleCall,
)
from tui_probe.trace.model import Kernel, Trace

if TYPE_CHECKING:
    from tui_probe.trace.event_types import Event
    from tui_probe.trace.shapes import Shape


class OlderKernels:
    """Follows one function at a time, as the single-threaded logs of that time do.

    ``current`` is the kernel that the lines at hand are about. A kernel is numbered in order of appearance.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._functions: dict[int, Kernel] = {}
        self._names: dict[int, str] = {}
        self.current: Kernel | None = None
        self.sized: Shape | None = None
        """The shape of the launch at hand, until its function is looked up for another one."""

    def apply(self, event: Event) -> None:
        """Take one event into account; those that say nothing of a kernel's preparation are ignored."""
        match event:
            case ModuleCall():
                self._note_name(event)
            case FunctionMissing(function):
                self.sized = None
                self.current = self._add(function)
            case FunctionFound(function, succeeded):
                self.sized = None
                self.current = self._functions.get(function) or self._add(function)
                if succeeded and self.current.status == "pending":
                    self.current.status = "probed"
            case _:
                if self.current is not None:
                    self._prepare(self.current, event)

    def _prepare(self, kernel: Kernel, event: Event) -> None:
        match event:
            case ImageFound(_, None, _):
                kernel.status, kernel.stated_reason = "skipped", because("image-unseen")
            case ImageFound(_, str(name), _) | InfoRead(name=name):
                kernel.name = name
            case KernelFolder(_, folder):
                kernel.folder_name = folder
            case EngineAnswer("failed", reason):
                kernel.status, kernel.stated_reason = "failed", reason
            case FileStep(step, path) if step.startswith("can't"):
                kernel.status, kernel.stated_reason = "failed", because("file-error", path=path, error=step)
            case KernelReady():
                kernel.status = "probed"
            case _:
                pass

    def _note_name(self, call: ModuleCall) -> None:
        """Names by handle; a function taken from a kernel handle has the kernel's name."""
        if call.handle is None:
            return
        name = call.name or (None if call.parent is None else self._names.get(call.parent))
        if name is not None:
            self._names[call.handle] = name

    def _add(self, function: int) -> Kernel:
        index = len(self._trace.kernels)
        name = self._names.get(function, f"{function:#x}")
        kernel = Kernel(index, name, self._trace)
        self._functions[function] = kernel
        self._trace.kernels.add(kernel)
        return kernel

"""tui-probe: a terminal profiler for GPU kernels, and the traces that it leaves as Python objects.

>>> import tui_probe
>>> t = tui_probe.open("trace")
>>> k = t.kernels[0]
>>> k.name, k.status, len(k.launches)
('planted', 'probed', 2)
>>> [records.shape for records in k.results[0].maps.values()]  # (blocks, slots per block, records per slot)
[(40, 2, 1)]
>>> k.metrics()["store_sectors"]
array([2560,  192])

Public are the names in ``__all__`` and what they give; everything else may change. ``open`` takes a trace directory,
its ``event.log``, or a folder of traces: then it reads the newest. Errors are those of :mod:`tui_probe.errors`,
whose texts name the file and what to do. ``tui-probe help python-api`` has more examples.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tui_probe.version import __version__

if TYPE_CHECKING:
    from tui_probe.api.results import Launch, Result
    from tui_probe.api.traces import Kernel, Trace, evaluate
    from tui_probe.api.traces import open_trace as open  # noqa: A004 - tui_probe.open, as gzip.open
    from tui_probe.errors import ChoiceError, ProbeError, TraceError
    from tui_probe.integrations.notebook import load_ipython_extension, profile, view
    from tui_probe.verdicts.kernel_findings import KernelFinding as Finding

__all__ = [
    "ChoiceError",
    "Finding",
    "Kernel",
    "Launch",
    "ProbeError",
    "Result",
    "Trace",
    "TraceError",
    "__version__",
    "evaluate",
    "load_ipython_extension",
    "open",
    "profile",
    "view",
]

_PLACES: Final = {
    "ChoiceError": ("tui_probe.errors", "ChoiceError"),
    "Finding": ("tui_probe.verdicts.kernel_findings", "KernelFinding"),
    "Kernel": ("tui_probe.api.traces", "Kernel"),
    "Launch": ("tui_probe.api.results", "Launch"),
    "ProbeError": ("tui_probe.errors", "ProbeError"),
    "Result": ("tui_probe.api.results", "Result"),
    "Trace": ("tui_probe.api.traces", "Trace"),
    "TraceError": ("tui_probe.errors", "TraceError"),
    "evaluate": ("tui_probe.api.traces", "evaluate"),
    "load_ipython_extension": ("tui_probe.integrations.notebook", "load_ipython_extension"),
    "open": ("tui_probe.api.traces", "open_trace"),
    "profile": ("tui_probe.integrations.notebook", "profile"),
    "view": ("tui_probe.integrations.notebook", "view"),
}
"""Modules of the public names. They are imported on first use: the command line needs none of them, and
importing NumPy takes longer than ``tui-probe --version`` takes.
"""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, member = _PLACES[name]
    value = globals()[name] = getattr(import_module(module), member)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Make numba-cuda keep the PTX of its kernels. Loaded by its place, and needs nothing but Python 3.8.

Since its linker is nvJitLink, numba-cuda loads cubins, which have PTX in them only with line tables; it has no variable
of the environment for those. So its linker is asked for them by its own argument. The machine code stays the same.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing takes its time, in each Python that starts
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

DRIVER = "numba.cuda.cudadrv.driver"
"""The module of numba-cuda that has its linkers."""


class NumbaFinder:
    """Finder that is on ``sys.meta_path`` until numba-cuda is imported, which it never imports itself."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that others find for numba-cuda's driver, so that it is changed once it was executed."""
        if name != DRIVER:
            return None
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next((candidate for candidate in specs if candidate is not None), None)
        if spec is not None and spec.loader is not None:
            _keep_ptx_after_execution(spec.loader)
        return spec


def _keep_ptx_after_execution(loader: Any) -> None:
    execute = loader.exec_module

    def execute_and_change(module: ModuleType) -> None:
        execute(module)
        keep_ptx(module)

    loader.exec_module = execute_and_change


def keep_ptx(driver: ModuleType) -> None:
    """Make each linker of the module write line tables."""
    for name, value in list(vars(driver).items()):
        if name.endswith("Linker") and isinstance(value, type) and "__init__" in vars(value):
            _request_line_tables(value)


def _request_line_tables(linker: Any) -> None:
    from functools import wraps
    from inspect import signature

    initialize = linker.__init__
    initializer_signature = signature(initialize)
    if "lineinfo" not in initializer_signature.parameters:
        return

    @wraps(initialize)
    def initialize_with_lines(self: Any, *arguments: Any, **options: Any) -> None:
        bound = initializer_signature.bind(self, *arguments, **options)
        bound.arguments["lineinfo"] = True
        initialize(*bound.args, **bound.kwargs)

    linker.__init__ = initialize_with_lines


def begin() -> None:
    """Wait for numba-cuda to be imported."""
    sys.meta_path.insert(0, NumbaFinder())

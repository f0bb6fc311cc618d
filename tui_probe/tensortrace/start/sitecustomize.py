"""Imported by every Python that ``tui-probe run`` starts: has numba-cuda keep its PTX, watches tensors where
``--tensors`` asks for it, and goes out of the way.

Another sitecustomize that would have been imported is; where there is none, it is as if there were none. Any Python
must be able to read this file; before 3.8 it does nothing.
"""

import os
import sys

MYPY = False  # typing takes its time, in each Python that starts
if MYPY:
    from typing import Any, List, Optional  # noqa: F401

FOLDER = os.path.dirname(os.path.abspath(__file__))


def load(name, path, folders=None):
    # type: (str, str, Optional[List[str]]) -> Any
    """A module by its place: the program's Python need not have it installed."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, path, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def start():
    # type: () -> None
    """Do what the run asks for."""
    package = os.path.dirname(FOLDER)
    load("_tui_probe_numba_ptx", os.path.join(package, "numba_ptx.py")).begin()
    if os.environ.get("TUI_PROBE_TENSORS") == "1":
        place = os.path.join(package, "__init__.py")
        load("_tui_probe_tensortrace", place, [package]).begin(everywhere=True)


def run_next():
    # type: () -> None
    """Import the program's own sitecustomize in the place of this one."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [path for path in sys.path if os.path.abspath(path) != FOLDER]
# A process without the hook has no trace: the program let go of it, or it is the simulated GPU.
if sys.version_info >= (3, 8) and "libcuda.so.1" in os.environ.get("LD_PRELOAD", ""):
    try:
        start()
    except Exception:  # noqa: BLE001 - the program runs without
        pass
if sys.version_info >= (3, 4):
    run_next()

"""Imported by every Python that ``tui-probe run`` starts: has numba-cuda keep its PTX, watches tensors where
``--tensors`` asks for it, and goes out of the way.

Another sitecustomize that would have been imported is; where there is none, it is as if there were none. Any Python
must be able to read this file; before 3.8 it does nothing.
"""

import os
import sys

TYPE_CHECKING = False  # typing takes its time, in each Python that starts
if TYPE_CHECKING:
    from typing import Any, List  # noqa: F401

FOLDER = os.path.dirname(os.path.abspath(__file__))


def load(name, path, folders):
    # type: (str, str, List[str]) -> Any
    """A module by its place: the program's Python need not have it installed."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, path, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keep_ptx(path):
    # type: (str) -> None
    """Load this one without importlib.util, which takes its time, in each Python that starts."""
    from importlib.machinery import SourceFileLoader

    name = "_tui_probe_numba_ptx"
    sys.modules[name] = module = type(sys)(name)
    SourceFileLoader(name, path).exec_module(module)
    module.begin()


def start():
    # type: () -> None
    """Do what the run asks for."""
    package = os.path.dirname(FOLDER)
    keep_ptx(os.path.join(package, "numba_ptx.py"))
    if os.environ.get("TUI_PROBE_TENSORS") == "1":
        place = os.path.join(package, "__init__.py")
        load("_tui_probe_tensortrace", place, [package]).begin(everywhere=True)


def run_next():
    # type: () -> None
    """Import the program's own sitecustomize in the place of this one."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    from importlib.util import module_from_spec

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

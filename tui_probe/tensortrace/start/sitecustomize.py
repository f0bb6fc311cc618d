"""Imported by every Python that ``tui-probe run`` starts: has numba-cuda keep its PTX, watches tensors where
``--tensors`` asks for it, and goes out of the way.

Another sitecustomize that would have been imported is; where there is none, it is as if there were none. Any Python
must be able to read this file; before 3.8 it does nothing.
"""

import os
import sys

TYPE_CHECKING = False  # typing takes its time, in each Python that starts
if TYPE_CHECKING:
    from typing import Any, Callable, List  # noqa: F401

FOLDER = os.path.dirname(os.path.abspath(__file__))
# A process without the hook has no trace: the program let go of it, or it is the simulated GPU.
LOADED_BY = os.environ.get("LD_PRELOAD", "") + os.environ.get("LD_AUDIT", "")


def load(name, path, folders):
    # type: (str, str, List[str]) -> Any
    """Load a module by its path: the program's Python need not have it installed."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, path, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keep_ptx(path):
    # type: (str) -> None
    """Load numba_ptx without importlib.util, which takes its time, in each Python that starts."""
    from importlib.machinery import SourceFileLoader

    name = "_tui_probe_numba_ptx"
    sys.modules[name] = module = type(sys)(name)
    SourceFileLoader(name, path).exec_module(module)
    module.begin()


def watch_tensors(package):
    # type: (str) -> None
    """Name the tensors of the whole program."""
    path = os.path.join(package, "__init__.py")
    load("_tui_probe_tensortrace", path, [package]).begin(everywhere=True)


def start():
    # type: () -> None
    """Start what the run asks for."""
    package = os.path.dirname(FOLDER)
    attempt(
        "numba-cuda could not be configured to keep its PTX", lambda: keep_ptx(os.path.join(package, "numba_ptx.py"))
    )
    if os.environ.get("TUI_PROBE_TENSORS") == "1":
        attempt("tensor names were not recorded", lambda: watch_tensors(package))


def attempt(failure_text, step):
    # type: (str, Callable[[], None]) -> None
    """Run a step. If it fails, the program runs without it, and its trace names what is missing, and why."""
    try:
        step()
    except Exception as error:  # noqa: BLE001 - after any error the program runs
        message = " ".join(("%s: %s: %s" % (failure_text, type(error).__name__, error)).split())
        log_at_exit("[init] python %s\n" % message)


def log_at_exit(line):
    # type: (str) -> None
    """Add a line to event.log as the process ends: it has no trace yet, and has one then if it launched a kernel."""
    import atexit
    from time import time

    root = os.environ.get("TUI_PROBE_TRACE_ROOT", "")
    atexit.register(add_to_log, root, time() - 1, line.encode("utf-8", "backslashreplace"))


def add_to_log(root, start_time, line):
    # type: (str, float, bytes) -> None
    """Add a line to the log of this process, if it has one since ``start_time``: a child has its own, an earlier
    process had the same number.
    """
    try:
        logs = [
            os.path.join(root, name, "event.log") for name in os.listdir(root) if name.endswith("_%d" % os.getpid())
        ]
        newest_log = max(logs, key=os.path.getmtime)
        if os.path.getmtime(newest_log) < start_time:
            return
        log = os.open(newest_log, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):  # no kernel was launched
        return
    try:
        os.write(log, line)
    except OSError:  # a full disk, which the trace reports elsewhere
        pass
    finally:
        os.close(log)


def run_next():
    # type: () -> None
    """Import the program's own sitecustomize instead of this one."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [path for path in sys.path if os.path.abspath(path) != FOLDER]
if sys.version_info >= (3, 8) and ("libcuda.so.1" in LOADED_BY or "libtui-probe-audit.so" in LOADED_BY):
    start()
if sys.version_info >= (3, 4):
    run_next()

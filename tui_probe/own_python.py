"""Our own Python processes: they do not follow settings of the environment that are meant for the user's program.

PYTHONINSPECT changes an exit status, PYTHONWARNINGS may end an import, and a module in PYTHONPATH may have the name of
one of the standard library. The environment stays as it is, since the program gets it. PYTHONIOENCODING is followed,
since it states what the terminal takes.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import stat
import sys
from typing import Final

MEANT_FOR_PROGRAMS: Final = frozenset(
    {
        "PYTHONASYNCIODEBUG", "PYTHONCASEOK", "PYTHONDEBUG", "PYTHONDEVMODE", "PYTHONDUMPREFS", "PYTHONEXECUTABLE",
        "PYTHONFAULTHANDLER", "PYTHONHOME", "PYTHONINSPECT", "PYTHONINTMAXSTRDIGITS", "PYTHONIOENCODING",
        "PYTHONMALLOC", "PYTHONMALLOCSTATS", "PYTHONOPTIMIZE", "PYTHONPATH", "PYTHONPERFSUPPORT", "PYTHONPLATLIBDIR",
        "PYTHONPROFILEIMPORTTIME", "PYTHONTRACEMALLOC", "PYTHONVERBOSE", "PYTHONWARNDEFAULTENCODING", "PYTHONWARNINGS",
        "PYTHON_GIL", "PYTHON_JIT", "PYTHON_PRESITE",
    }
)  # fmt: skip
_MAIN: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
_BYTECODE_BYTES: Final = 32 << 20
"""More than all modules that tui-probe imports take when they are compiled."""
_CACHE_MODE: Final = 0o700
_ROOT: Final = 0
OWN_COMMAND: Final = (sys.executable, "-P", _MAIN)
"""``tui-probe`` as a process of its own, which imports no module of the working directory, such as a ``random.py``."""


def leave_settings_to_program() -> None:
    """Start again in a Python that ignores them, if there are any; its sys.argv is the same."""
    if sys.flags.ignore_environment or not any(os.environ.get(name) for name in MEANT_FOR_PROGRAMS):
        return
    interpreter_options = [
        *(["-B"] if sys.flags.dont_write_bytecode else []),
        *(["-s"] if sys.flags.no_user_site else []),
    ]
    if sys.flags.utf8_mode:
        interpreter_options += ["-X", "utf8"]
    if sys.pycache_prefix:
        interpreter_options += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    try:
        os.execv(sys.executable, [sys.executable, "-E", "-P", *interpreter_options, _MAIN, *sys.argv[1:]])
    except (OSError, ValueError):  # no interpreter is known: this one is as good as any
        return


def collect_rarely() -> None:
    """Search for garbage after 100,000 new objects, by default 700: modules and traces make thousands, which stay, so
    the searches take an eighth of the time of a report.
    """
    gc.set_threshold(100_000, 10, 10)


def keep_bytecode() -> None:
    """Let Python keep compiled modules in tui-probe's cache, where it would compile them at each start.

    That is half a second per process. It happens in containers that set PYTHONDONTWRITEBYTECODE or install packages
    where the user cannot write, if the installer has compiled none, such as uv.

    None is written where a file may be cut off: Python would take it for whole, and fail at every later start.
    """
    if _may_cut_files():
        sys.dont_write_bytecode = True
        return
    compiled = __spec__.cached
    is_kept = os.access(os.path.dirname(_MAIN), os.W_OK) and not sys.dont_write_bytecode
    if is_kept or sys.pycache_prefix or compiled is None or os.path.exists(compiled):
        return
    if (cache := cache_home()) is not None:
        sys.pycache_prefix, sys.dont_write_bytecode = os.path.join(cache, "bytecode"), False


def _may_cut_files() -> bool:
    """Return whether files have a largest size (``ulimit -f``), or the disk of this package is nearly full."""
    try:
        import resource  # Windows has none

        disk = os.statvfs(sys.pycache_prefix or os.path.dirname(_MAIN))
    except (ImportError, OSError):
        return False
    is_limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
    return is_limited or disk.f_bavail * disk.f_frsize < _BYTECODE_BYTES


def cache_home() -> str | None:
    """The cache directory of this user, made if it is missing; None if there is none that only this user can write to.

    tui-probe runs what it reads there: compiled modules, pickled probes, kernels.
    """
    folder = _cache_folder()
    if folder is None or cache_problem():
        return None
    with contextlib.suppress(OSError):  # it exists, or what writes to it reports the error
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        os.mkdir(folder, _CACHE_MODE)
    return folder


def cache_problem() -> str:
    """The reason why this user has no cache directory; "" if there is, or can be, one."""
    folder = _cache_folder()
    if folder is None:
        return "no home directory, and XDG_CACHE_HOME is not set"
    try:
        link, target = os.lstat(folder), os.stat(folder)  # who owns a link can let it lead to other files of this user
    except OSError:  # there is none yet
        return ""
    if not hasattr(os, "geteuid"):  # Windows, where files have no owner and mode
        return ""
    other_owners = {link.st_uid, target.st_uid} - {os.geteuid(), _ROOT}
    if other_owners:
        return f"{folder} is not used: user {other_owners.pop()} owns the directory and could replace files in it"
    if target.st_mode & stat.S_IWOTH:
        return f"{folder} is not used: all users may write to the directory"
    return ""


def _cache_folder() -> str | None:
    """``$XDG_CACHE_HOME/tui-probe``, else below ``~/.cache``; None where there is no home."""
    cache_root = os.environ.get("XDG_CACHE_HOME", "")
    if not cache_root.startswith("/"):  # a relative path is to be ignored: XDG Base Directory Specification
        home = os.path.expanduser("~")
        if not home.startswith("/"):
            return None
        cache_root = os.path.join(home, ".cache")
    return os.path.join(cache_root, "tui-probe")


def find_package_again() -> None:
    """Find this package where it was after such a start, and others of PYTHONPATH behind all that are installed."""
    package_parent = os.path.dirname(os.path.dirname(_MAIN))
    python_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path += [path for path in (package_parent, *python_path) if path and path not in sys.path]


def follow_output_encoding() -> None:
    """Write in the encoding of PYTHONIOENCODING; characters that it does not have never end a command."""
    encoding = os.environ.get("PYTHONIOENCODING", "").partition(":")[0]
    for stream in (sys.stdout, sys.stderr):
        if encoding and isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(LookupError):
                stream.reconfigure(encoding=encoding, errors="backslashreplace")


def own_environment() -> dict[str, str]:
    """The environment for another Python of tui-probe, which finds the same modules as this one."""
    environment = {name: value for name, value in os.environ.items() if name not in MEANT_FOR_PROGRAMS}
    if sys.pycache_prefix:
        environment |= {"PYTHONPYCACHEPREFIX": sys.pycache_prefix, "PYTHONDONTWRITEBYTECODE": ""}
    return environment | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

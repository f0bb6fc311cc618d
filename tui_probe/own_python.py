"""Our own Python processes: they do not follow settings of the environment that are meant for the user's program.

PYTHONINSPECT changes an exit status, PYTHONWARNINGS may end an import, and a module in PYTHONPATH may have the name of
one of the standard library. The environment stays as it is, since the program gets it. PYTHONIOENCODING is followed,
since it states what the terminal takes.
"""

from __future__ import annotations

import contextlib
import io
import os
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


def find_package_again() -> None:
    """Find this package where it was after such a start, and others of PYTHONPATH behind all that are installed."""
    place = os.path.dirname(os.path.dirname(_MAIN))
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path += [path for path in (place, *given) if path and path not in sys.path]


def follow_output_encoding() -> None:
    """Write in the encoding of PYTHONIOENCODING; characters that it does not have never end a command."""
    encoding = os.environ.get("PYTHONIOENCODING", "").partition(":")[0]
    for stream in (sys.stdout, sys.stderr):
        if encoding and isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(LookupError):
                stream.reconfigure(encoding=encoding, errors="backslashreplace")


def own_environment() -> dict[str, str]:
    """The environment for another Python of tui-probe, which finds the same modules as this one."""
    followed = {name: value for name, value in os.environ.items() if name not in MEANT_FOR_PROGRAMS}
    return followed | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

"""Found under ``tui-probe run`` by programs that import ``neutrino``: what of it a program to be profiled uses.

An installed one wins, since the program may use more of it than there is here. Of a mere folder of that name what is in
it comes first.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any


def _shadowed_spec() -> Any:
    """Return the spec of the module that would be imported if this folder were not there; None without one."""
    own_folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = [entry for entry in sys.path if os.path.abspath(entry) != own_folder]
    for finder in sys.meta_path:
        spec = finder.find_spec(__name__, path if finder is PathFinder else None)
        if spec is not None:
            return spec
    return None


_spec = _shadowed_spec()
if _spec is not None and _spec.origin is not None and _spec.loader is not None:
    sys.modules[__name__] = _module = module_from_spec(_spec)
    _spec.loader.exec_module(_module)
elif _spec is not None:
    __path__[:0] = list(_spec.submodule_search_locations)

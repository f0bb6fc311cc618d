"""Found under ``tui-probe run`` by programs that import ``neutrino``: what of it a program to be profiled uses.

An installed one wins, since the program may use more of it than there is here. Of a mere folder of that name what is in
it comes first.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any


def _other() -> Any:
    """Return the module that would be imported if this folder were not there."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = [entry for entry in sys.path if os.path.abspath(entry) != here]
    for finder in sys.meta_path:
        spec = finder.find_spec(__name__, path if finder is PathFinder else None)
        if spec is not None:
            return spec
    return None


_found = _other()
if _found is not None and _found.origin is not None and _found.loader is not None:
    sys.modules[__name__] = _module = module_from_spec(_found)
    _found.loader.exec_module(_module)
elif _found is not None:
    __path__[:0] = list(_found.submodule_search_locations)

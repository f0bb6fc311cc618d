"""Found under ``tui-probe run`` by programs that import ``neutrino``: what of it a program to be profiled uses.

An installed one wins, since the program may use more of it than there is here.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_found = PathFinder.find_spec(__name__, [path for path in sys.path if os.path.abspath(path) != _FOLDER])
if _found is not None and _found.loader is not None and _found.origin is not None:
    sys.modules[__name__] = _module = module_from_spec(_found)
    _found.loader.exec_module(_module)

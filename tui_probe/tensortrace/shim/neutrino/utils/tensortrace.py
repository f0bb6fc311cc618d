"""``TensorTrace`` of tui-probe under the name that existing programs import it by.

The package is loaded by its path: the Python of the program need not have tui-probe installed.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

_NAME = "_tui_probe_tensortrace"
if _NAME not in sys.modules:  # else `run --tensors` has loaded it
    _package = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    _spec = spec_from_file_location(_NAME, os.path.join(_package, "__init__.py"), submodule_search_locations=[_package])
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules[_NAME] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[_NAME])

TensorTrace = sys.modules[_NAME].TensorTrace
tensortrace = sys.modules[_NAME].tensortrace

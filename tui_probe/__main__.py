"""``python -m tui_probe``, and this file by its path: see ``own_python``."""

import os
import sys

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    import tui_probe.own_python  # of this package, anything else is installed

    del sys.path[0]
    tui_probe.own_python.find_package_again()
    tui_probe.own_python.follow_output_encoding()

from tui_probe.entry import main

sys.exit(main())

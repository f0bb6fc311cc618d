"""``python -m tui_probe``."""

import sys

from tui_probe.cli.main import main

sys.exit(main())

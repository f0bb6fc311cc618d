"""Several programs in one process, one after another: `several.py PROGRAM.py …`, which saves starting Python anew."""

import runpy
import sys

for program in sys.argv[1:]:
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")

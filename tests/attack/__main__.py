"""The long form of the walk over all calls of the hook that can fail.

    python -m tests.attack [--calls 1 2 3 0]

Of each place the calls with these numbers fail, each in a run of its own; 0: all of them. Prints how many runs there
were, what was wrong, and the places that were not reached. Ends with 1 if anything was wrong. Programs with CUDA graphs
run on the simulated GPU, all others on a driver that stands in for the real one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.attack.fault_walk import Walk, listed, missing, tools
from tests.attack.graph_scenarios import graph_scenarios
from tests.attack.scenarios import SCENARIOS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, nargs="+", default=[1, 2, 3, 0])
    options = parser.parse_args()
    if words := missing():
        sys.exit(words)
    walk = Walk()
    with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
        made = tools(Path(folder) / "tools")
        for scenario in SCENARIOS:
            walk.go(made, scenario, Path(folder) / scenario.name, options.calls)
        with graph_scenarios(Path(folder) / "graphs of") as scenarios:
            for scenario in scenarios:
                walk.go(made, scenario, Path(folder) / scenario.name, options.calls)
        places = listed(made.built.hook, with_graphs=True)
    unreached = sorted(places - walk.met - walk.behind)
    reached = len(places) - len(unreached)
    print(f"{walk.runs} runs; {reached} of {len(places)} places reached ({reached / len(places):.1%})")
    print("\n".join(walk.complaints))
    print("not reached: " + ", ".join(unreached))
    return 1 if walk.complaints else 0


if __name__ == "__main__":
    sys.exit(main())

"""Time of checks on the simulated GPU, as a ratio to the time without them.

    python -m tests.bench.check_cost [--size 100000] [--rounds 7] [KERNEL...]

Launches the kernels of `tui-probe demo` in this process, with and without checks in turn, and prints the median of the
ratios of neighbouring launches. Exits with a message if a checked launch has findings, and if the checks do not find
that its output was freed: then nothing was checked.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.simgpu.device import Device
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.examples import demo
from tui_probe.simgpu.executor import Checker, Kernel, compile_kernel
from tui_probe.simgpu.executor.checks.byte_states import CHANGE_ALLOCATED, CHANGE_FREED, CHANGE_INITIALISED

if TYPE_CHECKING:
    from collections.abc import Sequence

MEMORY_BYTES = 1 << 26


def prepared(case: demo.Case, checker: bool) -> tuple[Device, list[Any]]:
    """A device with the arrays of a case, and the arguments."""
    device = Device(MEMORY_BYTES)
    arrays = (case.output, *case.inputs)
    arguments = [np.uint64(device.upload(array)) for array in arrays]
    if checker:
        device.checker = Checker(device.memory)
        for address, array in zip(arguments, arrays, strict=True):
            for kind in (CHANGE_ALLOCATED, CHANGE_INITIALISED):
                device.checker.apply_changes([(kind, int(address), array.nbytes)])
    return device, [*arguments, *(bytes(scalar) for scalar in case.scalars)]


def seconds(device: Device, kernel: Kernel, case: demo.Case, arguments: list[Any]) -> float:
    """Processor time of one launch, which other processes do not change much."""
    begin = time.process_time()
    device.launch(kernel, *arguments, grid=case.grid, block=case.block, shared=case.shared_bytes)
    return time.process_time() - begin


def ratios(name: str, size: int, rounds: int) -> list[tuple[float, float]]:
    """Seconds without and with checks of neighbouring launches, after one of each that is not counted."""
    kernel = compile_kernel(parse((Path(demo.__file__).parent / "kernels" / f"{name}.ptx").read_text()), name)
    case = demo.EXAMPLES[name](size)
    (plain, plain_arguments), (checked, arguments) = prepared(case, checker=False), prepared(case, checker=True)
    pairs = []
    for _ in range(rounds + 1):
        without = seconds(plain, kernel, case, plain_arguments)
        pairs.append((without, seconds(checked, kernel, case, arguments)))
    require_checks(name, checked, kernel, case, arguments)
    return pairs[1:]


def require_checks(name: str, device: Device, kernel: Kernel, case: demo.Case, arguments: list[Any]) -> None:
    """Raise SystemExit if the launches so far had findings, or if one whose output was freed has none."""
    checks = device.checker
    faults = [] if checks is None else checks.take_faults()
    if faults:
        raise SystemExit(f"{name}: {faults[0].kind} at line {faults[0].place.line} {faults[0].detail}".rstrip())
    if checks is not None:
        checks.apply_changes([(CHANGE_FREED, int(arguments[0]), case.output.nbytes)])
        device.launch(kernel, *arguments, grid=case.grid, block=case.block, shared=case.shared_bytes)
        faults = checks.take_faults()
    if not any(fault.kind == "use_after_free" for fault in faults):
        raise SystemExit(f"{name}: nothing was checked: a store to freed memory was not found")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=list(demo.EXAMPLES))
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args(arguments)
    print(f"{'kernel':16} {'plain ms':>9} {'checked':>9} {'ratio':>6}")
    for name in given.kernels:
        pairs = ratios(name, given.size, given.rounds)
        plain, checked = (1e3 * median(values) for values in zip(*pairs, strict=True))
        ratio = median(with_checks / without for without, with_checks in pairs)
        print(f"{name:16} {plain:9.1f} {checked:9.1f} {ratio:6.2f}")


if __name__ == "__main__":
    main()

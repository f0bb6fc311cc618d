#!/usr/bin/env python3
"""Launch one kernel alone, with the memory it had in its program, and compare the memory afterwards.

Needs Python 3.8 or newer and the CUDA driver (libcuda.so.1), nothing else. launch.json describes the launch, before.bin
has the memory before it, after.bin the memory after it in the program, if it ended there. Exit status: 0 the memory is
the same, 1 it differs, 2 the launch could not be made, or failed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Launch = dict[str, Any]
    Parts = list[tuple["str | int", int]]
    """Names of variables and addresses of allocations, with their sizes, in the order of the files of memory."""

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK = 16 << 20
"""Bytes of memory that are copied or compared at a time."""
SHOWN_DIFFERENCES = 8
"""Bytes that are printed if they differ."""
TERMINATOR = b"\0"  # PTX is a C string
AREA = 32 << 20
"""The driver reserves addresses in areas of this size and alignment, and the first free ones at or above the address
that is asked for: only whole areas, in ascending order, are where they are asked for.
"""
ATTEMPT = "LAUNCH_ATTEMPT"
"""Environment variable with the number of this attempt to get the addresses of the program."""
ATTEMPTS = 10
NO_RANDOMIZATION = 0x0040000
"""ADDR_NO_RANDOMIZE of personality(2): each attempt needs other addresses of libraries."""


class Failure(Exception):
    """The launch could not be made."""


class AddressInUse(Failure):
    """A library or the driver has an address of the program in this process."""


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = [("type", c_int), ("id", c_int)]


class AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", c_int),
        ("handle_types", c_int),
        ("location", Location),
        ("windows_data", c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", Location), ("flags", c_int)]


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", c_uint), ("pad", c_uint), ("value", ctypes.c_ubyte * 64)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", c_uint),
    ]


def load_driver() -> ctypes.CDLL:
    """Open the driver."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Failure(f"libcuda.so.1 cannot be loaded: {error}; install the NVIDIA driver") from error


class Driver:
    """Calls of the driver that raise Failure where they return an error."""

    def __init__(self) -> None:
        self.library = load_driver()

    def error_name(self, code: int) -> str:
        """The name of a result."""
        name = c_char_p()
        is_known = self.library.cuGetErrorName(code, byref(name)) == 0
        return name.value.decode() if is_known and name.value else f"error {code}"

    def __getattr__(self, name: str) -> Callable[..., None]:
        function = getattr(self.library, name)

        def call(*arguments: object) -> None:
            code = function(*arguments)
            if code:
                raise Failure(f"{name} returned {self.error_name(code)}")

        return call


def read_launch() -> Launch:
    """Read the description of the launch."""
    try:
        with open(os.path.join(HERE, "launch.json")) as file:
            launch: Launch = json.load(file)
    except (OSError, ValueError) as error:
        raise Failure(f"launch.json cannot be read: {error}; extract the launch again") from error
    return launch


def count_of(text: str) -> int:
    """The number of further launches."""
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count


def read_parts(launch: Launch) -> Parts:
    """Return the parts of the files of memory, and check that the files are complete."""
    parts: Parts = [(variable["name"], variable["size"]) for variable in launch["variables"]]
    parts += [(memory["address"], memory["size"]) for memory in launch["memory"]]
    expected_size = sum(size for _, size in parts)
    for name in ("before.bin", *(["after.bin"] if launch["has_result"] else [])):
        path = os.path.join(HERE, name)
        size = os.path.getsize(path) if os.path.exists(path) else 0
        if size != expected_size:
            raise Failure(f"{name} has {size} bytes, not {expected_size}; extract the launch again")
    return parts


def covering_ranges(launch: Launch, page: int) -> list[list[int]]:
    """Whole pages that cover the memory, as [start, end] lists in ascending order."""
    ranges: list[list[int]] = []
    for memory in sorted(launch["memory"], key=lambda memory: memory["address"]):
        start = memory["address"] // page * page
        end = -(-(memory["address"] + memory["size"]) // page) * page
        if ranges and start <= ranges[-1][1]:
            ranges[-1][1] = max(ranges[-1][1], end)
        else:
            ranges.append([start, end])
    return ranges


def map_memory(driver: Driver, launch: Launch, device: int) -> None:
    """Map memory at the addresses that it had in the program: pointers to it lie inside memory."""
    properties = AllocationProperties(type=1, location=Location(1, device))
    access = Access(Location(1, device), 3)
    page = c_size_t()
    driver.cuMemGetAllocationGranularity(byref(page), byref(properties), 0)
    for start, end in covering_ranges(launch, max(page.value, AREA)):
        address, size = c_ulonglong(), c_size_t(end - start)
        driver.cuMemAddressReserve(byref(address), size, c_size_t(0), c_ulonglong(start), c_ulonglong(0))
        if address.value != start:
            raise AddressInUse(f"addresses {start:#x} to {end:#x} are in use in each of {ATTEMPTS} attempts; run again")
    for start, end in covering_ranges(launch, page.value):
        handle, size = c_ulonglong(), c_size_t(end - start)
        driver.cuMemCreate(byref(handle), size, byref(properties), c_ulonglong(0))
        driver.cuMemMap(c_ulonglong(start), size, c_size_t(0), handle, c_ulonglong(0))
        driver.cuMemSetAccess(c_ulonglong(start), size, byref(access), c_size_t(1))


def load_module(driver: Driver, launch: Launch) -> c_void_p:
    """Load the first image that the GPU can run."""
    module, problems = c_void_p(), []
    for name in launch["images"]:
        try:
            with open(os.path.join(HERE, name), "rb") as file:
                image = file.read() + TERMINATOR
        except OSError as error:
            problems.append(str(error))
            continue
        code = driver.library.cuModuleLoadData(byref(module), c_char_p(image))
        if code == 0:
            return module
        problems.append(f"{name}: {driver.error_name(code)}")
    raise Failure("no image can be loaded on this GPU ({})".format("; ".join(problems)))


def function_of(driver: Driver, launch: Launch, module: c_void_p) -> c_void_p:
    """The kernel, with the attributes that it had."""
    function, value = c_void_p(), c_int()
    driver.cuModuleGetFunction(byref(function), module, os.fsencode(launch["kernel"]))
    for attribute, setting in launch["function_attributes"]:
        if driver.library.cuFuncGetAttribute(byref(value), attribute, function) == 0 and value.value != setting:
            driver.cuFuncSetAttribute(function, attribute, setting)
    return function


def addresses(driver: Driver, launch: Launch, module: c_void_p) -> list[int]:
    """The address of each part of the files of memory."""
    variables = []
    for variable in launch["variables"]:
        address, size = c_ulonglong(), c_size_t()
        driver.cuModuleGetGlobal_v2(byref(address), byref(size), module, os.fsencode(variable["name"]))
        if size.value != variable["size"]:
            raise Failure("the variable {name} does not have {size} bytes".format(**variable))
        variables.append(address.value)
    return variables + [memory["address"] for memory in launch["memory"]]


def chunks(name: str, parts: Parts) -> Iterator[tuple[int, int, bytes]]:
    """Yield (part, offset in it, bytes) of a file of memory."""
    with open(os.path.join(HERE, name), "rb") as file:
        for part, (_, size) in enumerate(parts):
            for offset in range(0, size, CHUNK):
                yield part, offset, file.read(min(CHUNK, size - offset))


def copy_in(driver: Driver, parts: Parts, places: list[int], part_numbers: set[int] | None = None) -> None:
    """Copy the memory before the launch to the GPU; WANTED: only these parts."""
    for part, offset, content in chunks("before.bin", parts):
        if part_numbers is None or part in part_numbers:
            driver.cuMemcpyHtoD_v2(c_ulonglong(places[part] + offset), c_char_p(content), c_size_t(len(content)))


def changed_parts(parts: Parts) -> set[int]:
    """The parts that the launch changed; all parts if its result is not known."""
    if not os.path.exists(os.path.join(HERE, "after.bin")):
        return set(range(len(parts)))
    pairs = zip(chunks("before.bin", parts), chunks("after.bin", parts))
    return {part for (part, _, content), (_, _, result) in pairs if content != result}


def make_config(launch: Launch) -> LaunchConfig:
    """The launch as the driver takes it."""
    attributes = (LaunchAttribute * (len(launch["launch_attributes"]) + 1))()
    for place, (number, value) in zip(attributes, launch["launch_attributes"]):
        place.id, place.value = number, (ctypes.c_ubyte * 64).from_buffer_copy(bytes.fromhex(value))
    return LaunchConfig(
        (c_uint * 3)(*launch["grid"]),
        (c_uint * 3)(*launch["block"]),
        launch["shared"],
        None,
        attributes,
        len(launch["launch_attributes"]),
    )


def start_kernel(driver: Driver, function: c_void_p, launch: Launch) -> None:
    """Launch the kernel; attributes need the newer of two calls."""
    values = bytes.fromhex(launch["parameters"])
    buffer, size = ctypes.create_string_buffer(values, len(values) + 1), c_size_t(len(values))
    extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), None)
    arguments = extra if values else None
    config = make_config(launch)
    if config.count:
        driver.cuLaunchKernelEx(byref(config), function, None, arguments)
    else:
        driver.cuLaunchKernel(function, *config.grid, *config.block, c_uint(config.shared), None, None, arguments)


def compare(driver: Driver, parts: Parts, places: list[int]) -> int:
    """Print bytes that differ from those in the program. Returns how many do."""
    differences = 0
    for part, offset, reference in chunks("after.bin", parts):
        buffer = ctypes.create_string_buffer(len(reference))
        driver.cuMemcpyDtoH_v2(buffer, c_ulonglong(places[part] + offset), c_size_t(len(reference)))
        if buffer.raw == reference:
            continue
        for place, (reference_byte, byte) in enumerate(zip(reference, buffer.raw)):
            if reference_byte != byte:
                differences += 1
                if differences <= SHOWN_DIFFERENCES:
                    name = parts[part][0]
                    label = name if isinstance(name, str) else f"{name:#x}"
                    print(f"{label} + {offset + place}: here {byte:#04x}, in the program {reference_byte:#04x}")
    return differences


def time_launches(
    driver: Driver, function: c_void_p, launch: Launch, parts: Parts, places: list[int], count: int
) -> None:
    """Launch COUNT times with the memory of before, and print the times on the GPU."""
    begin, end, times = c_void_p(), c_void_p(), []
    driver.cuEventCreate(byref(begin), 0)
    driver.cuEventCreate(byref(end), 0)
    part_numbers = changed_parts(parts)
    for _ in range(count):
        copy_in(driver, parts, places, part_numbers)
        driver.cuEventRecord(begin, None)
        start_kernel(driver, function, launch)
        driver.cuEventRecord(end, None)
        driver.cuEventSynchronize(end)
        time = c_float()
        driver.cuEventElapsedTime(byref(time), begin, end)
        times.append(time.value)
    times.sort()
    median = (times[(count - 1) // 2] + times[count // 2]) / 2
    print(f"{count} launches: median {median:.4f} ms, min {times[0]:.4f}, max {times[-1]:.4f}")


def prepare(driver: Driver, launch: Launch, number: int) -> None:
    """Map the memory and make a context on device NUMBER, in this order: a context takes addresses, too."""
    device, context, name = c_int(), c_void_p(), ctypes.create_string_buffer(256)
    driver.cuInit(0)
    driver.cuDeviceGet(byref(device), number)
    driver.cuDeviceGetName(name, 256, device)
    map_memory(driver, launch, device.value)
    driver.cuCtxCreate_v2(byref(context), 0, device)
    for limit, value in launch["limits"]:
        driver.library.cuCtxSetLimit(limit, c_size_t(value))
    print("{} on {}".format(launch["kernel"], name.value.decode()))


def run(arguments: argparse.Namespace) -> int:
    """Launch and compare. Returns the exit status."""
    launch = read_launch()
    parts = read_parts(launch)
    driver = Driver()
    prepare(driver, launch, arguments.device)
    module = load_module(driver, launch)
    function = function_of(driver, launch, module)
    places = addresses(driver, launch, module)
    copy_in(driver, parts, places)
    start_kernel(driver, function, launch)
    driver.cuCtxSynchronize()
    differences = compare(driver, parts, places) if launch["has_result"] else 0
    total = sum(size for _, size in parts)
    if not launch["has_result"]:
        print(
            "the launch ended here; in the program, the launch failed or did not end, so there is no result to compare"
        )
    elif not total:
        reason = "no parameter has the address of an allocation that can be saved"
        print(f"nothing was compared: no memory was saved, because {reason}")
    elif differences:
        print(f"{differences} of {total} bytes differ from the program's result")
    else:
        print(f"all {total} bytes equal the program's result")
    if arguments.repeat:
        time_launches(driver, function, launch, parts, places, arguments.repeat)
    return 1 if differences else 0


def start_again() -> None:
    """Replace the process by one with other addresses; return if this was the last attempt."""
    attempt = int(os.environ.get(ATTEMPT, "1"))
    if attempt < ATTEMPTS:
        libc = ctypes.CDLL(None)
        libc.personality(libc.personality(c_uint(0xFFFFFFFF)) & ~NO_RANDOMIZATION)
        os.environ[ATTEMPT] = str(attempt + 1)
        os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), *sys.argv[1:]])


def main() -> int:
    """Read the arguments, run, and report a failure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    count_of.__name__ = "positive int"  # argparse names it in its message
    parser.add_argument(
        "--repeat", type=count_of, default=0, metavar="N", help="launch N more times and print GPU times"
    )
    parser.add_argument("--device", type=int, default=0, metavar="N", help="use GPU N; default 0")
    try:
        return run(parser.parse_args())
    except Failure as failure:
        if isinstance(failure, AddressInUse):
            start_again()
        print(f"error: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

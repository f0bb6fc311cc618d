"""Runs a command under a seccomp filter that denies the system calls that a container's sandbox denies.

    python .ci/denied_calls.py docker|gvisor COMMAND...

``docker`` answers them with EPERM, ``gvisor`` with ENOSYS. Neither is a sandbox: the filter only gives a program the
same answers. The numbers are those of x86-64.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from typing import Final

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
DOCKER: Final = (
    errno.EPERM,
    {
        "ptrace": 101, "syslog": 103, "uselib": 134, "personality": 135, "ustat": 136, "sysfs": 139, "vhangup": 153,
        "pivot_root": 155, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
        "swapoff": 168, "reboot": 169, "init_module": 175, "delete_module": 176, "quotactl": 179,
        "lookup_dcookie": 212, "clock_settime": 227, "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "move_pages": 279,
        "perf_event_open": 298, "fanotify_init": 300, "open_by_handle_at": 304, "setns": 308,
        "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "bpf": 321,
        "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    },
)  # fmt: skip
"""Calls that Docker's default profile denies a process without capabilities; some of them on older kernels only."""
GVISOR: Final = (
    errno.ENOSYS,
    {
        "ptrace": 101, "personality": 135, "lookup_dcookie": 212, "perf_event_open": 298, "open_by_handle_at": 304,
        "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "bpf": 321, "userfaultfd": 323,
        "pkey_mprotect": 329, "pkey_alloc": 330, "pkey_free": 331, "io_uring_setup": 425, "io_uring_enter": 426,
        "io_uring_register": 427, "pidfd_open": 434, "pidfd_getfd": 438, "process_madvise": 440, "futex_waitv": 449,
    },
)  # fmt: skip
"""Calls that gVisor lacks, or lacked in a release that is in use."""


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def filter_program(denied: tuple[int, ...], error: int) -> bytes:
    """Return a filter that answers these calls with ``error``; it loads the number, the first field of its input."""
    checks = [instruction(JUMP_IF_EQUAL, number, if_true=len(denied) - place) for place, number in enumerate(denied)]
    return b"".join([instruction(LOAD, 0), *checks, instruction(RETURN, ALLOW), instruction(RETURN, ERRNO | error)])


def deny(denied: tuple[int, ...], error: int) -> None:
    """Install the filter in this process and those that it starts."""
    program = filter_program(denied, error)
    text = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header)):
        if libc.prctl(*words):
            raise OSError(ctypes.get_errno(), f"prctl: {os.strerror(ctypes.get_errno())}")


def main() -> None:
    profile, *command = sys.argv[1:]
    error, calls = {"docker": DOCKER, "gvisor": GVISOR}[profile]
    deny(tuple(calls.values()), error)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()

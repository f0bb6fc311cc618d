/* The protocol of the driver and its server over a stream socket. tui_probe/simgpu/protocol.py has the same.
 *
 * Integers are little-endian and unsigned unless said otherwise. TEXT and BYTES are a u32 length and that many bytes.
 *
 * The server is started with the socket as descriptor 3 and the memory file as descriptor 4; its one argument tells
 * where the program has mapped that file, and the machine: "memory_address=N,memory_bytes=N,sm_count=N,…". It begins:
 *   READY       u32 version
 * Then each request has one reply:
 *   request     u32 kind, u32 length of the body, body
 *   reply       u32 status, u32 length of the body, body. Unless the status is OK the body is a TEXT: what went wrong,
 *               BYTES: what threads printed before that, u32 findings, a TEXT each. Before the reply to a LAUNCH there
 *               may be replies with the status RUNNING: u32 findings so far, a TEXT each.
 *
 * LOAD          BYTES image as given to cuModuleLoadData, without what follows its end
 *   OK          u64 module, u32 target (80 for sm_80), u32 kernels, a TEXT each: name,
 *               u32 variables, each: TEXT name, u32 space (0 global, 1 const), u64 size, u64 alignment, BYTES initial
 *                 (as long as the size, or empty for zeros)
 * PLACE         u64 module, u32 variables, a u64 each: address, in the order of the LOAD reply. The driver has written
 *                 the initial values to memory; the server then writes what addresses they hold.
 *   OK          nothing
 * DESCRIBE      u64 module, u32 kernel (index in the LOAD reply)
 *   OK          u32 static shared bytes, u32 local bytes, u32 largest number of threads of a block,
 *               i32 registers (-1: the image has no machine code to tell), u32 an estimate of them,
 *               u32 cluster x y z (all 0: none),
 *               u32 parameters, each: u32 offset, u32 size
 * LAUNCH        u64 module, u32 kernel, u32 grid x y z, u32 block x y z, u32 dynamic shared bytes, u64 start cycle,
 *               u32 cluster x y z (all 0: none but the kernel's own), u64 address of 8 bytes for the barrier of a
 *               cooperative grid (0: it is none), BYTES parameters, u32 changes of memory since the last launch, each:
 *               u32 kind (1 allocated, 2 initialised, 3 freed, 4 forget all), u64 address, u64 bytes
 *   OK          u64 cycles from start to end, u64 instructions executed by warps, BYTES what threads printed,
 *               u32 findings, a TEXT each: JSON of a kernel's fault (tui_probe/simgpu/executor/checks/accesses.py)
 * UNLOAD        u64 module
 *   OK          nothing
 * LINK          u32 images, a BYTES each, as given to cuLinkAddData
 *   OK          BYTES an image that can be loaded */
#ifndef TUI_PROBE_SIMGPU_PROTOCOL_H
#define TUI_PROBE_SIMGPU_PROTOCOL_H

#include <stdint.h>

enum { PROTOCOL_VERSION = 6, SOCKET_DESCRIPTOR = 3, MEMORY_DESCRIPTOR = 4 };

enum request_kind {
    REQUEST_LOAD = 1,
    REQUEST_PLACE = 2,
    REQUEST_DESCRIBE = 3,
    REQUEST_LAUNCH = 4,
    REQUEST_UNLOAD = 5,
    REQUEST_LINK = 6
};

enum reply_status {
    STATUS_OK = 0,
    STATUS_NOT_SUPPORTED = 1,   /* the simulated GPU cannot execute this */
    STATUS_NO_PTX = 2,          /* the image holds no PTX */
    STATUS_INVALID_PTX = 3,     /* the PTX cannot be read */
    STATUS_ILLEGAL_ADDRESS = 4, /* from here on: the kernel failed as it would on a GPU */
    STATUS_MISALIGNED_ADDRESS = 5,
    STATUS_TRAP = 6,
    STATUS_DEADLOCK = 7,
    STATUS_ASSERT = 8,
    STATUS_UNSUPPORTED_VERSION = 9, /* PTX of a version that is not known */
    STATUS_RUNNING = 10,            /* no reply yet: findings of a kernel that has not ended, and may never do so */
};

#endif

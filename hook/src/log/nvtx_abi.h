/* The part of NVTX's binary interface (version 3) that an injected library meets, declared here so that the
 * hook builds without its headers. */
#ifndef TUI_PROBE_NVTX_ABI_H
#define TUI_PROBE_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { NVTX_TABLE_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

/* Places of functions in the table of NVTX_MODULE_CORE. */
enum {
    NVTX_CORE_RANGE_START_EX = 4,
    NVTX_CORE_RANGE_START_A = 5,
    NVTX_CORE_RANGE_START_W = 6,
    NVTX_CORE_RANGE_END = 7,
    NVTX_CORE_RANGE_PUSH_EX = 8,
    NVTX_CORE_RANGE_PUSH_A = 9,
    NVTX_CORE_RANGE_PUSH_W = 10,
    NVTX_CORE_RANGE_POP = 11
};

/* … and of NVTX_MODULE_CORE2. */
enum {
    NVTX_CORE2_DOMAIN_RANGE_START_EX = 2,
    NVTX_CORE2_DOMAIN_RANGE_END = 3,
    NVTX_CORE2_DOMAIN_RANGE_PUSH_EX = 4,
    NVTX_CORE2_DOMAIN_RANGE_POP = 5,
    NVTX_CORE2_DOMAIN_REGISTER_STRING_A = 10,
    NVTX_CORE2_DOMAIN_REGISTER_STRING_W = 11,
    NVTX_CORE2_DOMAIN_CREATE_A = 12,
    NVTX_CORE2_DOMAIN_CREATE_W = 13,
};

enum { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_UNICODE = 2, NVTX_MESSAGE_REGISTERED = 3 };

/* The result of push and pop where no one keeps count, as without a tool. */
enum { NVTX_NO_PUSH_POP_TRACKING = -2 };

struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        const void *registered;
    } message;
};

typedef void (*nvtx_function)(void);

struct nvtx_callbacks {
    size_t size;
    int (*function_table)(int module, nvtx_function ***table, unsigned int *size);
};

typedef const void *(*nvtx_export_table)(uint32_t table);

#endif

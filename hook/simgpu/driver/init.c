/* cuInit: reads the settings, maps the device's memory, and gives a forked child no driver. */

#include <errno.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver.h"
#include "given.h"
#include "machine.h"
#include "report.h"
#include "server.h"

static const uint64_t DEFAULT_MEMORY_BYTES = UINT64_C(4) << 30;

/* Device memory begins here if the process has nothing there: then addresses of one process are free in the next one,
 * which cuMemAddressReserve can ask for. */
static void *const WANTED_ADDRESS = (void *)0x200000000000;

/* A whole number with an optional K, M or G (powers of 1024) from the environment. */
static bool read_setting(const char *name, uint64_t smallest, uint64_t largest, uint64_t *value)
{
    const char *text = given(name);
    if (!text || !*text)
        return true;
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift)
        end++;
    bool is_number = *text >= '0' && *text <= '9' && !*end && !errno && number <= UINT64_MAX >> shift;
    if (!is_number || number << shift < smallest || number << shift > largest) {
        report("%s=%s is not a number between %llu and %llu", name, text, (unsigned long long)smallest,
               (unsigned long long)largest);
        return false;
    }
    *value = number << shift;
    return true;
}

/* Maps so much of the file at a multiple of what large allocations are aligned to; NULL where that fails. */
static uint8_t *map_aligned(int file, uint64_t bytes)
{
    const uint64_t reserved = bytes + HEAP_LARGE_ALIGNMENT;
    uint8_t *start = mmap(WANTED_ADDRESS, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    const uint64_t before = (HEAP_LARGE_ALIGNMENT - (uintptr_t)start % HEAP_LARGE_ALIGNMENT) % HEAP_LARGE_ALIGNMENT;
    uint8_t *memory =
        mmap(start + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0);
    if (before)
        munmap(start, before);
    munmap(start + before + bytes, HEAP_LARGE_ALIGNMENT - before);
    if (memory != MAP_FAILED)
        return memory;
    munmap(start + before, bytes);
    return NULL;
}

static CUresult map_memory(uint64_t bytes)
{
    /* By its number: glibc has a function for this call since 2.27 only. */
    driver.memory_file = (int)syscall(SYS_memfd_create, "tui-probe-simulated-gpu", MFD_CLOEXEC);
    if (driver.memory_file >= 0 && ftruncate(driver.memory_file, (off_t)(2 * bytes)) == 0)
        driver.memory = map_aligned(driver.memory_file, 2 * bytes);
    uint64_t address = (uintptr_t)driver.memory;
    if (!driver.memory || !heap_init(&driver.device_heap, address, bytes) ||
        !heap_init(&driver.host_heap, address + bytes, bytes)) {
        report("cannot map %llu bytes of device memory: %s (TUI_PROBE_SIM_MEMORY sets the size)",
               (unsigned long long)bytes, strerror(errno));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    driver.memory_bytes = bytes;
    return CUDA_SUCCESS;
}

static void after_fork(void)
{
    if (!driver.initialized)
        return;
    driver.forked = true;
    server_forget();
}

static CUresult start_driver(void)
{
    uint64_t memory_bytes = DEFAULT_MEMORY_BYTES, sm_count = DEFAULT_SM_COUNT;
    if (!read_setting("TUI_PROBE_SIM_MEMORY", 1 << 20, UINT64_C(1) << 40, &memory_bytes) ||
        !read_setting("TUI_PROBE_SIM_SMS", 1, MAX_SM_COUNT, &sm_count)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const char *arch = given("TUI_PROBE_SIM_ARCH");
    driver.generation = generation_named(arch && *arch ? arch : "sm_80");
    if (!driver.generation) {
        report("TUI_PROBE_SIM_ARCH=%s is neither sm_80 nor sm_90", arch);
        return CUDA_ERROR_INVALID_VALUE;
    }
    memory_bytes &= ~UINT64_C(0xffff);
    driver.sm_count = (unsigned)sm_count;
    CUresult result = map_memory(memory_bytes);
    if (result)
        return result;
    if (pthread_atfork(NULL, NULL, after_fork))
        return CUDA_ERROR_OPERATING_SYSTEM;
    driver.initialized = true;
    return CUDA_SUCCESS;
}

API cuInit(unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (driver.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    driver_lock();
    return leave(driver.initialized ? CUDA_SUCCESS : start_driver());
}

API cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

/* cuGetProcAddress: the address of a function by its name and the version of the ABI that the caller was built for. */

#include <string.h>

#include "driver.h"
#include "fault_words.h"
#include "findings.h"
#include "machine.h"
#include "report.h"

enum { SYMBOL_FOUND = 0, SYMBOL_NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };
enum { LEGACY_STREAM_FORM = 1, PER_THREAD_STREAM_FORM = 2 }; /* 0: the default, the legacy stream */

typedef void entry_function(void);

struct entry_point {
    const char *name;
    int version; /* of CUDA, in which this form of the function appeared */
    entry_function *address, *per_thread_address;
};

/* Names of the table's own for the exported functions: only their addresses are used, so their types are not
 * declared. */
#define ENTRY(name, version, symbol, thread_symbol)             \
    extern entry_function address_of_##symbol __asm__(#symbol); \
    extern entry_function address_of_##thread_symbol __asm__(#thread_symbol);
#include "entry_points.def"
#undef ENTRY

/* Of one name, the oldest form first. */
static const struct entry_point entry_points[] = {
#define ENTRY(name, version, symbol, thread_symbol) {#name, version, address_of_##symbol, address_of_##thread_symbol},
#include "entry_points.def"
#undef ENTRY
};

enum { ENTRY_POINT_COUNT = sizeof entry_points / sizeof *entry_points };

static int find(const char *name, int version, uint64_t flags, entry_function **address)
{
    int status = SYMBOL_NOT_FOUND;
    for (size_t i = 0; i < ENTRY_POINT_COUNT; i++) {
        const struct entry_point *entry = &entry_points[i];
        if (strcmp(entry->name, name) != 0)
            continue;
        if (entry->version > version)
            return status == SYMBOL_FOUND ? status : VERSION_NOT_SUFFICIENT;
        *address = flags == PER_THREAD_STREAM_FORM ? entry->per_thread_address : entry->address;
        status = SYMBOL_FOUND;
    }
    return status;
}

static CUresult look_up(const char *name, void **address, int version, uint64_t flags, int *status)
{
    if (!name || !address || flags > PER_THREAD_STREAM_FORM)
        return CUDA_ERROR_INVALID_VALUE;
    if (version > DRIVER_VERSION)
        return CUDA_ERROR_INVALID_VALUE;
    entry_function *function = NULL;
    *status = find(name, version, flags, &function);
    *(entry_function **)address = function;
    return CUDA_SUCCESS;
}

/* As the real one: this older form fails for an unknown name, the newer one succeeds with a NULL address and a
 * status. */
API cuGetProcAddress(const char *name, void **address, int version, uint64_t flags)
{
    int status;
    CUresult result = look_up(name, address, version, flags, &status);
    return !result && status != SYMBOL_FOUND ? CUDA_ERROR_NOT_FOUND : result;
}

API cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status)
{
    int unwanted;
    return look_up(name, address, version, flags, status ? status : &unwanted);
}

/* Of the private tables the one that no one but cudart asks for. */
static const unsigned char CUDART_TABLE[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                               0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

/* They are not part of any interface, so a cudart program cannot run here. All that it says itself is "named symbol not
 * found". */
API cuGetExportTable(const void **table, const void *id)
{
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    if ((*table = fault_words_table(id)) || (*table = findings_table(id)))
        return CUDA_SUCCESS;
    if (memcmp(id, CUDART_TABLE, sizeof CUDART_TABLE) == 0)
        report("this program uses the CUDA runtime (cudart), which needs private parts of NVIDIA's driver. Run the"
               " program on a machine with an NVIDIA GPU; or compile its kernels with nvcc -ptx and launch the kernels"
               " through the driver API (cuModuleLoad, cuLaunchKernel). See tui-probe help simulated-gpu");
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

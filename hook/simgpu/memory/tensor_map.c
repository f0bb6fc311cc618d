/* Tensor maps of tiles: the 128 bytes that a kernel gets are ours, and their fields lie as FIELDS in the executor's
 * tensor_copies.py says. Their numbers are those of tensormap.replace in PTX. */

#include <stdint.h>
#include <string.h>

#include "driver.h"
#include "report.h"

enum { DIMENSIONS = 5, LARGEST_BOX = 256, SWIZZLES = 4, FILLS = 2, INTERLEAVES = 3, ALIGNMENT = 16 };

struct tensor_map {
    uint64_t address;
    uint32_t rank; /* less one */
    uint32_t element_type;
    uint32_t interleave;
    uint32_t swizzle;
    uint32_t fill;
    uint32_t unused;
    uint64_t strides[DIMENSIONS - 1];
    uint32_t extents[DIMENSIONS];
    uint32_t box[DIMENSIONS];
    uint32_t element_strides[DIMENSIONS];
    uint32_t unused_too;
};
_Static_assert(sizeof(struct tensor_map) == 128, "as large as a CUtensorMap");

/* PTX's number of each CUtensorMapDataType: u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32.ftz, tf32,
 * tf32.ftz. */
static const uint32_t ELEMENT_TYPES[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12};

static bool fits(uint32_t rank, const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                 const uint32_t *element_strides)
{
    for (uint32_t i = 0; i < rank; i++)
        if (!extents[i] || extents[i] > UINT32_MAX || !box[i] || box[i] > LARGEST_BOX || !element_strides[i])
            return false;
    for (uint32_t i = 0; i + 1 < rank; i++)
        if (strides[i] % ALIGNMENT)
            return false;
    return true;
}

API cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *extents,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
                           int interleave, int swizzle, int promotion, int fill)
{
    (void)promotion; /* of what is read into a cache that is not simulated */
    if (!map || !rank || rank > DIMENSIONS || !address || (uintptr_t)address % ALIGNMENT || !extents || !box ||
        !element_strides || (rank > 1 && !strides) || type < 0 ||
        (size_t)type >= sizeof ELEMENT_TYPES / sizeof *ELEMENT_TYPES || interleave < 0 || interleave >= INTERLEAVES ||
        fill < 0 || fill >= FILLS || swizzle < 0 || !fits(rank, extents, strides, box, element_strides))
        return CUDA_ERROR_INVALID_VALUE;
    if (interleave || fill || swizzle >= SWIZZLES) {
        report("cuTensorMapEncodeTiled: tensor maps with interleaved layout, NaN fill, or swizzles of larger atoms are"
               " not simulated. See tui-probe help simulated-gpu");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    struct tensor_map made = {
        .address = (uintptr_t)address,
        .rank = rank - 1,
        .element_type = ELEMENT_TYPES[type],
        .swizzle = (uint32_t)swizzle,
    };
    for (uint32_t i = 0; i < rank; i++) {
        made.extents[i] = (uint32_t)extents[i];
        made.box[i] = box[i];
        made.element_strides[i] = element_strides[i];
        if (i + 1 < rank)
            made.strides[i] = strides[i];
    }
    memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}

API cuTensorMapReplaceAddress(void *map, void *address)
{
    if (!map || !address || (uintptr_t)address % ALIGNMENT)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t value = (uintptr_t)address;
    memcpy((char *)map + offsetof(struct tensor_map, address), &value, sizeof value);
    return CUDA_SUCCESS;
}

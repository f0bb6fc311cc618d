#include "machine.h"

#include <stddef.h>
#include <string.h>

static const struct generation generations[] = {
    {.name = "sm_80", .major = 8, .minor = 0, .sm_shared_bytes = 164 * 1024, .block_shared_bytes = 163 * 1024},
    {.name = "sm_90",
     .major = 9,
     .minor = 0,
     .sm_shared_bytes = 228 * 1024,
     .block_shared_bytes = 227 * 1024,
     .has_clusters = true},
};

const struct generation *generation_named(const char *name)
{
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
        if (strcmp(generations[i].name, name) == 0)
            return &generations[i];
    }
    return NULL;
}

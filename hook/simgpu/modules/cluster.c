#include "cluster.h"

#include "machine.h"

void cluster_of_config(const CUlaunchConfig *config, unsigned cluster[3])
{
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const struct CUlaunchAttribute *attribute = &config->attributes[i];
        if (attribute->id != LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            continue;
        cluster[0] = attribute->value.cluster.x;
        cluster[1] = attribute->value.cluster.y;
        cluster[2] = attribute->value.cluster.z;
    }
}

unsigned cluster_limit(const struct kernel *kernel)
{
    if (!driver.generation->has_clusters)
        return 1;
    return kernel->non_portable_cluster ? CLUSTER_MAX_BLOCKS_NON_PORTABLE : CLUSTER_MAX_BLOCKS;
}

bool cluster_is_valid(const struct kernel *kernel, const unsigned cluster[3], const unsigned grid[3])
{
    uint64_t blocks = 1;
    if (!cluster[0] && !cluster[1] && !cluster[2])
        return true;
    for (int i = 0; i < 3; i++) {
        if (!cluster[i] || grid[i] % cluster[i])
            return false;
        blocks *= cluster[i];
    }
    return blocks <= cluster_limit(kernel);
}

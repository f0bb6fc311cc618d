#include "graph_captured.h"

#include <pthread.h>
#include <stdlib.h>

#include "handle_table.h"
#include "real.h"

/* A node's record is used again where the driver uses its handle again. */
struct captured {
    const struct kernel *kernel;
    uint64_t number;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct handle_table by_node;

static void put(CUgraphNode node, const struct kernel *kernel, uint64_t number)
{
    pthread_mutex_lock(&mutex);
    struct captured *captured = handle_table_get(&by_node, node);
    if (!captured && (captured = calloc(1, sizeof *captured)) && !handle_table_put(&by_node, node, captured)) {
        free(captured);
        captured = NULL;
    }
    if (captured) {
        captured->kernel = kernel;
        captured->number = number;
    }
    pthread_mutex_unlock(&mutex);
}

void graph_captured_note(CUstream stream, const struct kernel *kernel, uint64_t number)
{
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t id;
    CUgraph graph;
    const CUgraphNode *nodes = NULL;
    size_t n = 0;
    if (REAL_OR_NOT_FOUND(cuStreamGetCaptureInfo_v2, stream, &status, &id, &graph, &nodes, &n) == CUDA_SUCCESS &&
        status == CU_STREAM_CAPTURE_STATUS_ACTIVE && n == 1 && nodes)
        put(nodes[0], kernel, number);
}

int64_t graph_captured_number(CUgraphNode node, const struct kernel *kernel)
{
    pthread_mutex_lock(&mutex);
    const struct captured *captured = handle_table_get(&by_node, node);
    const int64_t number = captured && captured->kernel == kernel ? (int64_t)captured->number : GRAPH_NOT_CAPTURED;
    pthread_mutex_unlock(&mutex);
    return number;
}

void graph_captured_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}

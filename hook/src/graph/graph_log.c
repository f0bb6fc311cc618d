#define _GNU_SOURCE
#include "graph_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "event_log.h"
#include "graph_captured.h"
#include "hook_state.h"
#include "launch_log.h"
#include "log_file.h"
#include "signals.h"

typedef unsigned long long ull;

/* A program may replay a graph every few microseconds: replays that are not probed share a line per 100 ms. */
enum { TELL_NS = 100000000 };

/* Text that grows; nothing more is added once there is no memory. */
struct text {
    char *bytes;
    size_t used, capacity;
};

static void put(struct text *text, const char *before, ull value)
{
    if (text->used + 32 > text->capacity) {
        const size_t larger = 2 * text->capacity + 64;
        char *moved = realloc(text->bytes, larger);
        if (!moved)
            return;
        text->bytes = moved;
        text->capacity = larger;
    }
    text->used += (size_t)sprintf(text->bytes + text->used, "%s%llu", before, value);
}

static const char *text_or(const struct text *text, const char *otherwise)
{
    return text->used ? text->bytes : otherwise;
}

static void log_kernel_node(const struct graph_node *node, uint32_t id, size_t index, const char *parent,
                            const char *after)
{
    const struct launch *l = &node->launch;
    char captured[24] = "-";
    if (node->captured != GRAPH_NOT_CAPTURED)
        snprintf(captured, sizeof captured, "%llu", (ull)node->captured);
    log_file_append(
        "[node] %u %zu kernel in %s after %s kernel %u grid %u %u %u block %u %u %u shared %u captured %s\n", id, index,
        parent, after, node->kernel->index, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
        l->shared, captured);
}

static void log_node(const struct executable *executable, size_t index)
{
    const struct graph_node *node = &executable->graph->nodes[index];
    struct text after = {0}, parent = {0};
    for (uint32_t i = 0; i < node->n_before; i++)
        put(&after, after.used ? "," : "", node->before[i]);
    if (node->parent != GRAPH_TOP)
        put(&parent, "", node->parent);
    const char *in = text_or(&parent, "-"), *behind = text_or(&after, "-");
    if (node->type == CU_GRAPH_NODE_KERNEL)
        log_kernel_node(node, executable->id, index, in, behind);
    else
        log_file_append("[node] %u %zu %s in %s after %s bytes %llu\n", executable->id, index,
                        graph_type_name(node->type), in, behind, (ull)node->bytes);
    free(after.bytes);
    free(parent.bytes);
}

/* All lines at the same time, since graphs may have thousands of nodes. */
void graph_log_nodes(const struct executable *executable)
{
    const struct graph *graph = executable->graph;
    if (!hook_active())
        return;
    if (!control_log_is_open()) {
        event_log_drop("[graph]");
        return;
    }
    signals_hold();
    log_file_lock();
    launch_log_drain();
    log_file_append("[graph] %u executable %p nodes %zu kernels %zu flags %llu replays %llu\n", executable->id,
                    (void *)executable->handle, graph ? graph->n_nodes : 0, graph ? graph->n_kernels : 0,
                    executable->flags, (ull)atomic_load(&executable->replays));
    for (size_t i = 0; graph && i < graph->n_nodes; i++)
        log_node(executable, i);
    log_file_write();
    log_file_unlock();
    signals_release();
}

void graph_log_all_replays(struct executable *executable)
{
    const uint64_t replays = atomic_load(&executable->replays);
    if (replays == executable->logged)
        return;
    event_log_summary("[graph] %u replayed %llu\n", executable->id, (ull)(replays - executable->logged));
    executable->logged = replays;
}

void graph_log_replays(struct executable *executable)
{
    const uint64_t now = clock_coarse();
    if (now - executable->logged_at < TELL_NS)
        return;
    graph_log_all_replays(executable);
    executable->logged_at = now;
}

static void put_kernels(struct text *text, struct graph_node *const *probed, size_t n)
{
    for (size_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && probed[i + same]->kernel == probed[i]->kernel; same++)
            ;
        put(text, text->used ? "," : "", probed[i]->kernel->index);
        put(text, "x", same);
    }
}

void graph_log_probed(struct executable *executable, uint64_t replay, uint64_t first, uint64_t time,
                      struct graph_node *const *probed, size_t n)
{
    struct text kernels = {0};
    put_kernels(&kernels, probed, n);
    event_log("[graph] %u replay %llu time %llu launch %llu count %zu probed %s\n", executable->id, (ull)replay,
              (ull)time, (ull)first, executable->graph->n_kernels, text_or(&kernels, "-"));
    executable->logged++;
    executable->passed = NULL;
    free(kernels.bytes);
}

void graph_log_passed(struct executable *executable, const struct reason *reason)
{
    if (executable->passed == reason)
        return;
    executable->passed = reason;
    event_log_often("[graph] %u passed reason %s\n", executable->id, reason->written);
}

void graph_log_destroyed(struct executable *executable)
{
    graph_log_all_replays(executable);
    event_log_often("[graph] %u destroyed\n", executable->id);
}

static void tell(struct executable *executable, const void *unused)
{
    (void)unused;
    graph_log_all_replays(executable);
}

void graph_log_end(void)
{
    executables_each(tell, NULL);
}

#include "graph_clock.h"

#include <stdlib.h>

#include "drain_wake.h"
#include "real.h"
#include "settings.h"
#include "timers.h"

enum { MOST_KERNELS = 1024, MOST_ORIGINALS = 3 };

struct graph_clock {
    struct event_pair *kernels; /* as the graph numbers them; without events where none can be */
    struct timed_node *timed;   /* those of the last replay */
    size_t n_timed;             /* 0: all times are read */
    CUevent *events;            /* all that were made */
    size_t n_events;
    bool is_original;           /* that had no probe */
    uint64_t originals, probed; /* replays without any probe, and with some */
    uint64_t counted;           /* replays that times of originals stand for */
};

/* The event behind a kernel. */
struct behind {
    CUgraphNode node; /* NULL: not a kernel, or in a child graph */
    CUevent event;
};

/* A clock that is being made. */
struct making {
    const struct executable *executable;
    struct graph_clock *clock;
    struct behind *behind; /* by the numbers of the graph's nodes */
};

static bool add_event(const struct making *making, const CUgraphNode *after, size_t n, struct behind *made)
{
    if (REAL_OR_NOT_FOUND(cuEventCreate, &made->event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
        return false;
    making->clock->events[making->clock->n_events++] = made->event;
    return REAL_OR_NOT_FOUND(cuGraphAddEventRecordNode, &made->node, making->executable->clone, after, n,
                             made->event) == CUDA_SUCCESS;
}

static bool add_edge(const struct making *making, CUgraphNode from, CUgraphNode to)
{
    return REAL_OR_NOT_FOUND(cuGraphAddDependencies, making->executable->clone, &from, &to, 1) == CUDA_SUCCESS;
}

static bool add_ends(const struct making *making)
{
    const struct graph *graph = making->executable->graph;
    for (size_t i = 0; i < graph->n_kernels; i++) {
        const uint32_t index = graph->kernels[i];
        const struct graph_node *node = &graph->nodes[index];
        if (node->parent != GRAPH_TOP)
            continue;
        if (!add_event(making, &node->probed_copy, 1, &making->behind[index]))
            return false;
        making->clock->kernels[i].end = making->behind[index].event;
    }
    return true;
}

/* Nodes that wait for a kernel wait for the event behind it, which shows no later work then. */
static bool hold_back(const struct making *making)
{
    const struct graph *graph = making->executable->graph;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].n_before; k++) {
            CUgraphNode from = making->behind[graph->nodes[i].before[k]].node;
            if (from && !add_edge(making, from, graph->nodes[i].probed_copy))
                return false;
        }
    return true;
}

/* An event of its own before a kernel, behind all that it waits for. */
static bool add_start(const struct making *making, const struct graph_node *node, CUevent *start)
{
    CUgraphNode *after = calloc(node->n_before + 1, sizeof(CUgraphNode));
    struct behind made = {0};
    for (uint32_t k = 0; after && k < node->n_before; k++) {
        const uint32_t before = node->before[k];
        after[k] = making->behind[before].node ? making->behind[before].node
                                               : making->executable->graph->nodes[before].probed_copy;
    }
    const bool done =
        after && add_event(making, after, node->n_before, &made) && add_edge(making, made.node, node->probed_copy);
    free(after);
    *start = made.event;
    return done;
}

/* In a chain the event behind one kernel is before the next. */
static bool add_starts(const struct making *making)
{
    const struct graph *graph = making->executable->graph;
    for (size_t i = 0; i < graph->n_kernels; i++) {
        const struct graph_node *node = &graph->nodes[graph->kernels[i]];
        struct event_pair *pair = &making->clock->kernels[i];
        if (!pair->end)
            continue;
        if (node->n_before == 1 && making->behind[node->before[0]].node)
            pair->start = making->behind[node->before[0]].event;
        else if (!add_start(making, node, &pair->start))
            return false;
    }
    return true;
}

static bool add_events(const struct executable *executable, struct graph_clock *clock)
{
    const size_t n = executable->graph->n_kernels;
    struct making making = {executable, clock, calloc(executable->graph->n_nodes, sizeof *making.behind)};
    clock->kernels = calloc(n, sizeof *clock->kernels);
    clock->timed = calloc(n, sizeof *clock->timed);
    clock->events = calloc(2 * n, sizeof *clock->events);
    const bool done = making.behind && clock->kernels && clock->timed && clock->events && add_ends(&making) &&
                      hold_back(&making) && add_starts(&making);
    free(making.behind);
    return done;
}

static void destroy(struct graph_clock *clock)
{
    for (size_t i = 0; i < clock->n_events; i++)
        REAL_OR_NOT_FOUND(cuEventDestroy_v2, clock->events[i]);
    free(clock->kernels);
    free(clock->timed);
    free(clock->events);
    free(clock);
}

bool graph_clock_make(const struct executable *executable, struct graph_clock **clock)
{
    const struct graph *graph = executable->graph;
    *clock = NULL;
    if (!settings.node_times || graph->n_kernels > MOST_KERNELS || graph->programmatic)
        return true;
    struct graph_clock *made = calloc(1, sizeof *made);
    if (made && !add_events(executable, made)) {
        destroy(made);
        return false;
    }
    *clock = made;
    return true;
}

static void forget_times(struct graph_clock *clock)
{
    if (clock->n_timed)
        timers_expect(-1);
    clock->n_timed = 0;
}

void graph_clock_forget(struct executable *executable)
{
    if (executable->clock)
        executable->clock->n_events = 0;
    graph_clock_drop(executable);
}

void graph_clock_drop(struct executable *executable)
{
    if (!executable->clock)
        return;
    forget_times(executable->clock);
    destroy(executable->clock);
    executable->clock = NULL;
}

/* The first ones alternate with those that are recorded: of a short run there are records, too. Where all launches are
 * asked for, or some by their number, none is without. */
bool graph_clock_wants_originals(const struct executable *executable)
{
    const struct graph_clock *clock = executable->clock;
    return clock && settings.scheduled && clock->originals < MOST_ORIGINALS && clock->probed > clock->originals;
}

bool graph_clock_is_unread(const struct executable *executable)
{
    return executable->clock && executable->clock->n_timed && executable->clock->is_original;
}

/* Chooses the kernels to time in a replay that stands for WEIGHT replays. */
static void note(const struct executable *executable, uint64_t first, uint64_t weight)
{
    struct graph_clock *clock = executable->clock;
    for (size_t i = 0; i < executable->graph->n_kernels; i++) {
        const struct graph_node *node = &executable->graph->nodes[executable->graph->kernels[i]];
        if (!clock->kernels[i].end || node->disabled)
            continue;
        clock->timed[clock->n_timed++] = (struct timed_node){
            .events = clock->kernels[i],
            .launch = {.group = node->group, .number = first + i, .weight = weight},
            .probed = node->taken,
        };
    }
}

void graph_clock_replayed(struct executable *executable, const struct replay *replay, bool probed)
{
    struct graph_clock *clock = executable->clock;
    if (!clock)
        return;
    forget_times(clock);
    note(executable, replay->first, probed ? 1 : replay->n + 1 - clock->counted);
    clock->counted = probed ? clock->counted : replay->n + 1;
    *(probed ? &clock->probed : &clock->originals) += 1;
    clock->is_original = !probed;
    if (!clock->n_timed)
        return;
    timers_expect(1);
    drain_expect();
}

void graph_clock_read(struct executable *executable)
{
    struct graph_clock *clock = executable->clock;
    if (!clock || !clock->n_timed || REAL_OR_NOT_FOUND(cuCtxSetCurrent, executable->context) != CUDA_SUCCESS)
        return;
    const CUresult done = REAL_OR_NOT_FOUND(cuEventQuery, executable->event);
    if (done != CUDA_ERROR_NOT_READY && (done != CUDA_SUCCESS || timers_tell(clock->timed, clock->n_timed)))
        forget_times(clock);
}

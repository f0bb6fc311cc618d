/* Device memory for the records of probed launches.
 *
 * A launch takes a piece of a chunk that was cleared in bulk, so that it costs no call to the driver
 * but the launch itself. A full, idle or old chunk is sealed: an event on each stream that used it tells
 * when its launches are done, a hook thread (drain.h) copies it back, clears it and returns it.
 * One lock guards all of it; it is held for a few instructions on the path of a launch. */
#ifndef TUI_PROBE_BUFFERS_H
#define TUI_PROBE_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "launch.h"

/* The low bits of an aligned address carry the warps per block of a flat launch (engine/addressing.py). A chunk is
 * copied back once it was idle for 50 ms, or is 250 ms old in a program that never pauses, so that results appear while
 * the program runs. */
enum { BUFFER_ALIGNMENT = 256, IDLE_MILLISECONDS = 50, OLD_MILLISECONDS = 250 };

/* The records of one probe of a probed launch, until its result is written. */
struct piece {
    uint64_t stamp;  /* microseconds since the zero of the trace, unique: the result's name */
    uint64_t number; /* of the launch */
    struct kernel_probe *probe;
    const struct capacities *capacities;
    struct shape_group *group; /* of the launch; NULL: no launch follows from this one */
    size_t offset;
    uint32_t grid[3], block[3], shared;
    bool void_launch; /* the probed launch failed: nothing to save */
    bool continues;   /* of the launch of the piece before it, which had a fused probe */
};

/* A stream with launches in a chunk. */
struct stream_use {
    CUstream stream;
    uintptr_t thread; /* whose per-thread stream it is; 0 for any other stream */
    CUevent event;
    bool recorded;
};

struct chunk {
    struct chunk *next;
    struct pool *pool;
    CUdeviceptr memory;
    uint8_t *host; /* the same memory, where it is host memory that outlives an error of the context; else NULL */
    size_t capacity, used;
    struct piece *pieces;
    size_t n_pieces, pieces_capacity;
    struct stream_use *uses;
    size_t n_uses, uses_capacity;
    uint8_t *staging;   /* of its pool, to be freed with it */
    unsigned in_flight; /* pieces taken whose launch has not returned */
    bool sealed;
    uint64_t serial;  /* in order of sealing */
    uint64_t begun;   /* time of the first launch */
    uint64_t touched; /* and of the last one */
};

/* The chunks of one context. */
struct pool {
    struct pool *next;
    CUcontext context; /* NULL once it is gone */
    bool leaving;      /* the context may be about to go: its handle may soon stand for another */
    const struct reason *fault; /* why nothing can be probed here any more; NULL if it can */
    struct chunk *current; /* where pieces are taken from */
    struct chunk *ready;   /* cleared */
    size_t allocated, limit;
    size_t most; /* that one launch may take */
    unsigned busy; /* chunks sealed and not yet returned */
    bool starved;  /* a launch has waited without success since the last return */
    bool wanting;  /* the current chunk fills up and none is ready */
    CUstream stream; /* for copies and clears: does not wait for the program's streams */
    CUevent event;
    CUdeviceptr resident; /* the table of resident maps; 0: there is none yet */
    size_t resident_size;
    CUdeviceptr allocations, allocations_table; /* the ring of tables of allocations, and the last one in it */
    size_t allocations_at;
    uint64_t allocations_version; /* of the last table; 0: none, or it has variables of one kernel */
    uint8_t *staging; /* pinned */
    size_t staging_size;
};

void buffers_lock(void);
void buffers_unlock(void);

/* The pool of a context, which must be current; made on first use. NULL if the driver refuses. */
struct pool *buffers_pool(CUcontext context);

/* The part of a chunk that a launch under way holds. */
struct claim {
    struct chunk *chunk;
    size_t piece, n_pieces; /* the first, and how many: one for each part of a fused probe */
    CUdeviceptr memory;
};

/* Takes SIZE bytes for LAUNCH. On failure returns NULL and why. */
struct chunk *buffers_take(struct pool *pool, const struct launch *launch, struct kernel_probe *probe, size_t size,
                           struct claim *claim, const struct reason **reason);

/* To be called once the launch has returned. */
void buffers_launched(struct chunk *chunk, const struct claim *claim, const struct launch *launch, CUresult result);

/* True if records wait for launches under way, which other threads make. Takes no lock. */
bool buffers_wait_for_launches(void);

/* The claim of the calling thread, for a handler of a signal that ends the process in the middle of a launch; NULL if
 * that is nothing. */
struct claim *buffers_own_claim(void);

/* Its launch will never return: what it holds is not waited for. The lock is held; CLAIM may be NULL. */
void buffers_leave_claim(const struct claim *claim);

/* Before a stream is destroyed: what it did for us is marked by an event now. */
void buffers_leave_stream(CUstream stream);

/* The same before a stream is captured, when it can take no event; the lock is held. */
void buffers_mark_stream(CUstream stream);

/* CONTEXT may be about to go: its handle leads to its pool no longer. */
void buffers_leave(CUcontext context);

/* It is GONE, and its pool with it; or it is not, and has its pool again. */
void buffers_settle(CUcontext context, bool gone);

/* Seals what CONTEXT has in use, or with NULL every context. */
void buffers_seal(CUcontext context);

/* True if chunks of CONTEXT, or with NULL of any, are sealed and not yet drained; but for one that the calling thread
 * launches into. */
bool buffers_draining(CUcontext context);

/* The program got no memory: until buffers_relieve no launch takes any. Calls of several threads add up. */
void buffers_press(void);
void buffers_relieve(void);

/* For the draining thread; the lock is held. Chunks are numbered in the order they are sealed. */
void buffers_seal_waiting(uint64_t now); /* idle chunks, and old ones if another is ready: launches never wait for it */
uint64_t buffers_seal_all(void);
void buffers_grow_ahead(void); /* readies a chunk where one will soon be asked for; releases the lock meanwhile */
void buffers_return(struct chunk *chunk);
struct chunk *buffers_take_unused(void); /* all that no launch has taken, to be freed without the lock */
bool buffers_pending(void); /* there are launches to be saved */

/* True if the context of a chunk that is being drained stays for now. The lock is not held. */
bool buffers_may_copy(const struct chunk *chunk);

/* The pools with a table of resident maps, at most MOST of them; returns how many. */
size_t buffers_resident_pools(struct pool **list, size_t most);

void buffers_reset(void);

#endif

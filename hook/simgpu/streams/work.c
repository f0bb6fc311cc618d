#include "work.h"

const struct work_kind empty_work = {.type = NODE_EMPTY};
const struct work_kind event_wait_work = {.type = NODE_EVENT_WAIT};
const struct work_kind memory_work = {.type = NODE_MEMORY};
const struct work_kind memory_free_work = {.type = NODE_MEMORY_FREE};

bool work_copy(struct work *to, const struct work *from)
{
    *to = *from;
    return !to->kind->own || to->kind->own(to);
}

void work_free(struct work *work)
{
    if (work->kind->release)
        work->kind->release(work);
}

CUresult work_run(const struct work *work)
{
    return work->kind->run ? work->kind->run(work) : CUDA_SUCCESS;
}

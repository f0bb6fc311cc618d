/* Each thread's stack of current contexts, and how an exported function that needs one begins. */

#include "current.h"

#include "server.h"

enum { STACK_DEPTH = 128 };

/* Handles rather than pointers: a context may be destroyed while another thread has it current. */
static _Thread_local CUcontext stack[STACK_DEPTH];
static _Thread_local unsigned depth;

CUresult current_context(struct context **context)
{
    if (depth == 0 || !stack[depth - 1])
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = handle_object(HANDLE_CONTEXT, stack[depth - 1]);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_push(CUcontext handle)
{
    if (depth == STACK_DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = handle;
    return CUDA_SUCCESS;
}

bool context_pop(CUcontext *handle)
{
    if (depth == 0)
        return false;
    depth--;
    if (handle)
        *handle = stack[depth];
    return true;
}

CUcontext context_top(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult enter(struct context **context)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    result = current_context(context);
    if (!result)
        result = (*context)->fault;
    if (!result)
        result = server_failure();
    return result ? leave(result) : CUDA_SUCCESS;
}

/* cuLink…: what a program adds is kept, and the server makes one image of PTX of it. Such an image is used instead
 * of the machine code that the real driver would give: it is loaded in the same way. */

#include <stdlib.h>
#include <string.h>

#include "current.h"
#include "image.h"
#include "jit_options.h"
#include "report.h"
#include "server.h"

struct link {
    struct link *next;
    struct message images;
    uint32_t count;
    unsigned option_count;
    int *options;
    void **values; /* the program's: it reads them after cuLinkComplete */
    uint8_t *linked;
};

/* A program may destroy a state twice, or one that is none. */
static struct link *links;

static struct link **find_link(const void *state)
{
    struct link **link = &links;
    while (*link && *link != state)
        link = &(*link)->next;
    return link;
}

API cuLinkCreate_v2(unsigned count, int *options, void **values, void **state)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!state || (count && (!options || !values)))
        return leave(CUDA_ERROR_INVALID_VALUE);
    struct link *link = calloc(1, sizeof *link);
    int *option_codes = calloc(count + 1, sizeof *option_codes);
    if (!link || !option_codes) {
        free(link);
        free(option_codes);
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    memcpy(option_codes, options ? options : option_codes, count * sizeof *option_codes);
    *link = (struct link){.next = links, .option_count = count, .options = option_codes, .values = values};
    links = link;
    *state = link;
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuLinkCreate, cuLinkCreate_v2);

static CUresult add(void *state, const void *image, size_t bytes)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    struct link *link = *find_link(state);
    if (!link)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!image || !bytes || link->linked)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (bytes > UINT32_MAX)
        return leave(CUDA_ERROR_INVALID_IMAGE);
    message_put_bytes(&link->images, image, bytes);
    link->count++;
    return leave(link->images.failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

API cuLinkAddData_v2(void *state, int type, void *image, size_t bytes, const char *name, unsigned count, int *options,
                     void **values)
{
    (void)type, (void)name; /* an image tells itself what it is */
    (void)count, (void)options, (void)values;
    return add(state, image, bytes);
}
SAME_AS(cuLinkAddData, cuLinkAddData_v2);

API cuLinkAddFile_v2(void *state, int type, const char *path, unsigned count, int *options, void **values)
{
    void *image;
    size_t bytes;
    (void)type, (void)count, (void)options, (void)values;
    CUresult result = image_read_file(path, &image, &bytes);
    if (result)
        return result;
    result = add(state, image, bytes);
    free(image);
    return result;
}
SAME_AS(cuLinkAddFile, cuLinkAddFile_v2);

/* Takes the linked image out of the server's reply. */
static CUresult take_image(struct link *link, struct reader *body, size_t *bytes)
{
    const uint8_t *image = reader_bytes(body, bytes);
    link->linked = image ? malloc(*bytes + 1) : NULL;
    if (!link->linked)
        return image ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_LAUNCH_FAILED;
    memcpy(link->linked, image, *bytes);
    return CUDA_SUCCESS;
}

static CUresult request_link(struct link *link, struct reply *reply)
{
    CUresult result = server_start();
    if (result)
        return result;
    struct message request = {0};
    message_put_u32(&request, link->count);
    message_put(&request, link->images.bytes, link->images.length);
    result = server_call(REQUEST_LINK, &request, reply);
    message_free(&request);
    return result;
}

API cuLinkComplete(void *state, void **image, size_t *bytes)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    struct link *link = *find_link(state);
    if (!link)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!image || link->linked || !link->count)
        return leave(CUDA_ERROR_INVALID_VALUE);
    struct reply reply = {0};
    size_t length = 0;
    result = request_link(link, &reply);
    if (!result)
        result = take_image(link, &reply.body, &length);
    if (reply.error)
        report("linking: %s", reply.error);
    give_jit_log(link->option_count, link->options, link->values, reply.error);
    reply_free(&reply);
    *image = link->linked;
    if (bytes)
        *bytes = length;
    return leave(result);
}

API cuLinkDestroy(void *state)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    struct link **at = find_link(state), *link = *at;
    if (!link)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    *at = link->next;
    message_free(&link->images);
    free(link->options);
    free(link->linked);
    free(link);
    return leave(CUDA_SUCCESS);
}

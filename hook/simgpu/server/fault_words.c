#include "fault_words.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

static char last[512];
static atomic_bool is_deadlock;

void fault_words_keep(const char *kernel, const char *words, bool deadlock)
{
    atomic_store(&is_deadlock, deadlock);
    driver_lock();
    snprintf(last, sizeof last, "%s: %s", kernel, words);
    for (char *end = last; (end = strpbrk(end, "\r\n"));)
        *end = ' ';
    leave(CUDA_SUCCESS);
}

static void copy_words(char *text, size_t size)
{
    driver_lock();
    snprintf(text, size, "%s", last);
    leave(CUDA_SUCCESS);
}

static int ask_deadlock(void)
{
    return atomic_load(&is_deadlock);
}

/* Device memory is mapped into the process, at its own addresses. */
static void copy_memory(void *to, uint64_t address, size_t size)
{
    memcpy(to, (const void *)(uintptr_t)address, size);
}

const void *fault_words_table(const void *id)
{
    static const unsigned char NAME[16] = "tui-probe fault"; /* hook/src/log/simulated_fault.c asks for it */
    static const struct {
        size_t size;
        void (*copy_words)(char *text, size_t size);
        int (*ask_deadlock)(void);
        void (*copy_memory)(void *to, uint64_t address, size_t size);
    } table = {sizeof table, copy_words, ask_deadlock, copy_memory};
    return memcmp(id, NAME, sizeof NAME) == 0 ? &table : NULL;
}

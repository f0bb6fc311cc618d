#include "simulated_fault.h"

#include <stdatomic.h>
#include <string.h>

#include "event_log.h"
#include "real.h"
#include "settings.h"

enum { FINDING_BYTES = 2048 };

struct fault_table {
    size_t size;
    void (*copy_words)(char *text, size_t size);
    int (*ask_deadlock)(void);
    void (*copy_memory)(void *to, uint64_t address, size_t size);
};

/* NULL for other drivers. */
static const struct fault_table *fault_table(void)
{
    static const unsigned char NAME[16] = "tui-probe fault"; /* hook/simgpu/server/fault_words.c has the table */
    const struct fault_table *table = NULL;
    CUresult result = REAL_OR_NOT_FOUND(cuGetExportTable, (const void **)&table, NAME);
    return result == CUDA_SUCCESS && table && table->size >= sizeof *table ? table : NULL;
}

void simulated_fault_words(char *text, size_t size)
{
    const struct fault_table *table = fault_table();
    text[0] = '\0';
    if (table)
        table->copy_words(text, size);
}

bool simulated_deadlock(void)
{
    static atomic_int is_simulated = -1; /* asked once: a real driver need not be asked at each launch */
    if (atomic_load_explicit(&is_simulated, memory_order_relaxed) < 0)
        atomic_store(&is_simulated, fault_table() != NULL);
    const struct fault_table *table = atomic_load(&is_simulated) ? fault_table() : NULL;
    return table && table->ask_deadlock();
}

bool simulated_memory(void *to, uint64_t address, size_t size)
{
    const struct fault_table *table = fault_table();
    if (table)
        table->copy_memory(to, address, size);
    return table;
}

struct findings_table {
    size_t size;
    void (*take)(char *text, size_t size);
    void (*take_running)(char *text, size_t size);
};

/* NULL for other drivers, and without checks. */
static const struct findings_table *findings_table(void)
{
    static const unsigned char NAME[16] = "tui-probe check"; /* hook/simgpu/server/findings.c has the table */
    const struct findings_table *table = NULL;
    if (!settings.simulated_checks)
        return NULL;
    CUresult result = REAL_OR_NOT_FOUND(cuGetExportTable, (const void **)&table, NAME);
    return result == CUDA_SUCCESS && table && table->size >= sizeof *table ? table : NULL;
}

/* A finding is a JSON object that begins with the name of its kernel; other threads may have launched others. */
static bool is_of(const char *finding, const char *kernel)
{
    static const char BEGIN[] = "{\"kernel\":\"";
    const size_t begin = sizeof BEGIN - 1, length = strlen(kernel);
    return strncmp(finding, BEGIN, begin) == 0 && strncmp(finding + begin, kernel, length) == 0 &&
           finding[begin + length] == '"';
}

static void log_all(void (*take)(char *text, size_t size), const char *kernel, uint64_t launch)
{
    char text[FINDING_BYTES];
    for (take(text, sizeof text); text[0]; take(text, sizeof text))
        if (kernel && is_of(text, kernel))
            event_log_summary("[sanitizer] {\"launch\":%llu,%s\n", (unsigned long long)launch, text + 1);
        else
            event_log_summary("[sanitizer] %s\n", text);
}

void simulated_findings_log(const char *kernel, uint64_t launch)
{
    const struct findings_table *table = findings_table();
    if (table)
        log_all(table->take, kernel, launch);
}

void simulated_findings_log_running(const char *kernel, uint64_t launch)
{
    const struct findings_table *table = findings_table();
    if (table)
        log_all(table->take_running, kernel, launch);
}

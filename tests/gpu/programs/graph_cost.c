// What the host pays to replay a captured graph, and what the device takes for it.
// usage: graph_cost KERNELS NODES REPLAYS OUTPUT -> a line per replay: host and gpu nanoseconds; memory of the process
#include "driver.h"

enum { WORDS = 1 << 16, BLOCK = 256 };

typedef void *CUgraph, *CUgraphExec;

static long resident(void) { // kilobytes
    char line[256];
    long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld", &kilobytes) == 1) break;
    if (file) fclose(file);
    return kilobytes;
}

static CUevent event(void) {
    CUevent made;
    CHECK(DRIVER(cuEventCreate, CUevent *, unsigned)(&made, 0));
    return made;
}

static CUgraphExec capture(CUfunction kernel, CUstream stream, int nodes, void **params) {
    CUgraph graph;
    CUgraphExec executable;
    CHECK(DRIVER(cuStreamBeginCapture_v2, CUstream, int)(stream, 0));
    for (int i = 0; i < nodes; i++) CHECK(launch(kernel, WORDS / BLOCK, BLOCK, stream, params, NULL));
    CHECK(DRIVER(cuStreamEndCapture, CUstream, CUgraph *)(stream, &graph));
    CHECK(DRIVER(cuGraphInstantiateWithFlags, CUgraphExec *, CUgraph, unsigned long long)(&executable, graph, 0));
    CHECK(DRIVER(cuGraphDestroy, CUgraph)(graph));
    return executable;
}

int main(int n_arguments, char **arguments) {
    if (n_arguments != 5) return 2;
    make_context();
    CUfunction kernel = function(load(arguments[1]), "shift");
    int nodes = atoi(arguments[2]), replays = atoi(arguments[3]);
    unsigned amount = 1, count = WORDS;
    CUdeviceptr memory = allocate(WORDS * 4ul);
    CHECK(DRIVER(cuMemsetD8_v2, CUdeviceptr, unsigned char, size_t)(memory, 0, WORDS * 4ul));
    void *params[] = {&memory, &amount, &count};
    CUstream stream;
    CHECK(DRIVER(cuStreamCreate, CUstream *, unsigned)(&stream, 1));
    CHECK(launch(kernel, WORDS / BLOCK, BLOCK, stream, params, NULL));
    CUgraphExec executable = capture(kernel, stream, nodes, params);
    CUresult (*replay)(CUgraphExec, CUstream) = DRIVER(cuGraphLaunch, CUgraphExec, CUstream);
    CUresult (*record)(CUevent, CUstream) = DRIVER(cuEventRecord, CUevent, CUstream);
    CUresult (*wait)(CUevent) = DRIVER(cuEventSynchronize, CUevent);
    CUresult (*elapsed)(float *, CUevent, CUevent) = DRIVER(cuEventElapsedTime, float *, CUevent, CUevent);
    CUevent begin = event(), end = event();
    FILE *output = fopen(arguments[4], "w");
    if (!output) return 2;
    for (int i = 0; i < replays; i++) {
        float milliseconds;
        CHECK(record(begin, stream));
        double start = now_seconds();
        CHECK(replay(executable, stream));
        double host = now_seconds() - start;
        CHECK(record(end, stream));
        CHECK(wait(end));
        CHECK(elapsed(&milliseconds, begin, end));
        fprintf(output, "replay %.0f %.0f\n", host * 1e9, milliseconds * 1e6);
        if (i == replays / 10 || i == replays - 1) fprintf(output, "memory %ld\n", resident());
    }
    unsigned first;
    to_host(&first, memory, sizeof first);
    fprintf(output, "word %u\n", first - 1 - (unsigned)nodes * (unsigned)replays);
    CHECK(DRIVER(cuGraphExecDestroy, CUgraphExec)(executable));
    fclose(output);
    return 0;
}

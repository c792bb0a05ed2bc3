/* Calls a library of tests/runtime/programs.py as a user's program would.
 *
 * caller wrong | caller run THREADS IN OUT: the checks of arguments, or 8 threads with a context
 * each, whose results must be equal and are written to OUT. */
#include "net.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5, K = 12, M = 32, OUT = N * M + N + N * M, RUNS = 50, CALLERS = 8 };

static float input[N * K];
static float results[CALLERS][OUT];
static int threads = 1;

static int run(char *context, float *out) {
    net_tensor in[] = {{.data = input, .shape = {N, K}}};
    net_tensor outs[] = {{.data = out, .shape = {M, N}}, /* as many elements, and more of them */
                         {.data = out + N * M, .shape = {N}},
                         {.data = out + N * M + N, .shape = {2, N * M}}};
    int status = net_run(context, in, outs, threads);
    if (status == 0 && (outs[0].shape[1] != M || outs[1].shape[0] != N))
        return -1;
    return status;
}

static size_t context_bytes(void) {
    net_tensor in[] = {{.data = NULL, .shape = {N, K}}}, outs[NET_OUTPUTS];
    size_t bytes;
    int status = net_plan(in, outs, threads, &bytes);
    if (status != NET_OK || outs[0].shape[0] != N || outs[0].shape[1] != M || outs[1].shape[0] != N)
        exit(93);
    return bytes;
}

static void *caller(void *out) {
    size_t bytes = context_bytes();
    char *memory = malloc(bytes + 2);
    long status = net_init();
    memset(memory, 0xff, bytes + 2); /* needs no initialisation, of any alignment */
    for (int k = 0; k < RUNS && status == 0; ++k) {
        memset(out, 0xff, sizeof results[0]);
        status = run(memory + 1, out);
    }
    if (status == 0 && memory[0] != (char)0xff)
        status = -2;
    if (status == 0 && memory[bytes + 1] != (char)0xff)
        status = -3; /* wrote behind the context */
    free(memory);
    return (void *)status;
}

static int expect(const char *what, int status, int wanted) {
    if (status != wanted)
        fprintf(stderr, "%s: got %d, wanted %d\n", what, status, wanted);
    return status != wanted;
}

static int wrong(void) {
    int bad = 0;
    char *context = malloc(context_bytes());
    bad += expect("before init", run(context, results[0]), NET_NOT_INITIALISED);
    bad += expect("init", net_init(), NET_OK);
    bad += expect("init again", net_init(), NET_OK);
    bad += expect("no context", run(NULL, results[0]), NET_NULL_POINTER);
    threads = 0;
    bad += expect("no thread", run(context, results[0]), NET_BAD_THREADS);
    net_tensor in[] = {{.data = input, .shape = {N, K + 1}}};
    net_tensor outs[NET_OUTPUTS] = {{.data = results[0], .shape = {N, M}},
                                    {.data = results[1], .shape = {N}},
                                    {.data = NULL, .shape = {N, M}}};
    size_t bytes;
    bad += expect("shape to plan", net_plan(in, outs, 1, &bytes), NET_WRONG_SHAPE);
    bad += expect("no bytes", net_plan(in, outs, 1, NULL), NET_NULL_POINTER);
    bad += expect("no inputs to plan", net_plan(NULL, outs, 1, &bytes), NET_NULL_POINTER);
    bad += expect("no thread to plan", net_plan(in, outs, 0, &bytes), NET_BAD_THREADS);
    bad += expect("no output", net_run(context, in, outs, 1), NET_NULL_POINTER);
    outs[2].data = results[2];
    bad += expect("shape", net_run(context, in, outs, 1), NET_WRONG_SHAPE);
    in[0].shape[1] = K;
    outs[2].shape[1] = M - 1;
    bad += expect("capacity", net_run(context, in, outs, 1), NET_TOO_SMALL);
    in[0].data = NULL;
    bad += expect("no data", net_run(context, in, outs, 1), NET_NULL_POINTER);
    bad += expect("no inputs", net_run(context, NULL, outs, 1), NET_NULL_POINTER);
    free(context);
    return bad;
}

int main(int argc, char **argv) {
    if (strcmp(argv[1], "wrong") == 0)
        return wrong();
    if (strcmp(argv[1], "init") == 0)
        return net_init();
    threads = atoi(argv[2]);
    FILE *file = fopen(argv[3], "rb");
    if (argc < 5 || file == NULL || fread(input, sizeof input, 1, file) != 1)
        return 90;
    fclose(file);
    pthread_t callers[CALLERS];
    for (int k = 0; k < CALLERS; ++k)
        pthread_create(&callers[k], NULL, caller, results[k]);
    for (int k = 0; k < CALLERS; ++k) {
        void *status;
        pthread_join(callers[k], &status);
        if (status != NULL)
            return 91;
        if (memcmp(results[0], results[k], sizeof results[0]) != 0)
            return 92;
    }
    file = fopen(argv[4], "wb");
    fwrite(results[0], sizeof results[0], 1, file);
    return fclose(file);
}

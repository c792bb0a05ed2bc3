/* Loads the library of a program "net", runs it in several threads at once, and unloads it.
 *
 * caller LIBRARY THREADS CALLERS RUNS LOADS IN OUT: per load, CALLERS threads run it RUNS times
 * with a context and outputs of their own, whose bytes must all be equal; they are written to OUT.
 * Prints resident bytes, open files and threads after a tenth of the loads, and after all.
 *
 * Inputs, outputs and contexts have exactly the bytes that they need, so that a sanitizer sees any
 * access beyond them.  Contexts are filled with rubbish and stand at odd addresses. */
#include "net.h"
#include "ports.h" /* IN_BYTES, OUT_BYTES, IN_SHAPES */

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t in_bytes[] = {IN_BYTES 0}, out_bytes[] = {OUT_BYTES 0};
static const net_tensor shaped[] = {IN_SHAPES {0}};

static int (*init)(void);
static int (*plan)(const net_tensor *, net_tensor *, int, size_t *);
static int (*run)(void *, const net_tensor *, net_tensor *, int);

static int threads, runs;
static net_tensor inputs[NET_INPUTS + 1];

static void fail(const char *what) {
    fprintf(stderr, "caller: %s\n", what);
    exit(90);
}

static void *bytes(size_t n) {
    void *memory = NULL;
    /* malloc(0) may be NULL, and elements must be aligned */
    if (posix_memalign(&memory, 64, n ? n : 1))
        fail("no memory");
    return memory;
}

typedef struct {
    pthread_t thread;
    net_tensor outputs[NET_OUTPUTS + 1];
    int status;
} caller;

static void *call(void *argument) {
    caller *me = argument;
    size_t size = 0;
    if (plan(inputs, me->outputs, threads, &size))
        fail("plan");
    char *memory = malloc(size + 1);
    memset(memory, 0xff, size + 1);
    me->status = init();
    for (int i = 0; i < NET_OUTPUTS; ++i)
        memset(me->outputs[i].data, 0xff, out_bytes[i]);
    for (int k = 0; k < runs && me->status == 0; ++k)
        me->status = run(memory + 1, inputs, me->outputs, threads);
    free(memory);
    return NULL;
}

static void find(void *library, const char *name, void *place) {
    void *found = dlsym(library, name);
    if (!found)
        fail(name);
    memcpy(place, &found, sizeof found);
}

static void use(const char *path, caller *callers, int count) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail(dlerror());
    find(library, "net_init", &init);
    find(library, "net_plan", &plan);
    find(library, "net_run", &run);
    for (int c = 0; c < count; ++c)
        if (pthread_create(&callers[c].thread, NULL, call, &callers[c]))
            fail("no thread");
    for (int c = 0; c < count; ++c) {
        pthread_join(callers[c].thread, NULL);
        if (callers[c].status) {
            fprintf(stderr, "caller: status %d\n", callers[c].status);
            exit(91);
        }
        for (int i = 0; i < NET_OUTPUTS; ++i)
            if (memcmp(callers[0].outputs[i].data, callers[c].outputs[i].data, out_bytes[i]))
                fail("the results of two contexts differ");
    }
    if (dlclose(library))
        fail(dlerror());
}

static int entries(const char *folder) {
    DIR *open = opendir(folder);
    int count = 0;
    while (open && readdir(open))
        ++count;
    if (open)
        closedir(open);
    return count;
}

static void report(int loads) {
    long pages[2] = {0, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages[0], &pages[1]) != 2)
        fail("no /proc/self/statm");
    fclose(file);
    printf("%d %ld %d %d\n", loads, pages[1] * sysconf(_SC_PAGESIZE), entries("/proc/self/fd"),
           entries("/proc/self/task"));
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc != 8)
        fail("seven arguments");
    threads = atoi(argv[2]);
    runs = atoi(argv[4]);
    int count = atoi(argv[3]), loads = atoi(argv[5]);
    FILE *in = fopen(argv[6], "rb");
    for (int i = 0; i < NET_INPUTS; ++i) {
        inputs[i] = shaped[i];
        inputs[i].data = bytes(in_bytes[i]);
        if (!in || fread(inputs[i].data, 1, in_bytes[i], in) != in_bytes[i])
            fail("no inputs");
    }
    if (in)
        fclose(in);
    caller *callers = calloc(count, sizeof *callers);
    for (int c = 0; c < count; ++c)
        for (int i = 0; i < NET_OUTPUTS; ++i)
            callers[c].outputs[i].data = bytes(out_bytes[i]);
    for (int k = 1; k <= loads; ++k) {
        use(argv[1], callers, count);
        if (k == (loads + 9) / 10 || k == loads)
            report(k);
    }
    FILE *out = fopen(argv[7], "wb");
    for (int i = 0; i < NET_OUTPUTS; ++i)
        if (!out || fwrite(callers[0].outputs[i].data, 1, out_bytes[i], out) != out_bytes[i])
            fail("cannot write the outputs");
    fclose(out);
    for (int c = 0; c < count; ++c)
        for (int i = 0; i < NET_OUTPUTS; ++i)
            free(callers[c].outputs[i].data);
    for (int i = 0; i < NET_INPUTS; ++i)
        free(inputs[i].data);
    free(callers);
    return 0;
}

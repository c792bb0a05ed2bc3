/* Runs regions of the thread team from several threads, and checks what they compute.
 *
 * team CALLERS REGIONS SEED: each caller repeats a sum of neighbours, whose pieces read plain memory
 * that other threads wrote in the region before.  Now and then it pauses until the team sleeps. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void ansorpy_team(void (*piece)(void *, int64_t, int64_t), void *data, int32_t threads);
void ansorpy_team_stop(void);

enum { CELLS = 37, THREADS = 5, CALLERS = 8 };

typedef struct {
    unsigned seed;
    uint32_t from[CELLS], to[CELLS];
} sums;

static int regions;

static unsigned drawn(sums *s) { return (s->seed = s->seed * 1664525u + 1013904223u) >> 8; }

static void piece(void *data, int64_t number, int64_t pieces) {
    sums *s = data;
    for (int64_t k = number; k < CELLS; k += pieces)
        s->to[k] = s->from[k] + s->from[(k + 1) % CELLS];
}

static void alone(sums *s) { piece(s, 0, 1); }

static void *call(void *argument) {
    sums *s = argument, check = *s;
    for (int r = 0; r < regions; ++r) {
        unsigned pause = drawn(s) % 32;
        if (pause == 0)
            usleep(drawn(s) % 60000);
        ansorpy_team(piece, s, 1 + drawn(s) % THREADS);
        alone(&check);
        if (memcmp(s->to, check.to, sizeof s->to))
            return "a region computed something else";
        memcpy(s->from, s->to, sizeof s->to);
        memcpy(check.from, check.to, sizeof check.to);
    }
    return NULL;
}

int main(int argc, char **argv) {
    static sums data[CALLERS];
    pthread_t threads[CALLERS];
    if (argc != 4)
        return 90;
    int callers = atoi(argv[1]), failed = 0;
    regions = atoi(argv[2]);
    for (int c = 0; c < callers; ++c) {
        data[c].seed = atoi(argv[3]) + c;
        for (int k = 0; k < CELLS; ++k)
            data[c].from[k] = drawn(&data[c]);
        pthread_create(&threads[c], NULL, call, &data[c]);
    }
    for (int c = 0; c < callers; ++c) {
        void *problem;
        pthread_join(threads[c], &problem);
        if (problem)
            fprintf(stderr, "team: %s\n", (char *)problem);
        failed |= problem != NULL;
    }
    ansorpy_team_stop();
    ansorpy_team(piece, &data[0], THREADS); /* runs alone */
    return failed;
}

/* One run of net.so on made-up inputs.
 *
 *   cc -O2 net_example.c -o example ./net.so -Wl,-rpath,'$ORIGIN' && ./example [threads [size0]]
 */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>

static size_t elements(const net_tensor *tensor, int rank) {
    size_t count = 1;
    for (int i = 0; i < rank; ++i)
        count *= (size_t)tensor->shape[i];
    return count;
}

static int failed(const char *what, int status) {
    fprintf(stderr, "net_%s: code %d\n", what, status);
    return 1;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    int64_t size0 = argc > 2 ? atoll(argv[2]) : 32; /* batch=1..32 */
    net_tensor inputs[NET_INPUTS + 1] = {
        {.shape = {size0, 3, 9, 9}}, /* x */
    };
    net_tensor outputs[NET_OUTPUTS];
    size_t context_bytes;

    int status = net_init();
    if (status != NET_OK)
        return failed("init", status);
    status = net_plan(inputs, outputs, threads, &context_bytes);
    if (status != NET_OK)
        return failed("plan", status);
    void *context = malloc(context_bytes);
    if (context == NULL)
        return 1;
    size_t count0 = elements(&inputs[0], 4);
    float *input0 = inputs[0].data = malloc((count0 + 1) * sizeof *input0);
    if (input0 == NULL)
        return 1;
    for (size_t i = 0; i < count0; ++i)
        input0[i] = (float)(i % 17) / 17;
    float *output0 = outputs[0].data = malloc((elements(&outputs[0], 2) + 1) * sizeof *output0);
    if (output0 == NULL)
        return 1;
    status = net_run(context, inputs, outputs, threads);
    if (status != NET_OK)
        return failed("run", status);
    for (size_t i = 0; i < elements(&outputs[0], 2) && i < 8; ++i)
        printf("output0[%zu] = %g\n", i, (double)output0[i]); /* p */

    free(input0);
    free(output0);
    free(context);
    return 0;
}

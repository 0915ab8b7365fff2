/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary text workloads, and logs of NCCL's. */
#include "tests/fuzz/fuzz_trace.h"
#include "trace/formats/trace_readers.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_input in;
    struct app_graph g;
    char err[TRACE_ERR];
    int rc;

    app_graph_init(&g);
    if (nccl_text_is((const char *)data, size)) {
        rc = trace_load_bytes(&g, "fuzz.log", data, size, err);
    } else {
        rc = trace_input_memory(&in, "fuzz.txt", data, size);
        rc = rc ? rc : text_workload_read(&g, &in, APP_ANY);
        memcpy(err, in.err, sizeof(err));
        trace_input_close(&in);
    }
    fuzz_look(&g, rc, err);
    app_graph_free(&g);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary workloads: a refusal names at least one mistake. An accepted one has whole microbatches,
 * GPUs and work to do, and the model takes some time for a step of it.
 */
#include "fabric/conf/workload.h"
#include "fabric/fabric.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *__lsan_default_suppressions(void);

/* libconfig 1.5 loses the strings of a file whose syntax it refuses. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig.so\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fab_errors errs;
    char *text = malloc(size + 1);
    struct workload w;
    int rc;

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    rc = workload_load_string(&w, text, "fuzz.conf", &errs);
    free(text);
    if (rc) {
        check(errs.n > 0, "a refusal without a reason");
        return 0;
    }
    check(errs.total == 0, "an accepted file with mistakes");
    check(workload_gpus(&w) > 0 && workload_stage_layers(&w) > 0, "a workload without GPUs");
    check(workload_microbatch_tokens(&w) * w.dp * w.microbatches == w.batch_tokens,
          "a microbatch that is not whole");
    check(workload_params(&w) > 0 && workload_params(&w) >= workload_active_params(&w),
          "more active parameters than all");
    check(isfinite(workload_step_flops(&w)) && workload_step_flops(&w) > 0, "no work");
    check(isfinite(workload_total_seconds(&w)) && workload_total_seconds(&w) >= 0, "no time");
    return 0;
}

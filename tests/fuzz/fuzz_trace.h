/* SPDX-License-Identifier: BSD-3-Clause */
/* What fuzz targets of traces share: an accepted trace is looked at and told; a refusal says why, on one line. */
#ifndef TESTS_FUZZ_FUZZ_TRACE_H
#define TESTS_FUZZ_FUZZ_TRACE_H

#include "base/printable.h"
#include "tests/fuzz/fuzz.h"
#include "trace/doctor.h"
#include "trace/formats/trace_load.h"

#include <jansson.h>

static inline void fuzz_look(struct app_graph *g, int rc, const char *err)
{
    struct doctor d;
    json_t *json;
    FILE *out;

    check(rc ? err[0] && printable(err) : !err[0], "a refusal without a reason, or the reverse");
    if (rc)
        return;
    doctor_look(&d, g, "fuzz");
    check(d.way.started <= g->n_ops, "more operations start than there are");
    check(d.way.started == g->n_ops || finding_total(&g->found) > 0, "what never starts is right");
    json = doctor_json(&d);
    check(json != NULL, "no JSON");
    json_decref(json);
    out = fopen("/dev/null", "w");
    check(out != NULL, "no /dev/null");
    doctor_print(&d, out);
    fclose(out);
    doctor_free(&d);
}

#endif

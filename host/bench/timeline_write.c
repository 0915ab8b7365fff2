/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of a time line. */
#include "system/provenance.h"
#include "host/bench/report.h"
#include "host/bench/timeline.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

int timeline_write(struct timeline *t, const struct perf_opts *o, const char *program, bool real,
                   const struct coll_grant *g, json_t *other)
{
    struct trace_events *e = timeline_events(t);
    int rc;

    if (!other) {
        if (o->timeline_row)
            fprintf(stderr, "%s: --timeline-row: found %u, expected a row that runs\n", program,
                    o->timeline_row);
        else
            fprintf(stderr, "%s: no row ran, and %s was not written\n", program, o->timeline);
        return -ENOENT;
    }
    json_object_set_new(other, "kind", json_string("tributary time line"));
    json_object_set_new(other, "clock", json_string(real ? "real" : "virtual"));
    json_object_set_new(other, "granted", report_granted(g));
    provenance_add(o->from, other, real);
    rc = trace_events_write(e, o->timeline, other);
    if (rc)
        fprintf(stderr, "%s: cannot write %s: %s\n", program, o->timeline, strerror(-rc));
    else
        fprintf(stderr, "%s: %llu events in %s\n", program,
                (unsigned long long)trace_events_count(e), o->timeline);
    return rc;
}

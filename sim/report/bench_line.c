/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the operation that a bench's time line records. */
#include "sim/report/bench_priv.h"

#include <jansson.h>

/* Of the row that was named, or of each, so that the last one stays; out of place where that runs. */
static bool wanted(const struct bench *b)
{
    bool named = !b->cfg.line_row || b->rows == b->cfg.line_row;

    return b->cfg.line && named && (b->place == OUT_OF_PLACE || !b->row->run[OUT_OF_PLACE].valid);
}

void bench_line_begin(struct bench *b)
{
    b->recorded = wanted(b);
    if (b->recorded)
        net_timeline_begin(b->cfg.line, b->w, b->ops - 1, b->row->pred.time_ps);
}

void bench_line_end(struct bench *b)
{
    if (b->recorded)
        net_timeline_end(b->cfg.line);
}

void bench_line_about(struct bench *b, const char *error)
{
    json_t *j;

    if (!b->recorded)
        return;
    b->recorded = false;
    j = timeline_about(net_timeline_ranks(b->cfg.line), b->row, b->place);
    json_object_set_new(j, "row", json_integer(b->rows));
    json_object_set_new(j, "error", json_string(error));
    json_decref(b->about_line);
    b->about_line =
        json_pack("{s:o, s:o, s:o}", "operation", j, "links", net_timeline_links(b->cfg.line),
                  "switches", net_timeline_switches(b->cfg.line));
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/background_flow.h"

#include "collective/sched.h"
#include "host/coll/coll.h"
#include "sim/world/flow.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define ALONE_PS (200 * PS_PER_US)

struct flow_record {
    char what[128];
    double rate; /* GB/s */
};

struct background_flow {
    const struct fabric *f;
    struct world *w;
    struct background_hosts hosts;
    struct flow *flow;
    double alone; /* GB/s */
    uint64_t bytes;
    int64_t begun_ps;
    struct flow_record *rec;
    unsigned n;
};

static const char *host_name(const struct fabric *f, uint16_t host)
{
    return f->nodes[f->hosts[host]].name;
}

static int find_host(const struct fabric *f, const char *name, size_t len)
{
    for (unsigned i = 0; i < f->n_hosts; i++) {
        const char *have = host_name(f, (uint16_t)i);

        if (strlen(have) == len && !strncmp(have, name, len))
            return (int)i;
    }
    return -ENOENT;
}

int background_flow_parse(const struct fabric *f, const char *text, struct background_hosts *h,
                          char *err)
{
    const char *colon = strchr(text, ':');
    int from = colon ? find_host(f, text, (size_t)(colon - text)) : -ENOENT;
    int to = colon ? find_host(f, colon + 1, strlen(colon + 1)) : -ENOENT;
    struct fab_channel ch;

    if (from < 0 || to < 0 || from == to) {
        snprintf(err, COMM_TEXT,
                 "--background-flow: found \"%.64s\", expected two hosts of %s as \"%s:%s\"", text,
                 f->name, host_name(f, 0), f->n_hosts > 1 ? host_name(f, 1) : "...");
        return -EINVAL;
    }
    if (!fabric_channels(f, (unsigned)from, (unsigned)to, &ch, 1)) {
        snprintf(err, COMM_TEXT, "--background-flow: found no path from %s to %s",
                 host_name(f, (uint16_t)from), host_name(f, (uint16_t)to));
        return -EINVAL;
    }
    *h = (struct background_hosts){(uint16_t)from, (uint16_t)to};
    return 0;
}

int background_flow_create(struct background_flow **out, const struct fabric *f, struct world *w,
                           const struct background_hosts *h, unsigned first, char *err)
{
    struct background_flow *b = calloc(1, sizeof(*b));
    struct fab_channel ch = {0};
    int rc = b ? 0 : -ENOMEM;

    *out = b;
    fabric_channels(f, h->from, h->to, &ch, 1);
    if (!rc) {
        *b = (struct background_flow){.f = f, .w = w, .hosts = *h};
        rc = flow_create(&b->flow, w, first, ch.port_a, first + 1, ch.port_b);
    }
    if (!rc) {
        b->alone = flow_alone(b->flow, ALONE_PS);
        rc = b->alone < 0 ? (int)b->alone : 0;
    }
    if (!rc)
        return 0;
    snprintf(err, COMM_TEXT, "--background-flow: cannot send from %s to %s: %s",
             host_name(f, h->from), host_name(f, h->to),
             b && b->flow && *flow_error(b->flow) ? flow_error(b->flow) : strerror(-rc));
    background_flow_destroy(b);
    *out = NULL;
    return rc;
}

void background_flow_destroy(struct background_flow *b)
{
    if (!b)
        return;
    flow_destroy(b->flow);
    free(b->rec);
    free(b);
}

int background_flow_progress(struct background_flow *b)
{
    return flow_progress(b->flow);
}

void background_flow_begin(struct background_flow *b)
{
    b->begun_ps = world_now(b->w);
    b->bytes = flow_bytes(b->flow);
    flow_start(b->flow);
}

int background_flow_end(struct background_flow *b, const struct row *r, int place, char *err)
{
    int64_t time = world_now(b->w) - b->begun_ps;
    double rate =
        (double)(flow_bytes(b->flow) - b->bytes) * 1e3 / (double)RTE_MAX(time, (int64_t)1);
    struct flow_record *rec = realloc(b->rec, (b->n + 1) * sizeof(*rec));
    int rc = rec ? flow_drain(b->flow) : -ENOMEM;

    if (rec)
        b->rec = rec;
    if (rc) {
        snprintf(err, COMM_TEXT, "--background-flow: %s to %s: %s", host_name(b->f, b->hosts.from),
                 host_name(b->f, b->hosts.to),
                 *flow_error(b->flow) ? flow_error(b->flow) : strerror(-rc));
        return rc;
    }
    rec += b->n++;
    rec->rate = rate;
    snprintf(rec->what, sizeof(rec->what), "%s, %llu B, %s, %s", row_algo_name(r),
             (unsigned long long)r->bytes, row_type(r),
             place == IN_PLACE ? "in-place" : "out-of-place");
    return 0;
}

void background_flow_print(const struct background_flow *b, FILE *out)
{
    fprintf(out, "#\n# Beside it %s sends to %s: %.2f GB/s alone\n", host_name(b->f, b->hosts.from),
            host_name(b->f, b->hosts.to), b->alone);
    for (unsigned i = 0; i < b->n; i++)
        fprintf(out, "#   %s: %.2f GB/s, %.3f of that\n", b->rec[i].what, b->rec[i].rate,
                b->alone > 0 ? b->rec[i].rate / b->alone : 0.0);
}

json_t *background_flow_json(const struct background_flow *b)
{
    json_t *rows = json_array();

    for (unsigned i = 0; rows && i < b->n; i++)
        json_array_append_new(
            rows, json_pack("{s:s, s:f}", "during", b->rec[i].what, "GBps", b->rec[i].rate));
    return json_pack("{s:s, s:s, s:f, s:o}", "from", host_name(b->f, b->hosts.from), "to",
                     host_name(b->f, b->hosts.to), "alone_GBps", b->alone, "rows", rows);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads counters of a fabric's ports and hosts: from telemetry and the run directory. */
#include "base/units.h"
#include "host/launch/ranks_timeline.h"
#include "machine/port_counters.h"
#include "machine/rundir.h"
#include "machine/telemetry_client.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_S   2  /* time for a process to answer */
#define PATHS_MOST 64 /* most ranks for which the paths between all of them are written */

/* Counters of a direction of a link, by their names in /trib/ports. */
#define COUNTS(X)                                                                                  \
    X(egress_frames)                                                                               \
    X(egress_link_bytes)                                                                           \
    X(egress_paused_us)                                                                            \
    X(egress_lost)                                                                                 \
    X(egress_corrupted)                                                                            \
    X(egress_down_drops)                                                                           \
    X(egress_watchdog_drops)                                                                       \
    X(egress_peak_bytes)                                                                           \
    X(ecn_marks)                                                                                   \
    X(pauses_received)
struct ports_counts {
#define X(name) uint64_t name;
    COUNTS(X)
#undef X
};

/* Counters of a host's HCA, by the names of their files. */
enum { SEQ_NAKS, TIMEOUTS, DUPLICATES, RNR_NAKS, ICRC_ERRORS, HCA_COUNTS };
static const char *const hca_files[HCA_COUNTS] = {"packet_seq_err", "local_ack_timeout_err",
                                                  "duplicate_request", "rnr_nak_retry_err",
                                                  "rx_icrc_encapsulated"};

struct ports_reading {
    int64_t at_ps;                /* fabric time in the middle of the reading */
    struct ports_counts *line;    /* [2 * n_links] */
    uint64_t (*host)[HCA_COUNTS]; /* [n_hosts] */
};

void ports_free(struct ports_reading *p)
{
    if (!p)
        return;
    free(p->line);
    free(p->host);
    free(p);
}

static uint64_t ranks_timeline_ports_number(const json_t *j, const char *name)
{
    json_int_t v = json_integer_value(json_object_get(j, name));

    return v > 0 ? (uint64_t)v : 0;
}

/* The sending node and port of a direction, as the telemetry commands name them. */
static uint16_t sender_port(const struct fabric *f, unsigned d, uint16_t *port)
{
    const struct fab_link *l = &f->links[d / 2];

    *port = d & 1 ? l->b_port : l->a_port;
    return d & 1 ? l->b : l->a;
}

static void read_process(const struct sweep *s, unsigned proc, struct ports_reading *p)
{
    const struct fabric *f = s->fab;
    int fd = telemetry_client_open(s->rd->path, f->procs[proc].name, ANSWER_S);

    for (unsigned d = 0; fd >= 0 && d < 2u * f->n_links; d++) {
        uint16_t port, node = sender_port(f, d, &port);
        char name[FAB_NAME + 16];
        json_t *j;

        if (f->nodes[node].proc != proc)
            continue;
        snprintf(name, sizeof(name), "%s:%u", f->nodes[node].name, (unsigned)port);
        j = telemetry_client_ask(fd, "/trib/ports", name);
#define X(c) p->line[d].c = ranks_timeline_ports_number(j, #c);
        COUNTS(X)
#undef X
        json_decref(j);
    }
    if (fd >= 0)
        close(fd);
}

static uint64_t read_file(const struct rundir *rd, const char *host, unsigned port,
                          const char *file)
{
    char path[RUN_PATH + 192], in[128];
    unsigned long long v = 0;
    FILE *f;

    port_counters_dir(in, sizeof(in), rd, host, port);
    if (rundir_path(rd, path, sizeof(path), "%s/hw_counters/%s", in, file))
        return 0;
    f = fopen(path, "re");
    if (f && fscanf(f, "%llu", &v) != 1)
        v = 0;
    if (f)
        fclose(f);
    return v;
}

struct ports_reading *ports_read(const struct sweep *s)
{
    const struct fabric *f = s->fab;
    struct ports_reading *p = calloc(1, sizeof(*p));

    if (p)
        p->line = calloc(2u * f->n_links + 1, sizeof(*p->line));
    if (p)
        p->host = calloc(f->n_hosts, sizeof(*p->host));
    if (!p || !p->line || !p->host) {
        ports_free(p);
        return NULL;
    }
    p->at_ps = clock_fabric_ps(s->rd->sh) / 2;
    for (unsigned i = 0; i < f->n_procs; i++)
        read_process(s, i, p);
    p->at_ps += clock_fabric_ps(s->rd->sh) / 2;
    for (unsigned h = 0; h < f->n_hosts; h++) {
        const struct fab_node *nd = &f->nodes[f->hosts[h]];

        for (unsigned k = 0; k < HCA_COUNTS; k++)
            for (unsigned port = 0; port < nd->n_ports; port++)
                p->host[h][k] += read_file(s->rd, nd->name, port, hca_files[k]);
    }
    return p;
}

/* ---- JSON of two readings ---- */

static uint64_t since(uint64_t after, uint64_t before)
{
    return after > before ? after - before : 0;
}

static json_t *line_json(const struct fabric *f, unsigned d, const struct ports_counts *a,
                         const struct ports_counts *b, const struct timeline *t)
{
    const struct fab_link *l = &f->links[d / 2];
    uint16_t from_port, to_port, from = sender_port(f, d, &from_port),
                                 to = sender_port(f, d ^ 1, &to_port);
    uint64_t bytes = since(b->egress_link_bytes, a->egress_link_bytes);
    uint64_t peak = b->egress_peak_bytes > a->egress_peak_bytes ? b->egress_peak_bytes : 0;

    return json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:i, s:[i, i], s:b, s:f, s:f, s:I, s:I, s:I, s:f, s:I, s:I, "
        "s:I, s:f, s:I, s:I, s:I, s:I, s:[]}",
        "measured", "counters", "link", l->name, "from", f->nodes[from].name, "to",
        f->nodes[to].name, "pid", (int)timeline_node_pid(t, from), "tid", 1 + (int)from_port,
        "tiers", (int)f->nodes[from].tier, (int)f->nodes[to].tier, "in_node",
        f->nodes[from].domain != FAB_NONE && f->nodes[to].domain == f->nodes[from].domain,
        "rate_Gbps", (double)l->rate_bps * 1e-9, "latency_us",
        (double)f->nodes[from].ports[from_port].latency_ps / PS_PER_US, "buffer_bytes",
        (json_int_t)l->buffer_bytes, "frames",
        (json_int_t)since(b->egress_frames, a->egress_frames), "bytes", (json_int_t)bytes,
        "busy_us", l->rate_bps ? (double)bytes * 8e6 / (double)l->rate_bps : 0.0,
        "queue_peak_bytes", (json_int_t)peak, "ecn_marks",
        (json_int_t)since(b->ecn_marks, a->ecn_marks), "pauses",
        (json_int_t)since(b->pauses_received, a->pauses_received), "paused_us",
        (double)since(b->egress_paused_us, a->egress_paused_us), "lost",
        (json_int_t)since(b->egress_lost, a->egress_lost), "corrupted",
        (json_int_t)since(b->egress_corrupted, a->egress_corrupted), "queue_full", (json_int_t)0,
        "link_down",
        (json_int_t)(since(b->egress_down_drops, a->egress_down_drops) +
                     since(b->egress_watchdog_drops, a->egress_watchdog_drops)),
        "flows");
}

double ports_span_us(const struct ports_reading *before, const struct ports_reading *after)
{
    return (double)(after->at_ps - before->at_ps) / PS_PER_US;
}

json_t *ports_links(const struct sweep *s, const struct ports_reading *before,
                    const struct ports_reading *after, const struct timeline *t)
{
    json_t *a = json_array();

    for (unsigned d = 0; d < 2u * s->fab->n_links; d++)
        json_array_append_new(a, line_json(s->fab, d, &before->line[d], &after->line[d], t));
    return a;
}

/* Whether this direction is certainly on the path to that host. With routing by flow and several
 * next hops it is not, because the choice depends on UDP ports that ranks have drawn. */
static bool is_sure(const struct fabric *f, unsigned dir, uint16_t to)
{
    uint16_t port, hops[2];

    return f->ecmp == FAB_ECMP_BALANCED ||
           fabric_hops(f, sender_port(f, dir, &port), f->nodes[to].dest, hops, 2) == 1;
}

static json_t *path_json(const struct fabric *f, uint16_t from, uint16_t to)
{
    uint32_t way[32];
    unsigned n = fabric_path(f, from, to, way, 32);
    json_t *a = json_array();

    for (unsigned i = 0; i < n; i++)
        if (is_sure(f, way[i], to))
            json_array_append_new(a, json_integer((json_int_t)way[i]));
    return a;
}

json_t *ports_paths(const struct sweep *s)
{
    const struct fabric *f = s->fab;
    json_t *j = json_object();

    for (unsigned a = 0; s->nranks <= PATHS_MOST && a < s->nranks; a++)
        for (unsigned b = 0; b < s->nranks; b++) {
            uint16_t from = f->hosts[s->host_of_rank[a]], to = f->hosts[s->host_of_rank[b]];
            char name[2 * FAB_NAME + 4];

            snprintf(name, sizeof(name), "%s>%s", f->nodes[from].name, f->nodes[to].name);
            if (from != to)
                json_object_set_new(j, name, path_json(f, from, to));
        }
    return j;
}

struct timeline_counts ports_rank(const struct sweep *s, const struct ports_reading *before,
                                  const struct ports_reading *after, unsigned rank)
{
    unsigned h = s->host_of_rank[rank];
    const uint64_t *a = before->host[h], *b = after->host[h];

    for (unsigned r = 0; r < rank; r++)
        if (s->host_of_rank[r] == h)
            return (struct timeline_counts){0};
    return (struct timeline_counts){.seq_naks = since(b[SEQ_NAKS], a[SEQ_NAKS]),
                                    .timeouts = since(b[TIMEOUTS], a[TIMEOUTS]),
                                    .duplicates = since(b[DUPLICATES], a[DUPLICATES]),
                                    .rnr_naks = since(b[RNR_NAKS], a[RNR_NAKS]),
                                    .icrc_errors = since(b[ICRC_ERRORS], a[ICRC_ERRORS])};
}

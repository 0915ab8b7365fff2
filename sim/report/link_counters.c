/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/report/link_counters.h"

#include "base/assert.h"
#include "collective/sched.h"
#include "switch/net/net_stats.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_LINKS 16 /* of a table, unless links were named or something went wrong there */

/* X(name): counted by the queue that sends into the direction, or by the port that it is of. Times
 * are in ps. */
#define COUNTS(X)                                                                                  \
    X(frames)                                                                                      \
    X(bytes)                                                                                       \
    X(link_bytes)                                                                                  \
    X(busy_ps)                                                                                     \
    X(paused_ps)                                                                                   \
    X(peak_bytes)                                                                                  \
    X(ecn_marks)                                                                                   \
    X(pauses_sent)                                                                                 \
    X(pauses_received)                                                                             \
    X(duplicated)                                                                                  \
    X(reordered)                                                                                   \
    X(corrupted)                                                                                   \
    X(lost)                                                                                        \
    X(lost_bytes)                                                                                  \
    X(down)

/* drops: by the node at the direction's end, of what had come in; QUEUE_FULL: at its beginning. */
struct link_counts {
#define X(name) uint64_t name;
    COUNTS(X)
#undef X
    uint64_t drops[DROP_REASONS];
};
#define COUNTS_N (sizeof(struct link_counts) / sizeof(uint64_t))
static_assert(sizeof(struct link_counts) % sizeof(uint64_t) == 0, "all counts are of 64 bits");

struct counters_line {
    uint32_t dirlink;
    struct link_counts c;
};

/* A row in one place. */
struct link_record {
    char what[128];
    const struct row *row;
    int place;
    double time_us; /* of all its timed operations */
    unsigned n, hidden;
    struct counters_line *line; /* [n] as the table has them */
    json_t *json;
};

struct counters {
    const struct fabric *f;
    bool *named;
    struct link_counts *base; /* [2 * n_links] when the operations began */
    uint64_t *peak;           /* [2 * n_links] greatest before that */
    struct link_record *rec;
    unsigned n;
};

/* ---- reading ---- */

struct counter_ends {
    uint16_t from, from_port, to, to_port;
};

static struct counter_ends ends_of(const struct fabric *f, unsigned dirlink)
{
    const struct fab_link *l = &f->links[dirlink / 2];

    if (dirlink & 1)
        return (struct counter_ends){l->b, l->b_port, l->a, l->a_port};
    return (struct counter_ends){l->a, l->a_port, l->b, l->b_port};
}

/* Since the net was created; zeros for a direction without a sender. Nodes count frames that
 * found a queue full at the ingress port; here they count for the queue. */
static void read_counts(const struct counters *c, struct net *n, unsigned dirlink,
                        struct link_counts *out)
{
    struct counter_ends e = ends_of(c->f, dirlink);
    const struct node *to = net_node(n, e.to);
    struct egress_stats s;
    struct net_port_stats p;

    memset(out, 0, sizeof(*out));
    if (!to || !net_port_stats(n, e.from, e.from_port, &p))
        return;
    s = egress_stats(net_egress(n, e.from, e.from_port));
    *out = (struct link_counts){.frames = p.frames,
                                .bytes = p.bytes,
                                .link_bytes = p.link_bytes,
                                .busy_ps = (uint64_t)p.busy_ps,
                                .paused_ps = (uint64_t)p.paused_ps,
                                .peak_bytes = p.peak_bytes,
                                .ecn_marks = p.ecn_marks,
                                .pauses_sent = p.pauses_sent,
                                .pauses_received = p.pauses_received,
                                .duplicated = s.duplicated,
                                .reordered = s.reordered,
                                .corrupted = s.corrupted,
                                .lost = s.lost,
                                .lost_bytes = s.lost_bytes,
                                .down = s.down_drops};
    memcpy(out->drops, to->cnt[e.to_port].drops, sizeof(out->drops));
    out->drops[DROP_QUEUE_FULL] = s.overflows;
}

/* Differences may be negative: the rest of a pause that ends early is subtracted. */
static void subtract(struct link_counts *a, const struct link_counts *base)
{
    uint64_t *v = (uint64_t *)a, peak = a->peak_bytes;
    const uint64_t *b = (const uint64_t *)base;

    for (size_t i = 0; i < COUNTS_N; i++)
        v[i] = v[i] > b[i] ? v[i] - b[i] : 0;
    a->peak_bytes = peak;
}

static bool anything(const struct link_counts *a)
{
    const uint64_t *v = (const uint64_t *)a;

    for (size_t i = 0; i < COUNTS_N; i++)
        if (v[i])
            return true;
    return false;
}

/* Busiest first, then in order of the links. */
static int busier(const void *pa, const void *pb)
{
    const struct counters_line *a = pa, *b = pb;

    if (a->c.busy_ps != b->c.busy_ps)
        return a->c.busy_ps > b->c.busy_ps ? -1 : 1;
    return a->dirlink < b->dirlink ? -1 : a->dirlink > b->dirlink;
}

/* The directions to report, in order of the links. total: since the creation, else since base. */
static struct counters_line *read_lines(struct counters *c, struct net *n, bool total,
                                        unsigned *count)
{
    struct counters_line *line = calloc(2u * c->f->n_links + 1, sizeof(*line));

    *count = 0;
    for (unsigned d = 0; line && d < 2u * c->f->n_links; d++) {
        struct counters_line *l = &line[*count];

        l->dirlink = d;
        read_counts(c, n, d, &l->c);
        if (total)
            l->c.peak_bytes = RTE_MAX(l->c.peak_bytes, c->peak[d]);
        else
            subtract(&l->c, &c->base[d]);
        *count += c->named ? c->named[d / 2] : anything(&l->c);
    }
    return line;
}

/* ---- JSON ---- */

static json_t *drops_json(const struct link_counts *c)
{
    json_t *j = json_object();

    if (c->lost)
        json_object_set_new(j, "lost", json_integer((json_int_t)c->lost));
    if (c->down)
        json_object_set_new(j, "link_down", json_integer((json_int_t)c->down));
    for (unsigned r = 0; r < DROP_REASONS; r++)
        if (c->drops[r])
            json_object_set_new(j, drop_name(r), json_integer((json_int_t)c->drops[r]));
    return j;
}

static json_t *line_json(const struct counters *c, const struct counters_line *l, double time_us)
{
    struct counter_ends e = ends_of(c->f, l->dirlink);
    const struct link_counts *k = &l->c;
    double busy_us = (double)k->busy_ps * 1e-6;

    return json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:f, s:{s:I, s:I, s:I}, "
        "s:o}",
        "link", c->f->links[l->dirlink / 2].name, "from",
        json_sprintf("%s:%u", c->f->nodes[e.from].name, (unsigned)e.from_port), "to",
        json_sprintf("%s:%u", c->f->nodes[e.to].name, (unsigned)e.to_port), "frames",
        (json_int_t)k->frames, "bytes", (json_int_t)k->bytes, "link_bytes",
        (json_int_t)k->link_bytes, "lost_bytes", (json_int_t)k->lost_bytes, "busy_us", busy_us,
        "utilisation", time_us > 0 ? busy_us / time_us : 0.0, "queue_peak_bytes",
        (json_int_t)k->peak_bytes, "ecn_marks", (json_int_t)k->ecn_marks, "pauses_sent",
        (json_int_t)k->pauses_sent, "pauses_received", (json_int_t)k->pauses_received, "paused_us",
        (double)k->paused_ps * 1e-6, "faults", "duplicated", (json_int_t)k->duplicated, "reordered",
        (json_int_t)k->reordered, "corrupted", (json_int_t)k->corrupted, "drops", drops_json(k));
}

static json_t *lines_json(const struct counters *c, const struct counters_line *line, unsigned n,
                          double time_us)
{
    json_t *a = json_array();

    for (unsigned i = 0; a && i < n; i++)
        json_array_append_new(a, line_json(c, &line[i], time_us));
    return a;
}

/* ---- a row ---- */

void counters_begin(struct counters *c, struct net *n)
{
    for (unsigned d = 0; d < 2u * c->f->n_links; d++) {
        struct counter_ends e = ends_of(c->f, d);
        struct egress *q = net_egress(n, e.from, e.from_port);

        read_counts(c, n, d, &c->base[d]);
        c->peak[d] = RTE_MAX(c->peak[d], c->base[d].peak_bytes);
        if (q)
            egress_restart_peak(q);
    }
}

/* Frames were lost, held back or marked: a reader looks for that, however busy the link is. */
static bool has_trouble(const struct link_counts *k)
{
    uint64_t n = k->paused_ps + k->ecn_marks + k->pauses_sent + k->pauses_received + k->duplicated +
                 k->reordered + k->corrupted + k->lost + k->down;

    for (unsigned r = 0; r < DROP_REASONS; r++)
        n += k->drops[r];
    return n > 0;
}

/* Keeps the lines that a table shows. */
static void shorten(struct link_record *rec)
{
    unsigned n = rec->n;
    struct counters_line *less;

    T_ASSERT(n > TABLE_LINKS, "a table is cut that is not too long");
    rec->n = TABLE_LINKS;
    for (unsigned i = TABLE_LINKS; i < n; i++)
        if (has_trouble(&rec->line[i].c))
            rec->line[rec->n++] = rec->line[i];
    rec->hidden = n - rec->n;
    less = reallocarray(rec->line, rec->n, sizeof(*less));
    if (less)
        rec->line = less;
}

/* Keeps the lines of what has run, and of a table for it. NULL: no memory. */
static struct link_record *counters_keep(struct counters *c, struct net *n, double time_us)
{
    struct link_record *rec = realloc(c->rec, (c->n + 1) * sizeof(*rec));

    if (!rec)
        return NULL;
    c->rec = rec;
    rec += c->n;
    *rec = (struct link_record){.time_us = time_us};
    rec->line = read_lines(c, n, false, &rec->n);
    rec->json = rec->line ? lines_json(c, rec->line, rec->n, rec->time_us) : NULL;
    if (!rec->json) {
        free(rec->line);
        return NULL;
    }
    qsort(rec->line, rec->n, sizeof(*rec->line), busier);
    if (!c->named && rec->n > TABLE_LINKS)
        shorten(rec);
    c->n++;
    return rec;
}

int counters_end(struct counters *c, struct net *n, struct row *r, int place)
{
    struct run_result *run = &r->run[place];
    struct link_record *rec = counters_keep(c, n, run->time_us * run->iters);

    if (!rec)
        return -ENOMEM;
    rec->row = r;
    rec->place = place;
    snprintf(rec->what, sizeof(rec->what), "%s, %llu B, %s %s, %s: %u operation%s",
             row_algo_name(r), (unsigned long long)r->bytes, row_type(r), row_op(r),
             place == IN_PLACE ? "in-place" : "out-of-place", run->iters,
             run->iters == 1 ? "" : "s");
    run->links = rec->json;
    return 0;
}

int counters_end_run(struct counters *c, struct net *n, const char *what, double time_us)
{
    struct link_record *rec = counters_keep(c, n, time_us);

    if (!rec)
        return -ENOMEM;
    rec->place = OUT_OF_PLACE;
    snprintf(rec->what, sizeof(rec->what), "%s", what);
    return 0;
}

json_t *counters_total(struct counters *c, struct net *n)
{
    unsigned count;
    struct counters_line *line = read_lines(c, n, true, &count);
    json_t *j = line ? lines_json(c, line, count, (double)net_now(n) * 1e-6) : NULL;

    free(line);
    return j;
}

/* ---- the table ---- */

static void print_drops(const struct link_counts *k, FILE *out)
{
    const char *sep = "  ";

    if (k->lost)
        fprintf(out, "%s%llu lost", sep, (unsigned long long)k->lost), sep = ", ";
    if (k->down)
        fprintf(out, "%s%llu link_down", sep, (unsigned long long)k->down), sep = ", ";
    if (k->corrupted)
        fprintf(out, "%s%llu corrupted", sep, (unsigned long long)k->corrupted), sep = ", ";
    if (k->duplicated)
        fprintf(out, "%s%llu duplicated", sep, (unsigned long long)k->duplicated), sep = ", ";
    if (k->reordered)
        fprintf(out, "%s%llu reordered", sep, (unsigned long long)k->reordered), sep = ", ";
    for (unsigned r = 0; r < DROP_REASONS; r++)
        if (k->drops[r])
            fprintf(out, "%s%llu %s", sep, (unsigned long long)k->drops[r], drop_name(r)),
                sep = ", ";
    if (*sep == ' ')
        fprintf(out, "  0");
    fputc('\n', out);
}

/* "leaf0:4". Returns its length. */
static int name_end(const struct counters *c, uint32_t node, uint16_t port, char *b, size_t n)
{
    return snprintf(b, n, "%s:%u", c->f->nodes[node].name, (unsigned)port);
}

static void print_line(const struct counters *c, const struct counters_line *l, double time_us,
                       const int *width, FILE *out)
{
    struct counter_ends e = ends_of(c->f, l->dirlink);
    const struct link_counts *k = &l->c;
    char from[FAB_NAME + 8], to[FAB_NAME + 8];

    name_end(c, e.from, e.from_port, from, sizeof(from));
    name_end(c, e.to, e.to_port, to, sizeof(to));
    fprintf(out, "%*s %*s %8llu %9.3f %5.1f %8.1f %7llu %6llu %8.2f", width[0], from, width[1], to,
            (unsigned long long)k->frames, (double)k->link_bytes * 1e-6,
            time_us > 0 ? (double)k->busy_ps * 1e-4 / time_us : 0.0, (double)k->peak_bytes / 1024,
            (unsigned long long)k->ecn_marks, (unsigned long long)k->pauses_received,
            (double)k->paused_ps * 1e-6);
    print_drops(k, out);
}

/* Columns of names are as wide as the names. */
static void widths(const struct counters *c, const struct link_record *r, int *width)
{
    char name[FAB_NAME + 8];

    width[0] = sizeof("# from") - 1, width[1] = sizeof("to") - 1;
    for (unsigned i = 0; i < r->n; i++) {
        struct counter_ends e = ends_of(c->f, r->line[i].dirlink);
        int n[2] = {name_end(c, e.from, e.from_port, name, sizeof(name)) + 2,
                    name_end(c, e.to, e.to_port, name, sizeof(name))};

        for (int k = 0; k < 2; k++)
            width[k] = n[k] > width[k] ? n[k] : width[k];
    }
}

static void print_record(const struct counters *c, const struct link_record *r, FILE *out)
{
    int width[2];

    widths(c, r, width);
    fprintf(out, "#\n# Links during %s, %.2f us\n", r->what, r->time_us);
    fprintf(out, "# %*s %*s %8s %9s %5s %8s %7s %6s %8s  %s\n", width[0] - 2, "from", width[1],
            "to", "frames", "link", "util", "peak", "ecn", "pauses", "paused", "drops");
    fprintf(out, "# %*s %*s %8s %9s %5s %8s %7s %6s %8s\n", width[0] - 2, "", width[1], "", "",
            "(MB)", "(%)", "(KiB)", "", "", "(us)");
    for (unsigned i = 0; i < r->n; i++)
        print_line(c, &r->line[i], r->time_us, width, out);
    if (r->hidden)
        fprintf(out,
                "# and %u that were no busier, without drops, pauses or marks (--links names "
                "links, -J has all)\n",
                r->hidden);
}

void counters_print(const struct counters *c, FILE *out)
{
    for (unsigned i = 0; i < c->n; i++) {
        const struct link_record *r = &c->rec[i];

        if (r->place == OUT_OF_PLACE || !r->row->run[OUT_OF_PLACE].valid)
            print_record(c, r, out);
    }
}

/* ---- life ---- */

int counters_create(struct counters **out, const struct fabric *f, const bool *named)
{
    struct counters *c = calloc(1, sizeof(*c));
    size_t links = f->n_links + 1u;

    *out = NULL;
    if (!c)
        return -ENOMEM;
    c->f = f;
    c->base = calloc(2 * links, sizeof(*c->base));
    c->peak = calloc(2 * links, sizeof(*c->peak));
    c->named = named ? malloc(links * sizeof(*named)) : NULL;
    if (!c->base || !c->peak || (named && !c->named)) {
        counters_destroy(c);
        return -ENOMEM;
    }
    if (named)
        memcpy(c->named, named, f->n_links * sizeof(*named));
    *out = c;
    return 0;
}

void counters_destroy(struct counters *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < c->n; i++) {
        free(c->rec[i].line);
        json_decref(c->rec[i].json);
    }
    free(c->rec);
    free(c->named);
    free(c->base);
    free(c->peak);
    free(c);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/metrics.h"

#include "base/version.h"

#include <jansson.h>
#include <stdarg.h>
#include <string.h>

struct family {
    const char *name; /* without "tributary_" and the suffix of samples */
    const char *type, *unit, *help;
    void (*samples)(const struct family *m, const struct live_fabric *x, FILE *out);
    unsigned column; /* of the ports table */
    double scale;
    const char *key; /* name of an aggregation node's counter */
};

/* Escapes a label's value: the path of a conf may contain any character. */
static const char *escaped(const char *text, char *buf, size_t size)
{
    size_t n = 0;

    for (; *text && n + 3 < size; text++) {
        if (*text == '"' || *text == '\\' || *text == '\n')
            buf[n++] = '\\';
        buf[n++] = *text == '\n' ? 'n' : *text;
    }
    buf[n] = 0;
    return buf;
}

/* Prints a sample. more: labels after the fabric's, each with a comma before it. */
static void family_sample(const struct family *m, const struct live_fabric *x, FILE *out, double v,
                          const char *more, ...) __attribute__((format(printf, 5, 6)));
static void family_sample(const struct family *m, const struct live_fabric *x, FILE *out, double v,
                          const char *more, ...)
{
    const char *suffix = !strcmp(m->type, "counter")     ? "_total"
                         : !strcmp(m->type, "info")      ? "_info"
                         : !strcmp(m->type, "histogram") ? "_bucket"
                                                         : "";
    va_list ap;

    fprintf(out, "tributary_%s%s{fabric=\"%s\"", m->name, suffix, x->f->name);
    va_start(ap, more);
    vfprintf(out, more, ap);
    va_end(ap);
    fprintf(out, "} %.16g\n", v);
}

/* ---- a fabric ---- */

static void info(const struct family *m, const struct live_fabric *x, FILE *out)
{
    char conf[600];

    family_sample(m, x, out, 1, ",conf=\"%s\",version=\"" TRIB_VERSION "\"",
                  escaped(x->f->path, conf, sizeof(conf)));
}

static void family_dilation(const struct family *m, const struct live_fabric *x, FILE *out)
{
    family_sample(m, x, out, x->dilation, "%s", "");
}

static void fabric_time(const struct family *m, const struct live_fabric *x, FILE *out)
{
    family_sample(m, x, out, (double)x->now.now_ps * 1e-12, "%s", "");
}

static void family_processes(const struct family *m, const struct live_fabric *x, FILE *out)
{
    for (unsigned i = 0; i < x->n_procs; i++)
        family_sample(m, x, out, x->proc[i].pid && x->proc[i].state == LIVE_READY,
                      ",process=\"%s\"", x->proc[i].name);
}

static void host_processes(const struct family *m, const struct live_fabric *x, FILE *out)
{
    for (unsigned h = 0; h < x->f->n_hosts; h++) {
        unsigned n = 0;

        for (unsigned i = 0; i < x->now.n_slots; i++)
            n += x->now.slot[i].v[SLOT_node] == x->f->hosts[h] && x->now.slot[i].v[SLOT_pid];
        family_sample(m, x, out, n, ",host=\"%s\"", x->f->nodes[x->f->hosts[h]].name);
    }
}

/* Prints powers of ten. A bucket of telemetry (6 % wide) that spans one counts in the next one up. */
static void handoffs(const struct family *m, const struct live_fabric *x, FILE *out)
{
    static const char *const le[] = {"1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1"};
    int64_t ns = 1000;
    uint64_t n;

    for (unsigned i = 0; i < sizeof(le) / sizeof(le[0]); i++, ns *= 10) {
        n = 0;
        for (unsigned b = 0; b < LIVE_LAG; b++)
            n += x->lag_top[b] <= ns ? x->now.lag[b] : 0;
        family_sample(m, x, out, (double)n, ",le=\"%s\"", le[i]);
    }
    n = 0;
    for (unsigned b = 0; b < LIVE_LAG; b++)
        n += x->now.lag[b];
    family_sample(m, x, out, (double)n, ",le=\"+Inf\"");
}

/* ---- links ---- */

#define LINK_LABELS ",link=\"%s\",from=\"%s:%u\",to=\"%s:%u\""
#define LINK_VALUES(x, d, e)                                                                       \
    (x)->f->links[(d) / 2].name, (x)->f->nodes[(e).from].name, (unsigned)(e).from_port,            \
        (x)->f->nodes[(e).to].name, (unsigned)(e).to_port

static void family_links(const struct family *m, const struct live_fabric *x, FILE *out)
{
    for (unsigned d = 0; d < 2u * x->f->n_links; d++) {
        const struct live_ends e = live_ends(x->f, d);

        if (x->now.dir[d].known)
            family_sample(m, x, out, (double)live_count(x, d, m->column) * m->scale, LINK_LABELS,
                          LINK_VALUES(x, d, e));
    }
}

static void link_up(const struct family *m, const struct live_fabric *x, FILE *out)
{
    for (unsigned d = 0; d < 2u * x->f->n_links; d++) {
        const struct live_ends e = live_ends(x->f, d);

        if (x->now.dir[d].known)
            family_sample(m, x, out, !live_count(x, d, PORT_down), LINK_LABELS,
                          LINK_VALUES(x, d, e));
    }
}

static void capacity(const struct family *m, const struct live_fabric *x, FILE *out)
{
    for (unsigned d = 0; d < 2u * x->f->n_links; d++) {
        const struct live_ends e = live_ends(x->f, d);

        if (x->now.dir[d].known && x->f->links[d / 2].rate_bps)
            family_sample(m, x, out, (double)x->f->links[d / 2].rate_bps / 8, LINK_LABELS,
                          LINK_VALUES(x, d, e));
    }
}

/* Prints reasons once they have occurred, and always the two that occur in a healthy fabric. */
static void drops(const struct family *m, const struct live_fabric *x, FILE *out)
{
    for (unsigned d = 0; d < 2u * x->f->n_links; d++) {
        const struct live_ends e = live_ends(x->f, d);
        const char *name;
        uint64_t n;

        for (unsigned i = 0; x->now.dir[d].known && (name = live_drop(x, d, i, &n)); i++)
            if (n || !i || i == DROP_QUEUE_FULL + 2)
                family_sample(m, x, out, (double)n, LINK_LABELS ",reason=\"%s\"",
                              LINK_VALUES(x, d, e), name);
    }
}

/* ---- groups ---- */

#define GROUP_LABELS ",job=\"%08llx\",kind=\"%s\",tree=\"%llu\",group=\"%llu\",owner=\"%s\""
#define GROUP_VALUES(x, g)                                                                         \
    (unsigned long long)(g)->job, live_kind((x), (g)->kind), (unsigned long long)(g)->tree,        \
        (unsigned long long)(g)->id, (g)->owner == FAB_NONE ? "" : (x)->f->nodes[(g)->owner].name

static void members_sample(const struct family *m, const struct live_fabric *x, FILE *out)
{
    for (unsigned i = 0; i < x->now.n_groups; i++) {
        const struct live_group *g = &x->now.group[i];

        family_sample(m, x, out, g->n_members, GROUP_LABELS, GROUP_VALUES(x, g));
    }
}

static void group_slots(const struct family *m, const struct live_fabric *x, FILE *out)
{
    for (unsigned i = 0; i < x->now.n_groups; i++) {
        const struct live_group *g = &x->now.group[i];

        for (unsigned k = 0; k < g->n_at; k++)
            family_sample(m, x, out,
                          (double)(m->column == GROUP_slots ? g->at[k].slots : g->at[k].slots_used),
                          GROUP_LABELS ",node=\"%s\"", GROUP_VALUES(x, g),
                          x->f->nodes[g->at[k].node].name);
    }
}

static void aggregation(const struct family *m, const struct live_fabric *x, FILE *out)
{
    const char *node;
    json_t *counters;

    json_object_foreach(x->aggregation, node, counters)
    {
        const json_t *v = json_object_get(counters, m->key);

        if (v)
            family_sample(m, x, out, (double)json_integer_value(v), ",node=\"%s\"", node);
    }
}

/* ---- all of them ---- */

#define LINK(name, type, unit, column, scale, help)                                                \
    {                                                                                              \
        "link_" name, type, unit, help, family_links, PORT_##column, scale, NULL                   \
    }
#define AN(name, type, unit, key, help)                                                            \
    {                                                                                              \
        "aggregation_" name, type, unit, help, aggregation, 0, 1, key                              \
    }

static const struct family families[] = {
    {"fabric", "info", "", "A fabric that is up.", info, 0, 1, NULL},
    {"fabric_time_seconds", "counter", "seconds", "Fabric time since it was started.", fabric_time,
     0, 1, NULL},
    {"fabric_dilation", "gauge", "", "Wall time over fabric time.", family_dilation, 0, 1, NULL},
    {"process_up", "gauge", "", "Whether a switch process answers.", family_processes, 0, 1, NULL},
    {"host_processes", "gauge", "", "Processes that are connected as a host.", host_processes, 0, 1,
     NULL},
    {"handoff_lag_seconds", "histogram", "seconds",
     "How late hand-offs between processes were, in wall time.", handoffs, 0, 1, NULL},
    {"link_up", "gauge", "", "Whether a link is up.", link_up, 0, 1, NULL},
    {"link_capacity_bytes_per_second", "gauge", "", "Rate of a link in fabric time.", capacity, 0,
     1, NULL},
    LINK("bytes", "counter", "bytes", link_bytes, 1, "Sent, with preamble, FCS and gap."),
    LINK("frames", "counter", "", frames, 1, "Frames sent."),
    LINK("busy_seconds", "counter", "seconds", busy_ps, 1e-12, "Fabric time in which it sent."),
    LINK("paused", "gauge", "", paused, 1, "Whether PFC pauses the sender now."),
    LINK("paused_seconds", "counter", "seconds", paused_ps, 1e-12, "Fabric time of PFC pauses."),
    LINK("pauses_received", "counter", "", pauses_received, 1, "PFC frames to the sender."),
    LINK("pauses_sent", "counter", "", pauses_sent, 1, "PFC frames of the sending port."),
    LINK("watchdog_trips", "counter", "", watchdog_trips, 1,
         "Times that the PFC watchdog found the queue stuck."),
    LINK("queue_bytes", "gauge", "bytes", queue_bytes, 1, "Bytes that wait at the sender."),
    LINK("queue_peak_bytes", "gauge", "bytes", queue_peak_bytes, 1, "Most that have waited."),
    LINK("ecn_marks", "counter", "", ecn_marks, 1, "Frames that were marked in the queue."),
    {"link_drops", "counter", "", "Frames dropped, by reason.", drops, 0, 1, NULL},
    {"group_members", "gauge", "", "Members of an aggregation group.", members_sample, 0, 1, NULL},
    {"group_slots", "gauge", "", "Slots that an aggregation node has granted.", group_slots,
     GROUP_slots, 1, NULL},
    {"group_slots_used", "gauge", "", "Of these, slots that wait for a child.", group_slots,
     GROUP_slots_used, 1, NULL},
    AN("groups", "gauge", "", "groups", "Groups at an aggregation node."),
    AN("operations", "counter", "", "operations", "Vectors reduced."),
    AN("slots_reduced", "counter", "", "slots", "Slots reduced."),
    AN("joins_granted", "counter", "", "joins_granted", "JOINs granted."),
    AN("joins_refused", "counter", "", "joins_refused", "JOINs refused."),
    AN("aborts", "counter", "", "aborts", "Groups aborted."),
    AN("input_bytes", "counter", "bytes", "bytes_in", "Elements from children."),
    AN("output_bytes", "counter", "bytes", "bytes_out", "Elements reduced."),
};

static void head(const struct family *m, enum metrics_format format, FILE *out)
{
    bool open = format == METRICS_OPENMETRICS;
    const char *suffix = open                          ? ""
                         : !strcmp(m->type, "counter") ? "_total"
                         : !strcmp(m->type, "info")    ? "_info"
                                                       : "";

    fprintf(out, "# HELP tributary_%s%s %s\n# TYPE tributary_%s%s %s\n", m->name, suffix, m->help,
            m->name, suffix, !open && !strcmp(m->type, "info") ? "gauge" : m->type);
    if (open && *m->unit)
        fprintf(out, "# UNIT tributary_%s %s\n", m->name, m->unit);
}

void metrics_print(const struct live *l, enum metrics_format format, FILE *out)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        head(&families[i], format, out);
        for (unsigned k = 0; k < l->n; k++)
            families[i].samples(&families[i], l->fab[k], out);
    }
    if (format == METRICS_OPENMETRICS)
        fputs("# EOF\n", out);
}

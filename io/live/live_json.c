/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/live.h"

#include "base/version.h"

#include <jansson.h>

static json_t *live_json_count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static const char *node_name(const struct live_fabric *x, uint16_t node)
{
    return node == FAB_NONE ? NULL : x->f->nodes[node].name;
}

/* ---- links ---- */

/* Every key but those of counters of a part. */
static const struct {
    const char *key;
    unsigned column;
} counters[] = {{"frames", PORT_frames},
                {"bytes", PORT_bytes},
                {"link_bytes", PORT_link_bytes},
                {"lost_bytes", PORT_lost_bytes},
                {"queue_bytes", PORT_queue_bytes},
                {"queue_lossless_bytes", PORT_queue_lossless_bytes},
                {"queue_peak_bytes", PORT_queue_peak_bytes},
                {"ecn_marks", PORT_ecn_marks},
                {"pauses_sent", PORT_pauses_sent},
                {"pauses_received", PORT_pauses_received},
                {"watchdog_trips", PORT_watchdog_trips}};

static json_t *drops_json(const struct live_fabric *x, unsigned d)
{
    json_t *j = json_object();
    const char *name;
    uint64_t n;

    for (unsigned i = 0; (name = live_drop(x, d, i, &n)); i++)
        if (n)
            json_object_set_new(j, name, live_json_count(n));
    return j;
}

static json_t *link_json(const struct live_fabric *x, unsigned d)
{
    const struct live_ends e = live_ends(x->f, d);
    double u = live_utilisation(x, d);
    json_t *j = json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:f, s:f, s:o, s:b, s:f, s:f}", "link", x->f->links[d / 2].name,
        "from", json_sprintf("%s:%u", x->f->nodes[e.from].name, (unsigned)e.from_port), "to",
        json_sprintf("%s:%u", x->f->nodes[e.to].name, (unsigned)e.to_port), "state",
        live_count(x, d, PORT_down) ? "down" : "up", "faults_set", x->faults[d / 2],
        "capacity_GBps", (double)x->f->links[d / 2].rate_bps / 8e9, "GBps", live_GBps(x, d),
        "utilisation", u < 0 ? json_null() : json_real(u), "paused",
        live_count(x, d, PORT_paused) != 0, "busy_us",
        (double)live_count(x, d, PORT_busy_ps) * 1e-6, "paused_us",
        (double)live_count(x, d, PORT_paused_ps) * 1e-6);

    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        json_object_set_new(j, counters[i].key,
                            live_json_count(live_count(x, d, counters[i].column)));
    json_object_set_new(j, "faults",
                        json_pack("{s:o, s:o, s:o}", "duplicated",
                                  live_json_count(live_count(x, d, PORT_duplicated)), "reordered",
                                  live_json_count(live_count(x, d, PORT_reordered)), "corrupted",
                                  live_json_count(live_count(x, d, PORT_corrupted))));
    json_object_set_new(j, "drops", drops_json(x, d));
    return j;
}

static json_t *links_json(const struct live_fabric *x)
{
    json_t *a = json_array();

    for (unsigned d = 0; d < 2u * x->f->n_links; d++)
        if (x->now.dir[d].known)
            json_array_append_new(a, link_json(x, d));
    return a;
}

/* ---- groups ---- */

static json_t *group_json(const struct live_fabric *x, const struct live_group *g)
{
    json_t *members = json_array(), *at = json_object();

    for (unsigned i = 0; i < g->n_members; i++)
        json_array_append_new(members,
                              json_pack("{s:i, s:s?, s:s}", "member", (int)g->member[i].member,
                                        "host", node_name(x, g->member[i].node), "state",
                                        g->member[i].left     ? "left"
                                        : g->member[i].joined ? "joined"
                                                              : "awaited"));
    for (unsigned i = 0; i < g->n_at; i++)
        json_object_set_new(at, x->f->nodes[g->at[i].node].name,
                            json_pack("{s:o, s:o, s:o, s:o}", "children",
                                      live_json_count(g->at[i].children), "joined",
                                      live_json_count(g->at[i].joined), "slots",
                                      live_json_count(g->at[i].slots), "slots_used",
                                      live_json_count(g->at[i].slots_used)));
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:s?, s:b, s:b, s:o, s:o, s:o, s:o}", "kind", live_kind(x, g->kind),
        "tree", g->kind == 1 ? json_null() : live_json_count(g->tree), "id", live_json_count(g->id),
        "job", json_sprintf("%08llx", (unsigned long long)g->job), "owner", node_name(x, g->owner),
        "open", g->open, "busy", g->busy, "slots_reduced", live_json_count(g->reduced), "age_us",
        json_real((double)x->now.now_ps * 1e-6 - (double)g->born_us), "members", members, "nodes",
        at);
}

static json_t *groups_json(const struct live_fabric *x)
{
    json_t *a = json_array();

    for (unsigned i = 0; i < x->now.n_groups; i++)
        json_array_append_new(a, group_json(x, &x->now.group[i]));
    return a;
}

static json_t *slots_json(const struct live_fabric *x)
{
    json_t *a = json_array();

    for (unsigned i = 0; i < x->now.n_slots; i++) {
        const uint64_t *v = x->now.slot[i].v;
        const char *program = x->now.slot[i].program;

        json_array_append_new(
            a,
            json_pack(
                "{s:s, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "host",
                x->f->nodes[v[SLOT_node]].name, "port", live_json_count(v[SLOT_port]), "slot",
                live_json_count(v[SLOT_slot]), "pid",
                v[SLOT_pid] ? live_json_count(v[SLOT_pid]) : json_null(), "program",
                *program ? program : NULL, "frames_from", live_json_count(v[SLOT_rx_frames]),
                "frames_to", live_json_count(v[SLOT_tx_frames]), "bad_frames",
                live_json_count(v[SLOT_bad_frames]), "no_buffer",
                live_json_count(v[SLOT_no_buffer]), "overflow", live_json_count(v[SLOT_overflow]),
                "stalled", live_json_count(v[SLOT_stalled]), "connects",
                live_json_count(v[SLOT_connects]), "refused", live_json_count(v[SLOT_refused])));
    }
    return a;
}

/* ---- a fabric ---- */

static json_t *procs_json(const struct live_fabric *x)
{
    json_t *a = json_array();

    for (unsigned i = 0; i < x->n_procs; i++)
        json_array_append_new(a, json_pack("{s:s, s:o, s:s}", "name", x->proc[i].name, "pid",
                                           x->proc[i].pid && x->proc[i].pid != PROCESS_AWAY
                                               ? json_integer(x->proc[i].pid)
                                               : json_null(),
                                           "state", live_proc_state(&x->proc[i])));
    return a;
}

static json_t *fidelity_json(const struct live_fabric *x)
{
    double per = 1e3 * (x->dilation ? x->dilation : 1);

    return json_pack("{s:o, s:f, s:f, s:f, s:f}", "handoffs", live_json_count(live_handoffs(x)),
                     "p50_lag_us", (double)live_lag_ns(x, 0.5) / per, "p99_lag_us",
                     (double)live_lag_ns(x, 0.99) / per, "p99_lag_wall_us",
                     (double)live_lag_ns(x, 0.99) / 1e3, "late_share", live_late_share(x));
}

static json_t *fabric_json(const struct live_fabric *x, unsigned parts)
{
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:i, s:f, s:f, s:o, s:o, s:O}", "name", x->f->name, "run",
                  x->rd.path, "conf", x->f->path, "dilation", (int)x->dilation, "time_us",
                  (double)x->now.now_ps * 1e-6, "since_us", (double)x->before.now_ps * 1e-6,
                  "processes", procs_json(x), "fidelity", fidelity_json(x), "totals", x->totals);

    if (parts & LIVE_LINKS)
        json_object_set_new(j, "links", links_json(x));
    if (parts & LIVE_GROUPS) {
        json_object_set_new(j, "groups", groups_json(x));
        json_object_set_new(j, "slots", slots_json(x));
        json_object_set(j, "aggregation", x->aggregation);
    }
    return j;
}

json_t *live_json(const struct live *l, unsigned parts)
{
    json_t *a = json_array();

    for (unsigned i = 0; i < l->n; i++)
        json_array_append_new(a, fabric_json(l->fab[i], parts));
    return json_pack("{s:i, s:s, s:o}", "schema", 1, "version", TRIB_VERSION, "fabrics", a);
}

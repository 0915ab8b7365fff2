/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/telemetry/telemetry_tables.h"

#include "io/loop_impl.h"
#include "io/telemetry/telemetry_link.h"
#include "io/telemetry/telemetry_number.h"
#include "protocols/host/registry.h"
#include "switch/net/net_stats.h"
#include "switch/protocol/protocol_node.h"
#include "switch/reduce/an.h"

#include <rte_telemetry.h>
#include <stdlib.h>
#include <string.h>

#define HEAD 3 /* numbers before the rows */
static_assert(HEAD + TELEMETRY_CELLS <= RTE_TEL_MAX_ARRAY_ENTRIES, "an answer has room for it");
static_assert(PORT_COLUMNS_N + DROP_REASONS <= TELEMETRY_COLUMNS, "a bit for each column");
static_assert(GROUP_COLUMNS_N <= TELEMETRY_COLUMNS && SLOT_COLUMNS_N <= TELEMETRY_COLUMNS,
              "the same");

/* The answer in progress; there is one at a time, in the loop's thread. */
struct table_answer {
    unsigned long first, row; /* first row to show; next row */
    unsigned columns, rows;
    uint64_t used; /* bit per column that is not 0 in all rows */
    bool full;
    uint64_t cell[TELEMETRY_CELLS][TELEMETRY_COLUMNS];
};
static struct table_answer answer;

static bool table_answer_begin(struct table_answer *a, unsigned columns, const char *params,
                               struct rte_tel_data *d)
{
    char *end = NULL;

    a->first = params ? strtoul(params, &end, 10) : 0;
    if (end && (end == params || *end || *params == '-')) {
        telemetry_say(d, "error", "expected the first row as a number");
        return false;
    }
    a->columns = columns;
    a->row = a->rows = 0;
    a->used = 1;
    a->full = false;
    return true;
}

static void add_row(struct table_answer *a, const uint64_t *v)
{
    uint64_t used = a->used;

    if (a->full || a->row++ < a->first)
        return;
    for (unsigned i = 0; i < a->columns; i++)
        used |= v[i] ? 1ull << i : 0;
    if ((a->rows + 1) * (unsigned)__builtin_popcountll(used) > TELEMETRY_CELLS) {
        a->full = true;
        a->row--;
        return;
    }
    a->used = used;
    memcpy(a->cell[a->rows++], v, a->columns * sizeof(*v));
}

static void table_answer_end(const struct table_answer *a, const struct loop *l,
                             struct rte_tel_data *d)
{
    rte_tel_data_start_array(d, TELEMETRY_NUMBERS);
    telemetry_append(d, (uint64_t)clock_fabric_ps(l->sh));
    telemetry_append(d, a->full ? a->row : 0);
    telemetry_append(d, a->used);
    for (unsigned r = 0; r < a->rows; r++)
        for (unsigned i = 0; i < a->columns; i++)
            if (a->used & 1ull << i)
                telemetry_append(d, a->cell[r][i]);
}

/* ---- ports ---- */

static void add_sent(uint64_t *v, const struct egress *e, int64_t now_ps)
{
    const struct egress_stats s = egress_stats(e);

    v[PORT_paused] = egress_is_paused(e, now_ps);
    v[PORT_frames] = s.frames;
    v[PORT_bytes] = s.bytes;
    v[PORT_link_bytes] = s.link_bytes;
    v[PORT_busy_ps] = (uint64_t)s.busy_ps;
    v[PORT_paused_ps] = (uint64_t)egress_paused_ps(e, now_ps);
    for (unsigned k = 0; k < FRAME_CLASSES; k++)
        v[PORT_queue_bytes] += egress_occupancy(e, k);
    v[PORT_queue_lossless_bytes] = egress_occupancy(e, FRAME_LOSSLESS);
    v[PORT_queue_peak_bytes] = s.peak_bytes;
    v[PORT_ecn_marks] = s.ecn_marks;
    v[PORT_watchdog_drops] = s.discarded;
    v[PORT_lost] = s.lost;
    v[PORT_lost_bytes] = s.lost_bytes;
    v[PORT_duplicated] = s.duplicated;
    v[PORT_reordered] = s.reordered;
    v[PORT_corrupted] = s.corrupted;
    v[PORT_down_drops] = s.down_drops;
    v[PORT_queue_full] = s.overflows;
}

static void add_port(struct loop *l, unsigned direction)
{
    const struct fab_link *k = &l->fab->links[direction / 2];
    uint16_t port = direction & 1 ? k->b_port : k->a_port;
    struct node *nd = net_node(l->net, direction & 1 ? k->b : k->a);
    uint64_t v[TELEMETRY_COLUMNS] = {direction};

    if (!nd || port >= nd->n_ports || !nd->egress[port])
        return;
    v[PORT_down] = !net_link_up(l->net, direction / 2);
    v[PORT_rx_frames] = nd->cnt[port].rx_frames;
    v[PORT_rx_bytes] = nd->cnt[port].rx_bytes;
    v[PORT_pauses_sent] = nd->cnt[port].pauses_sent;
    v[PORT_pauses_received] = nd->cnt[port].pauses_received;
    v[PORT_watchdog_trips] = nd->cnt[port].watchdog_trips;
    add_sent(v, nd->egress[port], net_now(l->net));
    for (unsigned r = 0; r < DROP_REASONS; r++)
        v[PORT_drops + r] = nd->cnt[port].drops[r];
    add_row(&answer, v);
}

void telemetry_ports(struct loop *l, const char *params, struct rte_tel_data *d)
{
    if (!table_answer_begin(&answer, PORT_COLUMNS_N + DROP_REASONS, params, d))
        return;
    for (unsigned i = 0; i < 2u * l->fab->n_links; i++)
        add_port(l, i);
    table_answer_end(&answer, l, d);
}

/* ---- groups ---- */

static void add_group(void *ctx, const struct group_view *g)
{
    const uint64_t v[TELEMETRY_COLUMNS] = {[GROUP_node] = *(const uint16_t *)ctx,
                                           [GROUP_kind] = g->kind,
                                           [GROUP_tree] = g->tree,
                                           [GROUP_id] = g->id,
                                           [GROUP_job] = group_view_job(g->key),
                                           [GROUP_open] = g->open,
                                           [GROUP_busy] = g->busy,
                                           [GROUP_founder] =
                                               g->founder == FAB_NONE ? 0 : g->founder + 1u,
                                           [GROUP_slots] = g->slots,
                                           [GROUP_slots_used] = g->used,
                                           [GROUP_reduced] = g->reduced,
                                           [GROUP_born_us] = (uint64_t)(g->born_ps / PS_PER_US),
                                           [GROUP_children] = g->children,
                                           [GROUP_child] = g->node == FAB_NONE ? 0 : g->node + 1u,
                                           [GROUP_member] = g->member,
                                           [GROUP_is_member] = g->is_member,
                                           [GROUP_joined] = g->joined,
                                           [GROUP_left] = g->left};

    add_row(&answer, v);
}

void telemetry_groups(struct loop *l, const char *params, struct rte_tel_data *d)
{
    if (!table_answer_begin(&answer, GROUP_COLUMNS_N, params, d))
        return;
    for (uint16_t i = 0; i < l->fab->n_nodes; i++) {
        const struct an *an = net_an(l->net, i);

        if (an)
            an_view(an, add_group, &i);
        if (an && net_protocols(l->net, i))
            protocol_node_view(net_protocols(l->net, i), add_group, &i);
    }
    table_answer_end(&answer, l, d);
}

void telemetry_kinds(struct loop *l, const char *params, struct rte_tel_data *d)
{
    (void)l;
    (void)params;
    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    rte_tel_data_add_array_string(d, "tree");
    rte_tel_data_add_array_string(d, "multimem");
    for (unsigned i = 0; i < PROTO_SEATS && proto_at(i); i++)
        rte_tel_data_add_array_string(d, proto_at(i)->name);
}

/* ---- slots ---- */

void telemetry_slots(struct loop *l, const char *params, struct rte_tel_data *d)
{
    struct link_io_info c;

    if (!table_answer_begin(&answer, SLOT_COLUMNS_N, params, d))
        return;
    for (unsigned i = 0; loop_link_io(l, i, &c); i++) {
        const uint64_t v[TELEMETRY_COLUMNS] = {[SLOT_node] = c.node,
                                               [SLOT_port] = c.port,
                                               [SLOT_slot] = c.slot,
                                               [SLOT_pid] = (uint64_t)c.pid,
                                               [SLOT_connects] = c.connects,
                                               [SLOT_refused] = c.refused,
                                               [SLOT_rx_frames] = c.rx,
                                               [SLOT_tx_frames] = c.tx,
                                               [SLOT_bad_frames] = c.rx_bad + c.tx_bad,
                                               [SLOT_no_buffer] = c.rx_nobuf,
                                               [SLOT_overflow] = c.overflow,
                                               [SLOT_stalled] = c.stall_drops};

        if (c.kind == LINK_IO_SLOT && (c.connects || c.refused))
            add_row(&answer, v);
    }
    table_answer_end(&answer, l, d);
}

/* ---- lateness ---- */

void telemetry_lag(struct loop *l, const char *params, struct rte_tel_data *d)
{
    if (!table_answer_begin(&answer, LAG_COLUMNS_N, params, d))
        return;
    for (unsigned b = 0; b < LAG_BUCKETS; b++) {
        uint64_t n = atomic_load_explicit(&l->lag->n[b], memory_order_relaxed);
        const uint64_t v[TELEMETRY_COLUMNS] = {b, (uint64_t)lag_bucket_top(b), n};

        if (n)
            add_row(&answer, v);
    }
    table_answer_end(&answer, l, d);
}

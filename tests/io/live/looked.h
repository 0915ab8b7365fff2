/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric that has been looked at twice, with round numbers: what views and texts of it are checked by. */
#ifndef TESTS_IO_LIVE_LOOKED_H
#define TESTS_IO_LIVE_LOOKED_H

#include "io/live/live.h"
#include "machine/shared.h"
#include "tests/fabric/load.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>

#define US 1000000ll
#define MS (1000 * US)
#define S  (1000 * MS)

/* Links: 0 h0-s, 1 and 2 two cables h1-s, 3 from a host outside. */
static const char looked_conf[] =
    "name = \"lab\"; link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
    "nodes = ( { name = (\"h0\", \"h1\", \"g\"); kind = \"host\"; },\n"
    "  { name = (\"s\"); role = \"leaf\"; reduce = { }; } );\n"
    "links = ( { a = \"h0\"; b = \"s\"; }, { a = \"h1\"; b = \"s\"; cables = 2; },\n"
    "  { a = \"g\"; b = \"s\"; port = \"vhost:g.sock\"; rate = \"40Gb/s\"; } );";

enum { H0, H1, G, LEAF }; /* nodes */

static inline struct live_dir *looked_dir(struct live_fabric *x, unsigned d)
{
    x->now.dir[d].known = true;
    x->now.dir[d].now_ps = x->now.now_ps;
    x->before.dir[d].known = true;
    x->before.dir[d].now_ps = x->before.now_ps;
    return &x->now.dir[d];
}

/* h0 sends at 10 GB/s of 50 with a queue; h1's second cable is down; what comes back to h0 is lost. */
static inline void looked_links(struct live_fabric *x)
{
    struct live_dir *d = looked_dir(x, 0);

    x->before.dir[0].v[PORT_link_bytes] = 1000000000;
    x->before.dir[0].v[PORT_busy_ps] = S / 10;
    d->v[PORT_direction] = 0;
    d->v[PORT_frames] = 1500000;
    d->v[PORT_bytes] = 5900000000;
    d->v[PORT_link_bytes] = 6000000000;
    d->v[PORT_busy_ps] = 2 * S / 10;
    d->v[PORT_queue_bytes] = 12345;
    d->v[PORT_queue_lossless_bytes] = 345;
    d->v[PORT_queue_peak_bytes] = 9950;
    d->v[PORT_ecn_marks] = 17;
    d->v[PORT_pauses_received] = 1234567;
    d->v[PORT_pauses_sent] = 8;
    d->v[PORT_paused] = 1;
    d->v[PORT_paused_ps] = 2500 * US;
    d->v[PORT_watchdog_trips] = 3;
    d->v[PORT_lost_bytes] = 77;
    d->v[PORT_duplicated] = 4;
    d->v[PORT_reordered] = 5;
    d->v[PORT_corrupted] = 6;
    d->v[PORT_queue_full] = 12;
    d->v[PORT_drops + DROP_NO_ROUTE] = 2;
    d = looked_dir(x, 1);
    d->v[PORT_lost] = 9;
    looked_dir(x, 2);
    looked_dir(x, 3);
    looked_dir(x, 4)->v[PORT_down] = 1;
    looked_dir(x, 6);
    looked_dir(x, 7)->v[PORT_link_bytes] = 2500000000; /* 5 GB/s */
    x->now.dir[7].v[PORT_busy_ps] = S;                 /* a frame counts when it starts */
    snprintf(x->faults[0], sizeof(x->faults[0]), "loss=0.1%%");
    snprintf(x->faults[1], sizeof(x->faults[1]), "dup=1%%");
}

static inline void looked_groups(struct live_fabric *x)
{
    const uint64_t rows[][GROUP_COLUMNS_N] = {
        {[GROUP_node] = LEAF,
         [GROUP_kind] = 0,
         [GROUP_tree] = 2,
         [GROUP_id] = 7,
         [GROUP_job] = 0xabc,
         [GROUP_open] = 1,
         [GROUP_busy] = 1,
         [GROUP_founder] = H1 + 1,
         [GROUP_slots] = 64,
         [GROUP_slots_used] = 5,
         [GROUP_reduced] = 1000,
         [GROUP_born_us] = 500000,
         [GROUP_children] = 2,
         [GROUP_child] = H1 + 1,
         [GROUP_member] = 1,
         [GROUP_is_member] = 1,
         [GROUP_joined] = 1},
        {[GROUP_node] = LEAF,
         [GROUP_kind] = 0,
         [GROUP_tree] = 2,
         [GROUP_id] = 7,
         [GROUP_job] = 0xabc,
         [GROUP_open] = 1,
         [GROUP_busy] = 1,
         [GROUP_founder] = H1 + 1,
         [GROUP_slots] = 64,
         [GROUP_slots_used] = 5,
         [GROUP_reduced] = 1000,
         [GROUP_born_us] = 500000,
         [GROUP_children] = 2,
         [GROUP_child] = H0 + 1,
         [GROUP_member] = 0,
         [GROUP_is_member] = 1,
         [GROUP_joined] = 1,
         [GROUP_left] = 1},
        {[GROUP_node] = LEAF,
         [GROUP_kind] = 1,
         [GROUP_id] = 8,
         [GROUP_job] = 0x123456789,
         [GROUP_open] = 1,
         [GROUP_slots] = 3,
         [GROUP_children] = 1,
         [GROUP_child] = 0,
         [GROUP_member] = 4,
         [GROUP_is_member] = 1,
         [GROUP_born_us] = 2000000},
    };

    for (unsigned i = 0; i < LEN(rows); i++)
        live_group_row(&x->now, rows[i]);
}

static inline struct live_fabric *looked_new(void)
{
    struct live_fabric *x = calloc(1, sizeof(*x));

    assert_non_null(x);
    x->f = load_text(looked_conf);
    snprintf(x->f->path, sizeof(x->f->path), "a \"b\"\\c.conf");
    snprintf(x->rd.path, sizeof(x->rd.path), "/run/x");
    x->faults = calloc(x->f->n_links, sizeof(*x->faults));
    x->dilation = 20;
    x->now.now_ps = 2 * S;
    x->before.now_ps = 3 * S / 2;
    x->now.dir = calloc(2u * x->f->n_links, sizeof(*x->now.dir));
    x->before.dir = calloc(2u * x->f->n_links, sizeof(*x->before.dir));
    x->proc[0] = (struct live_proc){.name = "p0", .pid = 41, .fd = -1, .state = LIVE_READY};
    x->proc[1] = (struct live_proc){.name = "p1", .fd = -1, .state = LIVE_STARTING};
    x->proc[2] =
        (struct live_proc){.name = "p2", .pid = PROCESS_AWAY, .fd = -1, .state = LIVE_READY};
    x->n_procs = 3;
    snprintf(x->kind[0], sizeof(x->kind[0]), "reduce");
    snprintf(x->kind[1], sizeof(x->kind[1]), "multimem");
    x->n_kinds = 2;
    looked_links(x);
    looked_groups(x);
    x->now.slot = calloc(2, sizeof(*x->now.slot));
    x->now.n_slots = 2;
    x->now.slot[0] = (struct live_slot){{[SLOT_node] = H1,
                                         [SLOT_port] = 1,
                                         [SLOT_slot] = 3,
                                         [SLOT_pid] = 77,
                                         [SLOT_connects] = 2,
                                         [SLOT_refused] = 1,
                                         [SLOT_rx_frames] = 10,
                                         [SLOT_tx_frames] = 20,
                                         [SLOT_bad_frames] = 4,
                                         [SLOT_no_buffer] = 5,
                                         [SLOT_overflow] = 6,
                                         [SLOT_stalled] = 7},
                                        "prog"};
    x->now.slot[1] = (struct live_slot){{[SLOT_node] = H0, [SLOT_refused] = 9}, ""};
    /* 100 hand-offs since the last look, 2 of them above the bound, 1 at a millisecond; 10 before */
    x->lag_top[5] = 800;
    x->now.lag[5] = 107;
    x->before.lag[5] = 10;
    x->lag_top[6] = 50000;
    x->now.lag[6] = 2;
    x->lag_top[7] = 1000000;
    x->now.lag[7] = 1;
    x->totals = json_pack("{s:i}", "frames", 3);
    x->aggregation = json_pack("{s:{s:i, s:i}, s:n}", "s", "groups", 2, "slots", 1000, "q");
    return x;
}

static inline void looked_free(struct live_fabric *x)
{
    live_groups_free(&x->now);
    free(x->now.dir);
    free(x->before.dir);
    free(x->now.slot);
    free(x->faults);
    json_decref(x->totals);
    json_decref(x->aggregation);
    fabric_free(x->f);
    free(x);
}

#endif

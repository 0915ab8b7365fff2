/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staging, for buffers in GPU memory that the HCA does not reach: turns a schedule into one whose
 * messages are in host memory, with additional steps that copy.
 *
 * Every lane of messages gets a lane of copies, with as many steps: step i copies message i. A step
 * that waited for n steps of the lane waits for n of its copies, and nothing else changes.
 *
 *   SEND   up: a stage buffer = what is sent; then SEND of the buffer
 *   RECV   to a slot; then down: the destination = the slot
 *   AGG    up, then AGG in place in the stage buffer, then down
 *
 * There is nothing to copy up where the HCA reads the GPU's memory itself.
 *
 * Lanes run concurrently: while messages are in flight, later ones are copied and others reduced. A
 * lane has BUFFERS stage buffers, used in turn.
 *
 * Rejected: copying the whole vector before and after the operation. It is simpler, and takes as
 * long as the links of a GPU take for twice the vector.
 */
#include "collective/stage.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS 64u /* stage buffers of a lane */

struct staging {
    const struct sched *was;
    bool reached;
    struct sched to;
    uint32_t *up, *down; /* [lanes of was] lane + 1; 0: none */
    uint64_t *at;        /* [lanes of was] offset of the first stage buffer */
    uint64_t *piece;     /* [lanes of was] bytes of one */
    struct dep **reader; /* [lanes of was] RECV: for each message, the step that reads its slot */
};

static bool is_messages(enum lane_kind k)
{
    return k == LANE_SEND || k == LANE_RECV || k == LANE_AGG;
}

/* The lane that other lanes wait for instead of this one: its copies, if it has any. */
static uint32_t end_of(const struct staging *g, uint32_t lane)
{
    uint32_t copies = g->down[lane] ? g->down[lane] : g->up[lane];

    T_ASSERT_HOT(lane < g->was->n_lanes, "a dependency on a lane that the schedule does not have");
    return copies ? copies - 1 : lane;
}

/* A step's dependencies, with copies instead of messages. */
static struct step mapped(const struct staging *g, const struct step *st, const struct dep *deps)
{
    struct step to = *st;

    to.n_deps = 0;
    for (unsigned i = 0; i < st->n_deps; i++)
        step_after(&to, (struct dep){end_of(g, deps[i].lane), deps[i].count});
    return to;
}

static void wait_for(struct staging *g, struct step *st, uint32_t lane, uint64_t count)
{
    if (!step_after(st, (struct dep){lane, (uint32_t)count}))
        g->to.rc = -E2BIG;
}

static struct ref piece_of(const struct staging *g, unsigned lane, uint64_t i)
{
    return (struct ref){.buf = BUF_STAGE, .off = g->at[lane] + i % BUFFERS * g->piece[lane]};
}

/* A copy step. Without anything to copy it only keeps the lanes' counts equal. */
static struct step copy_of(struct ref dst, struct ref src, uint64_t len)
{
    struct step st = {.op = STEP_COPY, .dst = dst, .a = src, .len = len};

    if (!len || dst.buf == BUF_NONE || src.buf == BUF_NONE)
        st = (struct step){.op = STEP_COPY};
    return st;
}

/* The reduction whose result is exactly what a message sends; NULL: there is none, or other steps
 * may have written there since. */
static struct step *maker_of(struct staging *g, const struct step *send)
{
    struct step *maker = NULL;

    for (unsigned i = 0; i < send->n_deps; i++) {
        const struct dep *d = &send->dep[i];
        const struct lane *was = &g->was->lane[d->lane];
        const struct step *st = lane_step(was, d->count - 1);

        if (was->kind == LANE_SEND)
            continue;
        if (maker || was->kind != LANE_CPU || st->op != STEP_REDUCE || st->dst.buf != send->a.buf ||
            st->dst.off != send->a.off || st->len != send->len)
            return NULL;
        maker = lane_step(&g->to.lane[d->lane], d->count - 1);
    }
    return maker;
}

/* Adds the hints, once all steps are there. */
static void give_hints(struct staging *g)
{
    for (unsigned l = 0; l < g->was->n_lanes; l++) {
        const struct lane *w = &g->was->lane[l];

        for (uint64_t i = 0; w->kind == LANE_SEND && g->up[l] && i < w->n; i++) {
            struct step *st = maker_of(g, lane_step(w, i));

            if (!st || st->region == BUF_STAGE) /* has a hint already, for its first message */
                continue;
            st->region = BUF_STAGE;
            st->off = piece_of(g, l, i).off;
            st->copy.lane = g->up[l] - 1;
            st->copy.step = (uint32_t)i;
        }
    }
}

bool stage_hint(const struct sched *s, const struct step *st, struct stage_hint *h)
{
    if (st->op != STEP_REDUCE || st->region != BUF_STAGE)
        return false;
    h->up = st->copy.lane;
    h->step = st->copy.step;
    h->send = s->lane[h->up].chan;
    h->free_from = h->step < BUFFERS ? 0 : h->step + 1 - BUFFERS;
    h->off = st->off;
    return true;
}

/* Computes the needed host memory, and finds the readers of slots. */
static int measure(struct staging *g)
{
    for (unsigned l = 0; l < g->was->n_lanes; l++) {
        const struct lane *w = &g->was->lane[l];

        for (uint64_t i = 0; i < w->n; i++)
            if (lane_step(w, i)->len > g->piece[l])
                g->piece[l] = (lane_step(w, i)->len + 63) & ~63ull;
        if (g->up[l] || w->kind == LANE_AGG) {
            g->at[l] = g->to.stage_bytes;
            g->to.stage_bytes += g->piece[l] * (w->n < BUFFERS ? w->n : BUFFERS);
        }
        if (w->kind != LANE_RECV)
            continue;
        g->reader[l] = calloc(w->n + 1, sizeof(**g->reader));
        if (!g->reader[l])
            return -ENOMEM;
        for (uint64_t i = 0; i < w->n; i++)
            if (lane_step(w, i)->dst.buf != BUF_SLOT)
                g->reader[l][i] = (struct dep){g->down[l] - 1, (uint32_t)i + 1};
    }
    for (unsigned l = 0; l < g->was->n_lanes; l++)
        for (uint64_t i = 0; i < g->was->lane[l].n; i++) {
            const struct step *st = lane_step(&g->was->lane[l], i);
            const struct ref *ref[2] = {&st->a, &st->b};

            for (unsigned k = 0; k < 2; k++)
                if (ref[k]->buf == BUF_SLOT) {
                    T_ASSERT(g->was->lane[ref[k]->lane].kind == LANE_RECV &&
                                 ref[k]->off < g->was->lane[ref[k]->lane].n,
                             "a step reads the slot of a message that nobody receives");
                    g->reader[ref[k]->lane][ref[k]->off] = (struct dep){l, (uint32_t)i + 1};
                }
        }
    return 0;
}

/* Appends message i of the lane, with the copies before and after it. */
static void stage_message(struct staging *g, unsigned l, uint64_t i, const struct step *was)
{
    struct lane *w = &g->was->lane[l];
    struct ref piece = piece_of(g, l, i);
    struct step st = mapped(g, was, was->dep), up, down;
    unsigned slots = sched_slots(g->was->in.topo);

    T_ASSERT(!g->up[l] || piece.off + was->len <= g->to.stage_bytes,
             "a message without a stage buffer");
    if (g->up[l]) {
        up = copy_of(piece, was->a, was->len);
        up.n_deps = st.n_deps;
        memcpy(up.dep, st.dep, sizeof(up.dep));
        if (i >= BUFFERS)
            wait_for(g, &up, g->down[l] ? g->down[l] - 1 : l, i - BUFFERS + 1);
        sched_add(&g->to, g->up[l] - 1, &up);
        st.n_deps = 0;
        wait_for(g, &st, g->up[l] - 1, i + 1);
        if (was->a.buf != BUF_NONE)
            st.a = piece;
    }
    if (!g->up[l] && w->kind == LANE_AGG && i >= BUFFERS)
        wait_for(g, &st, g->down[l] - 1, i - BUFFERS + 1);
    T_ASSERT(w->kind != LANE_RECV || i < slots || g->reader[l][i - slots].count,
             "a message stays in its slot for ever: nobody reads it");
    if (w->kind == LANE_RECV && i >= slots)
        wait_for(g, &st, g->reader[l][i - slots].lane, g->reader[l][i - slots].count);
    if (w->kind == LANE_AGG && was->dst.buf != BUF_NONE)
        st.dst = piece;
    if (w->kind == LANE_RECV)
        st.a = (struct ref){.buf = BUF_NONE};
    if (w->kind == LANE_RECV && was->dst.buf != BUF_NONE)
        st.dst = (struct ref){.buf = BUF_SLOT, .lane = l, .off = i};
    sched_add(&g->to, l, &st);
    if (g->down[l]) {
        down = copy_of(was->dst, st.dst, was->dst.buf == BUF_SLOT ? 0 : was->len);
        wait_for(g, &down, l, i + 1);
        sched_add(&g->to, g->down[l] - 1, &down);
    }
}

/* Makes the lanes: the old ones keep their numbers, and those of copies follow. */
static void make_lanes(struct staging *g)
{
    unsigned n = g->was->n_lanes;

    for (unsigned l = 0; l < n; l++)
        sched_lane(&g->to, g->was->lane[l].kind, g->was->lane[l].peer, g->was->lane[l].chan);
    for (unsigned l = 0; l < n; l++) {
        enum lane_kind k = g->was->lane[l].kind;

        if (!g->reached && (k == LANE_SEND || k == LANE_AGG))
            g->up[l] = sched_lane(&g->to, LANE_CPU, STAGE_UP, l) + 1;
        if (k == LANE_RECV || k == LANE_AGG)
            g->down[l] = sched_lane(&g->to, LANE_CPU, STAGE_DOWN, l) + 1;
    }
}

static int build(struct staging *g)
{
    int rc;

    make_lanes(g);
    rc = g->to.rc ? g->to.rc : measure(g);
    for (unsigned l = 0; !rc && l < g->was->n_lanes; l++) {
        const struct lane *w = &g->was->lane[l];

        for (uint64_t i = 0; i < w->n; i++) {
            const struct step *was = lane_step(w, i);
            struct step full = {0};

            memcpy(&full, was, offsetof(struct step, dep) + was->n_deps * sizeof(*was->dep));
            if (is_messages(w->kind)) {
                stage_message(g, l, i, &full);
                continue;
            }
            full = mapped(g, &full, full.dep);
            sched_add(&g->to, l, &full);
        }
    }
    rc = rc ? rc : g->to.rc;
    if (!rc)
        give_hints(g);
    return rc;
}

int sched_stage(struct sched *s, bool reached)
{
    unsigned n = s->n_lanes;
    struct staging g = {.was = s, .reached = reached, .to = *s};
    int rc = -ENOMEM;

    for (unsigned l = 0; l < n; l++)
        if (s->lane[l].kind == LANE_MM)
            return -ENOTSUP;
    g.to.lane = NULL;
    g.to.n_lanes = g.to.room = g.to.n_steps = 0;
    memset(g.to.bucket, 0, sizeof(g.to.bucket));
    g.up = calloc(n + 1, sizeof(*g.up));
    g.down = calloc(n + 1, sizeof(*g.down));
    g.at = calloc(n + 1, sizeof(*g.at));
    g.piece = calloc(n + 1, sizeof(*g.piece));
    g.reader = calloc(n + 1, sizeof(*g.reader));
    if (g.up && g.down && g.at && g.piece && g.reader)
        rc = build(&g);
    for (unsigned l = 0; g.reader && l < n; l++)
        free(g.reader[l]);
    free(g.up);
    free(g.down);
    free(g.at);
    free(g.piece);
    free(g.reader);
    sched_free(rc ? &g.to : s);
    if (!rc)
        *s = g.to;
    return rc;
}

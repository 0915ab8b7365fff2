/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/protocols/star_state.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void star_fault(struct star *s, const char *what)
{
    if (!s->why[0])
        snprintf(s->why, sizeof(s->why), "%s", what);
    s->broken = true;
}

static bool chance(struct star *s, uint32_t ppm)
{
    return ppm && random_next(&s->rnd) % 1000000 < ppm;
}

/* ---- events in order of time ---- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->order < b->order;
}

void star_add(struct star *s, struct event e)
{
    struct event *x = malloc(sizeof(*x));
    uint32_t i = s->n++;

    if (s->n > s->room) {
        s->room = s->room ? 2 * s->room : 1024;
        s->heap = realloc(s->heap, s->room * sizeof(*s->heap));
    }
    *x = e;
    x->order = s->order++;
    for (; i && before(x, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = x;
}

struct event *star_next(struct star *s)
{
    struct event *e = s->heap[0], *last = s->heap[--s->n];
    uint32_t i = 0, c;

    while ((c = 2 * i + 1) < s->n) {
        c += c + 1 < s->n && before(s->heap[c + 1], s->heap[c]);
        if (!before(s->heap[c], last))
            break;
        s->heap[i] = s->heap[c];
        i = c;
    }
    s->heap[i] = last;
    return e;
}

/* ---- links ---- */

int star_leaf(struct star *s, int job, unsigned rank)
{
    unsigned n = s->job[job].nranks, leaves = s->c.leaves < n ? s->c.leaves : n;

    return (int)(rank * leaves / n);
}

/* One link on; takes the event. */
void star_hop(struct star *s, struct event *e, struct link *l, int to)
{
    int64_t size = e->head_bytes + e->data_bytes + OVERHEAD, latency = s->c.latency_ps;
    int copies = 1 + chance(s, s->c.repeat_ppm);

    l->free_ps = l->free_ps > s->now ? l->free_ps : s->now;
    l->free_ps += (int64_t)((double)size * 8e12 / (double)l->rate_bps);
    e->at = to;
    e->marked |= chance(s, s->c.mark_ppm);
    for (int k = 0; k < copies; k++) {
        struct event x = *e;

        x.at_ps = l->free_ps + latency;
        if (chance(s, s->c.delay_ppm))
            x.at_ps += (int64_t)(random_next(&s->rnd) % (uint64_t)(40 * latency));
        if (chance(s, s->c.loss_ppm)) {
            if (e->to >= 0)
                s->job[e->job].rank[e->to].coming -= k == 0;
            continue;
        }
        if (e->to >= 0 && k)
            s->job[e->job].rank[e->to].coming++;
        x.data = malloc(e->data_bytes + 4u);
        memcpy(x.data, e->data, e->data_bytes);
        star_add(s, x);
    }
    free(e->data);
}

void star_onward(struct star *s, struct event *e)
{
    struct job *j = &s->job[e->job];
    int leaf = e->to >= 0 ? star_leaf(s, e->job, (unsigned)e->to) : -1 - e->to;

    if (e->at < ROOT && e->at != leaf)
        star_hop(s, e, &s->sw[e->at].up, ROOT);
    else if (e->at == ROOT)
        star_hop(s, e, &s->sw[leaf].down, leaf);
    else
        star_hop(s, e, &j->rank[e->to].down, -1);
}

struct event star_packet(struct star *s, int job, int from, int to, const void *head,
                         uint32_t head_bytes, const void *data, uint32_t data_bytes)
{
    struct event e = {.what = PACKET, .job = job, .from = from, .to = to, .target = -1};

    if (head_bytes > TRIB_HEAD || head_bytes + data_bytes > s->c.payload) {
        star_fault(s, "a packet is too long");
        head_bytes = data_bytes = 0;
    }
    e.head_bytes = head_bytes;
    e.data_bytes = data_bytes;
    memcpy(e.head, head, head_bytes);
    e.data = malloc(data_bytes + 4u);
    if (data_bytes)
        memcpy(e.data, data, data_bytes);
    if (to >= 0) {
        uint32_t *n = &s->job[job].rank[to].coming;

        if (++*n > s->most)
            s->most = *n;
    }
    return e;
}

unsigned star_ranks_below(struct star *s, int j, int leaf, unsigned *first)
{
    unsigned n = 0;

    for (unsigned r = s->job[j].nranks; r--;)
        if (star_leaf(s, j, r) == leaf) {
            *first = r;
            n++;
        }
    return n;
}

/* ---- deliveries ---- */

/* Packets of random bytes beside one that is real, to the same half. */
static struct trib_packet garbage(struct star *s, uint64_t *head, uint64_t *data, int from)
{
    struct trib_packet p = {.head = head, .data = data, .from = from};

    p.head_bytes = (uint32_t)(random_next(&s->rnd) % (TRIB_HEAD + 1));
    p.data_bytes = (uint32_t)(random_next(&s->rnd) % 65) * 4;
    for (unsigned i = 0; i < TRIB_HEAD / 8; i++)
        head[i] = random_next(&s->rnd) >> random_next(&s->rnd) % 64;
    if (chance(s, 500000)) /* plausible lengths */
        p.head_bytes = 8 * (1 + (uint32_t)(random_next(&s->rnd) % 6));
    return p;
}

static int from_of(struct star *s, const struct event *e, const struct trib_job *tj)
{
    unsigned first = 0;

    if (e->from < 0)
        return e->at == ROOT ? TRIB_CHILD(-1 - e->from) : TRIB_PARENT;
    if (e->at != ROOT && star_leaf(s, e->job, (unsigned)e->from) == e->at && tj) {
        star_ranks_below(s, e->job, e->at, &first);
        return TRIB_CHILD(e->from - (int)first);
    }
    return TRIB_RANK(e->from);
}

static void to_switch(struct star *s, struct event *e)
{
    struct sw *w = &s->sw[e->at];
    struct trib_job *tj = w->jobs[e->job];
    const struct trib_switch_half *half = s->c.protocol->sw;
    struct trib_packet p = {.head = e->head,
                            .data = e->data,
                            .head_bytes = e->head_bytes,
                            .data_bytes = e->data_bytes,
                            .marked = e->marked};
    uint64_t head[TRIB_HEAD / 8], data[32] = {0};

    if (!tj || !half)
        return;
    p.from = from_of(s, e, tj);
    w->now = e;
    w->bytes = w->ops = 0;
    half->packet(&w->s, tj, &p);
    if (chance(s, s->c.garbage_ppm)) {
        p = garbage(s, head, data, p.from);
        w->bytes = w->ops = 0;
        half->packet(&w->s, tj, &p);
    }
    w->now = NULL;
}

static void to_rank(struct star *s, struct event *e)
{
    struct rank *r = &s->job[e->job].rank[e->to];
    struct trib_packet p = {.head = e->head,
                            .data = e->data,
                            .head_bytes = e->head_bytes,
                            .data_bytes = e->data_bytes,
                            .from = e->from < 0 ? TRIB_SWITCH : TRIB_RANK(e->from),
                            .marked = e->marked};
    uint64_t head[TRIB_HEAD / 8], data[32] = {0};

    r->coming--;
    s->c.protocol->rank->packet(&r->r, &p);
    if (chance(s, s->c.garbage_ppm)) {
        p = garbage(s, head, data, p.from);
        s->c.protocol->rank->packet(&r->r, &p);
    }
}

static void deliver(struct star *s, struct event *e)
{
    if (e->at == -1) {
        to_rank(s, e);
        free(e->data);
    } else if (e->to == -1 - e->at) {
        to_switch(s, e);
        free(e->data);
    } else {
        star_onward(s, e);
    }
}

static void step(struct star *s, struct event *e)
{
    const struct trib_protocol *p = s->c.protocol;
    int rc;

    s->now = e->at_ps;
    if (e->what == PACKET) {
        deliver(s, e);
    } else if (e->what == TIMER && e->sw && e->sw->h.timer_ps == s->now) {
        e->sw->h.timer_ps = TRIB_NEVER;
        p->sw->timer(&e->sw->s);
    } else if (e->what == DEAD) {
        free(e->data);
    } else if (e->what == TIMER && e->rank && e->rank->h.timer_ps == s->now) {
        e->rank->h.timer_ps = TRIB_NEVER;
        p->rank->timer(&e->rank->r);
    } else if (e->what == SENT) {
        e->rank->queued--;
        if (e->rank->blocked) {
            e->rank->blocked = false;
            p->rank->room(&e->rank->r);
        }
    } else if (e->what == START) {
        e->rank->busy = true;
        rc = p->rank->start(&e->rank->r, &e->rank->op);
        if (rc && !s->why[0])
            snprintf(s->why, sizeof(s->why), "start: %s", strerror(-rc));
    }
}

const char *star_run(struct star *s)
{
    for (;;) {
        unsigned left = 0;
        struct event *e;

        for (int j = 0; j < JOBS; j++)
            left += s->job[j].live ? s->job[j].left : 0;
        if (!left || s->why[0])
            break;
        if (!s->n) {
            star_fault(s, "nothing happens any more");
            break;
        }
        e = star_next(s);
        step(s, e);
        free(e);
    }
    return s->why[0] ? s->why : NULL;
}

void star_begin(struct star *s, int job, const void *send, void *recv, uint64_t count,
                enum trib_type type, enum trib_sum op, int64_t skew_ps)
{
    struct job *j = &s->job[job];
    uint64_t bytes = count * trib_size(type);

    j->left = j->nranks;
    j->from_ps = s->now;
    for (unsigned r = 0; r < j->nranks; r++) {
        int64_t late = skew_ps ? (int64_t)(random_next(&s->rnd) % (uint64_t)skew_ps) : 0;

        j->rank[r].op = (struct trib_op){.number = j->number,
                                         .send = (const char *)send + r * bytes,
                                         .recv = (char *)recv + r * bytes,
                                         .count = count,
                                         .type = type,
                                         .op = op};
        star_add(s, (struct event){
                        .at_ps = s->now + late, .what = START, .job = job, .rank = &j->rank[r]});
    }
    j->number++;
}

const char *star_reduce(struct star *s, int job, const void *send, void *recv, uint64_t count,
                        enum trib_type type, enum trib_sum op, int64_t skew_ps)
{
    star_begin(s, job, send, recv, count, type, op, skew_ps);
    return star_run(s);
}

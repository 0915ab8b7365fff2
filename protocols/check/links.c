/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets in flight. A packet waits at each link of its path for earlier ones; then the case's seed
 * decides whether it is lost, duplicated or delayed. Time on all links is booked when a packet is
 * sent, so a packet is only one event.
 */
#include "protocols/check/check_fabric_priv.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

#define OVERHEAD 82u /* bytes of a packet on a link beside head and data */

struct path {
    struct wire *link[4];
    unsigned n;
};

static void path_append(struct path *p, struct wire *l)
{
    p->link[p->n++] = l;
}

static bool happens(struct check_fabric *f, uint32_t millionths)
{
    return millionths && random_next(&f->random) % 1000000 < millionths;
}

static int64_t up_to(struct check_fabric *f, int64_t ps)
{
    return ps > 0 ? (int64_t)(random_next(&f->random) % (uint64_t)ps) : 0;
}

/* Books the packet on its path. Returns when it arrives. */
static int64_t links_pass(struct check_fabric *f, const struct path *path, uint32_t bytes)
{
    const int64_t ps = (int64_t)((uint64_t)bytes * 8 * 1000000000000ull / f->c->rate_bps);
    int64_t t = f->now;

    for (unsigned i = 0; i < path->n; i++) {
        if (t < path->link[i]->free_ps)
            t = path->link[i]->free_ps;
        path->link[i]->free_ps = t + ps;
        t += ps + f->c->latency_ps;
    }
    return t;
}

static void arrive(struct check_fabric *f, int64_t at_ps, const struct packet *p)
{
    size_t size = sizeof(*p) + p->head_bytes + p->data_bytes;
    struct packet *copy = malloc(size);

    if (!copy) {
        fabric_fail(f, "out of memory");
        return;
    }
    memcpy(copy, p, size);
    if (queue_push(&f->q, at_ps, E_PACKET, 0, 0, copy)) {
        free(copy);
        fabric_fail(f, "out of memory");
    }
}

static void carry(struct check_fabric *f, const struct path *path, struct packet *p)
{
    const struct check_case *c = f->c;
    int64_t t = links_pass(f, path, p->head_bytes + p->data_bytes + OVERHEAD);

    t += up_to(f, c->jitter_ps);
    p->marked = happens(f, c->marks);
    if (happens(f, c->duplication))
        arrive(f, t + up_to(f, 2 * c->late_ps), p);
    if (happens(f, c->reordering))
        t += up_to(f, c->late_ps);
    if (!happens(f, c->loss))
        arrive(f, t, p);
}

/* ---- from a switch ---- */

/* From a switch to a rank of the job. */
static void path_to_rank(struct check_fabric *f, unsigned job, unsigned sw, unsigned rank,
                         struct path *path)
{
    unsigned leaf = fabric_leaf(f, job, rank);

    if (sw != leaf && sw != ROOT)
        path_append(path, &f->sw[sw].up);
    if (sw != leaf)
        path_append(path, &f->sw[leaf].down);
    path_append(path, &f->job[job].rank[rank].down);
}

static void to_child(struct check_fabric *f, const struct at *a, unsigned child, struct packet *p)
{
    struct path path = {.n = 0};

    p->to_rank = a->child[child].is_rank;
    p->node = a->child[child].node;
    p->from = p->to_rank ? TRIB_SWITCH : TRIB_PARENT;
    if (p->to_rank)
        path_append(&path, &f->job[a->job].rank[p->node].down);
    else
        path_append(&path, &f->sw[p->node].down);
    carry(f, &path, p);
}

/* The packet that a switch is handling, for forward(). */
static const struct packet *handled;

void links_handle(const struct packet *p)
{
    handled = p;
}

static void to_rank(struct check_fabric *f, const struct at *a, unsigned rank, int from,
                    struct packet *p)
{
    struct path path = {.n = 0};

    p->to_rank = true;
    p->node = rank;
    p->from = from;
    path_to_rank(f, a->job, a->sw, rank, &path);
    carry(f, &path, p);
}

static struct packet *packet_of(struct check_fabric *f, unsigned job, const void *head,
                                uint32_t head_bytes, const void *data, uint32_t data_bytes)
{
    struct packet *p = malloc(sizeof(*p) + head_bytes + data_bytes);

    if (!p) {
        fabric_fail(f, "out of memory");
        return NULL;
    }
    *p = (struct packet){
        .job = job, .target = -1, .head_bytes = head_bytes, .data_bytes = data_bytes};
    if (head_bytes)
        memcpy(p->bytes, head, head_bytes);
    if (data_bytes)
        memcpy(p->bytes + head_bytes, data, data_bytes);
    return p;
}

void links_emit(void *ctx, void *job, int to, const void *head, uint32_t head_bytes,
                const void *data, uint32_t data_bytes)
{
    struct check_fabric *f = ((struct node_switch *)ctx)->f;
    const struct at *a = job;
    struct packet *p = packet_of(f, a->job, head, head_bytes, data, data_bytes);

    if (!p)
        return;
    if (to == TRIB_PARENT) {
        struct path path = {.n = 0};

        p->node = (unsigned)a->parent;
        p->from = TRIB_CHILD(a->child_of_parent);
        path_append(&path, &f->sw[a->sw].up);
        carry(f, &path, p);
    } else if (to == TRIB_CHILDREN) {
        for (unsigned i = 0; i < a->n_children; i++)
            to_child(f, a, i, p);
    } else if (to == PROTO_FORWARD) {
        if (handled && handled->target >= 0 && TRIB_IS(handled->from, TRIB_CHILD(0)))
            to_rank(f, a, (unsigned)handled->target, (int)a->child[TRIB_INDEX(handled->from)].node,
                    p);
        else if (handled && !handled->forged)
            fabric_fail(f, "forward() of a packet without a target: its sender names none");
    } else if (TRIB_IS(to, TRIB_CHILD(0))) {
        to_child(f, a, (unsigned)TRIB_INDEX(to), p);
    } else {
        to_rank(f, a, (unsigned)to, TRIB_SWITCH, p);
    }
    free(p);
}

/* ---- from a rank ---- */

/* How a switch knows a rank: as a child, or as another rank. */
static int known_as(const struct check_fabric *f, unsigned job, unsigned sw, unsigned rank)
{
    int child = f->job[job].at[sw].of_rank[rank];

    return child < 0 ? TRIB_RANK((int)rank) : TRIB_CHILD(child);
}

bool links_send(void *ctx, int to, int target, const void *head, uint32_t head_bytes,
                const void *data, uint32_t data_bytes)
{
    const struct sender *s = ctx;
    struct check_fabric *f = s->f;
    struct node_rank *r = &f->job[s->job].rank[s->rank];
    unsigned leaf = fabric_leaf(f, s->job, s->rank), sw = leaf;
    struct path path = {.n = 0};
    struct packet *p;

    if (r->buffers == f->c->buffers)
        return false;
    p = packet_of(f, s->job, head, head_bytes, data, data_bytes);
    if (!p)
        return true;
    p->target = target;
    path_append(&path, &r->up);
    if (TRIB_IS(to, TRIB_RANK(0))) {
        p->to_rank = true;
        p->node = (unsigned)to;
        p->from = TRIB_RANK((int)s->rank);
        path_to_rank(f, s->job, leaf, p->node, &path);
    } else {
        if (TRIB_IS(to, TRIB_SWITCH_OF(0)))
            sw = fabric_leaf(f, s->job, (unsigned)TRIB_INDEX(to));
        if (sw != leaf) {
            path_append(&path, &f->sw[leaf].up);
            path_append(&path, &f->sw[sw].down);
        }
        p->node = sw;
        p->from = known_as(f, s->job, sw, s->rank);
    }
    carry(f, &path, p);
    free(p);
    r->buffers++;
    if (queue_push(&f->q, r->up.free_ps, E_ROOM, s->job, s->rank, NULL))
        fabric_fail(f, "out of memory");
    return true;
}

/* ---- from anybody ---- */

static int any_sender(struct check_fabric *f, const struct packet *p)
{
    const struct fabric_job *j = &f->job[p->job];
    const struct at *a = &j->at[p->to_rank ? ROOT : p->node];
    unsigned x = (unsigned)(random_next(&f->random) >> 32), n = f->c->job[p->job].nranks;

    if (p->to_rank)
        return x % 2 ? TRIB_SWITCH : TRIB_RANK((int)(x / 2 % n));
    if (x % 4 == 0 && a->parent >= 0)
        return TRIB_PARENT;
    x /= 4;
    return known_as(f, p->job, p->node, x % n) == TRIB_RANK((int)(x % n))
               ? TRIB_RANK((int)(x % n))
               : TRIB_CHILD((int)(x % a->n_children));
}

/* Redirects a packet to any rank of the job, or to any switch that has the job. */
static void redirect(struct check_fabric *f, struct packet *p)
{
    const struct fabric_job *j = &f->job[p->job];
    unsigned x = (unsigned)(random_next(&f->random) >> 32), sw = x / 2 % SWITCHES;

    p->to_rank = x % 2 || !j->at[sw].pj;
    p->node = p->to_rank ? x / 2 % f->c->job[p->job].nranks : sw;
    p->from = any_sender(f, p);
}

static uint32_t forged_length(struct check_fabric *f, uint32_t real, uint32_t most)
{
    switch (random_next(&f->random) % 4) {
    case 0:
        return (uint32_t)(random_next(&f->random) % (most + 1));
    case 1:
        return real < 4 ? 0 : real - 4;
    default:
        return real;
    }
}

/* Adjusts numbers in the head that count the data, in elements of any size, to the forged length.
 */
static void fit_head(struct packet *p, const struct packet *real)
{
    for (uint32_t i = 0; i + 2 <= p->head_bytes && i + 2 <= real->head_bytes; i += 2)
        for (uint32_t size = 8; size && real->data_bytes; size /= 2) {
            uint16_t v, n = (uint16_t)(p->data_bytes / size);

            memcpy(&v, real->bytes + i, sizeof(v));
            if (v != real->data_bytes / size)
                continue;
            memcpy(p->bytes + i, &n, sizeof(n));
            break;
        }
}

void links_forge(struct check_fabric *f, const struct packet *real)
{
    const bool fits = random_next(&f->random) % 2;
    uint32_t head_bytes, data_bytes, all;
    struct packet *p;

    if (real->forged || !happens(f, f->c->hostile))
        return;
    head_bytes = forged_length(f, real->head_bytes, TRIB_HEAD);
    data_bytes = forged_length(f, real->data_bytes, f->c->payload - TRIB_HEAD);
    if (fits)
        data_bytes &= ~7u;
    if (head_bytes + data_bytes > f->c->payload)
        data_bytes = f->c->payload - head_bytes;
    all = head_bytes + data_bytes;
    p = calloc(1, sizeof(*p) + all);
    if (!p)
        return;
    *p = *real;
    p->forged = true;
    p->head_bytes = head_bytes;
    p->data_bytes = data_bytes;
    memcpy(p->bytes, real->bytes, head_bytes < real->head_bytes ? head_bytes : real->head_bytes);
    memcpy(p->bytes + head_bytes, real->bytes + real->head_bytes,
           data_bytes < real->data_bytes ? data_bytes : real->data_bytes);
    if (fits)
        fit_head(p, real);
    if (random_next(&f->random) % 4 == 0)
        redirect(f, p);
    else if (random_next(&f->random) % 2)
        p->from = any_sender(f, p);
    /* Change a few bytes of the head, or all of it. */
    for (unsigned n = (unsigned)(random_next(&f->random) % 4); n && head_bytes; n--) {
        uint8_t byte = (uint8_t)(random_next(&f->random) >> 24);

        p->bytes[random_next(&f->random) % head_bytes] = byte;
    }
    if (random_next(&f->random) % 16 == 0)
        for (uint32_t i = 0; i < head_bytes; i++)
            p->bytes[i] = (uint8_t)(random_next(&f->random) >> 24);
    arrive(f, f->now + up_to(f, case_round_trip(f->c)), p);
    free(p);
}

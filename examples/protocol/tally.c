/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally: a small aggregation protocol for integers, complete.
 *
 * A rank cuts its vector into chunks, one a packet, numbered through all operations. It sends a
 * window of them, waits for all results, then sends the next window. A switch adds the chunks of
 * its children up in a slot. When all are in, it sends the sum to its parent; the root's sum comes
 * down to everybody by the same way.
 *
 * Loss: a rank sends a chunk again whose result does not come. A switch knows who is in a slot (a
 * bit for each child), so nothing is added twice, and keeps a result for who has missed it. For how
 * long? A rank that sends chunk q has all results before its window, so everybody has sent those
 * chunks, and has what was a window before them. With twice as many slots as a window has chunks,
 * the chunk that was in the slot of q before is one that nobody waits for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/protocol.h>

struct head {
    uint64_t chunk;
    uint32_t n; /* elements */
    uint16_t type, op;
};

struct slot {
    struct head head;
    uint64_t in[TRIB_RANKS / 64]; /* a bit for each child whose chunk is in the sum */
    uint32_t n_in;
    bool used, done; /* done: data is the result, of all ranks */
    _Alignas(8) uint8_t data[];
};

enum { KEY_SLOTS };
static const struct trib_key keys[] = {
    {"slots", "chunks in flight", 16, 1, 64},
    {.name = NULL},
};
enum { N_LATE, N_AGAIN, N_BAD };
static const char *const counters[] = {"late", "again", "bad", NULL};

static bool supports(enum trib_type type, enum trib_sum op)
{
    return type <= TRIB_UINT64 && op < TRIB_REDUCTIONS;
}

/* What others send is checked before it is used. */
static bool good(const struct trib_packet *p)
{
    const struct head *h = p->head;

    return p->head_bytes == sizeof(*h) && supports(h->type, h->op) && h->n &&
           (uint64_t)h->n * trib_size(h->type) == p->data_bytes;
}

/* ---- the switch half ---- */

static int sw_job_open(struct trib_switch *s, struct trib_job *job)
{
    job->self = s->api->array(s, job, "slots", 2 * (uint32_t)s->key[KEY_SLOTS],
                              (uint32_t)sizeof(struct slot) + s->payload);
    return job->self ? 0 : -ENOSPC;
}

/* A slot is in use from its first chunk until its result. */
static void sw_job_close(struct trib_switch *s, struct trib_job *job)
{
    for (uint32_t i = 0; i < 2 * (uint32_t)s->key[KEY_SLOTS]; i++) {
        const struct slot *l = s->api->at(s, job->self, i);

        if (l->used && !l->done)
            s->api->give(s, job, job->self, i);
    }
}

static void sw_send(struct trib_switch *s, struct trib_job *job, int to, const struct slot *l)
{
    uint32_t bytes = l->head.n * trib_size(l->head.type);

    s->api->work(s, bytes, 0);
    s->api->send(s, job, to, &l->head, sizeof(l->head), l->data, bytes);
}

static void sw_done(struct trib_switch *s, struct trib_job *job, uint32_t i, struct slot *l)
{
    l->done = true;
    s->api->give(s, job, job->self, i);
    sw_send(s, job, TRIB_CHILDREN, l);
}

static void sw_result(struct trib_switch *s, struct trib_job *job, uint32_t i,
                      const struct trib_packet *p)
{
    struct slot *l = s->api->at(s, job->self, i);

    if (!l->used || l->done || l->n_in < job->n_children ||
        memcmp(p->head, &l->head, sizeof(l->head)))
        return;
    memcpy(l->data, p->data, p->data_bytes);
    s->api->work(s, p->data_bytes, 0);
    sw_done(s, job, i, l);
}

static void sw_add(struct trib_switch *s, struct slot *l, const struct trib_packet *p)
{
    int child = TRIB_INDEX(p->from);

    if (l->n_in++)
        s->api->reduce(s, l->data, p->data, l->head.n, l->head.type, l->head.op);
    else
        memcpy(l->data, p->data, p->data_bytes);
    s->api->work(s, p->data_bytes, 0); /* beside what reduce() counts */
    l->in[child / 64] |= 1ull << child % 64;
}

static void sw_chunk(struct trib_switch *s, struct trib_job *job, uint32_t i,
                     const struct trib_packet *p)
{
    const struct head *h = p->head;
    struct slot *l = s->api->at(s, job->self, i);
    int child = TRIB_INDEX(p->from);
    bool again;

    if (!l->used || h->chunk > l->head.chunk) { /* nobody waits for the chunk before it */
        if (!l->used || l->done)
            s->api->take(s, job, job->self, i);
        *l = (struct slot){.head = *h, .used = true};
    }
    if (h->chunk < l->head.chunk) { /* delayed in the network */
        s->api->count(s, N_LATE, 1);
        return;
    }
    if (memcmp(h, &l->head, sizeof(*h))) {
        s->api->abort(s, job, "ranks disagree about an operation");
        return;
    }
    again = l->in[child / 64] >> child % 64 & 1;
    if (again)
        s->api->count(s, N_AGAIN, 1);
    else
        sw_add(s, l, p);
    if (l->done) /* lost on its way to this child */
        sw_send(s, job, TRIB_CHILD(child), l);
    else if (l->n_in == job->n_children && job->root)
        sw_done(s, job, i, l);
    else if (l->n_in == job->n_children)
        sw_send(s, job, TRIB_PARENT, l);
}

static void sw_packet(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    uint32_t i;

    if (!good(p)) {
        s->api->count(s, N_BAD, 1);
        return;
    }
    i = (uint32_t)(((const struct head *)p->head)->chunk % (2 * (uint64_t)s->key[KEY_SLOTS]));
    if (p->from == TRIB_PARENT)
        sw_result(s, job, i, p);
    else if (TRIB_IS(p->from, TRIB_CHILD(0)))
        sw_chunk(s, job, i, p);
}

static const struct trib_switch_half switch_half = {
    .counters = counters,
    .max_bytes = 5 * 4096,
    .max_ops = 4096,
    .job_open = sw_job_open,
    .job_close = sw_job_close,
    .packet = sw_packet,
};

/* ---- the rank half ---- */

struct rank {
    struct trib_op op;
    uint64_t first;           /* number of the operation's first chunk */
    uint64_t from, end;       /* of the window's first, and behind its last */
    uint64_t n;               /* chunks of the operation; 0: there is none */
    uint64_t unsent, missing; /* a bit for each chunk of the window: to send; without a result */
    uint32_t per;             /* elements of a chunk */
    int64_t wait_ps;
    unsigned tries; /* timeouts since the last result */
};

static int rank_open(struct trib_rank *r)
{
    return (r->self = calloc(1, sizeof(struct rank))) ? 0 : -ENOMEM;
}

static void rank_close(struct trib_rank *r)
{
    free(r->self);
}

static struct head head_of(const struct rank *t, uint64_t chunk)
{
    uint64_t left = t->op.count - (chunk - t->first) * t->per;

    return (struct head){chunk, left < t->per ? (uint32_t)left : t->per, t->op.type, t->op.op};
}

static void rank_send(struct trib_rank *r)
{
    struct rank *t = r->self;
    uint32_t size = trib_size(t->op.type);

    for (; t->unsent; t->unsent &= t->unsent - 1) {
        uint64_t chunk = t->from + (unsigned)__builtin_ctzll(t->unsent);
        struct head h = head_of(t, chunk);
        const uint8_t *data = (const uint8_t *)t->op.send + (chunk - t->first) * t->per * size;

        if (!r->api->send(r, TRIB_SWITCH, &h, sizeof(h), data, h.n * size))
            return; /* room() goes on */
    }
}

static void rank_window(struct trib_rank *r)
{
    struct rank *t = r->self;
    uint64_t n = t->first + t->n - t->from, most = (uint64_t)r->key[KEY_SLOTS];

    most = most < r->window ? most : r->window;
    n = n < most ? n : most;
    t->end = t->from + n;
    t->missing = t->unsent = UINT64_MAX >> (64 - n);
    /* Beside the way there and back, the window of every rank may wait for one link. */
    t->wait_ps =
        2 * r->round_trip_ps + (int64_t)(16000000000000 / r->rate_bps * n * r->nranks * r->payload);
    r->api->timer(r, r->api->now(r) + t->wait_ps);
    rank_send(r);
}

static int rank_start(struct trib_rank *r, const struct trib_op *op)
{
    struct rank *t = r->self;

    t->op = *op;
    t->per = (uint32_t)((r->payload - sizeof(struct head)) / trib_size(op->type));
    t->n = (op->count + t->per - 1) / t->per;
    t->first = t->from;
    rank_window(r);
    return 0;
}

static void rank_packet(struct trib_rank *r, const struct trib_packet *p)
{
    struct rank *t = r->self;
    const struct head *h = p->head;
    struct head mine;

    if (p->from != TRIB_SWITCH || !good(p) || !t->n || h->chunk < t->from || h->chunk >= t->end ||
        !(t->missing >> (h->chunk - t->from) & 1))
        return; /* nothing that it waits for */
    mine = head_of(t, h->chunk);
    if (memcmp(h, &mine, sizeof(mine)))
        return;
    memcpy((uint8_t *)t->op.recv + (h->chunk - t->first) * t->per * trib_size(t->op.type), p->data,
           p->data_bytes);
    t->tries = 0;
    t->missing &= ~(1ull << (h->chunk - t->from));
    t->unsent &= t->missing;
    if (t->missing)
        return;
    t->from = t->end;
    if (t->from < t->first + t->n) {
        rank_window(r);
        return;
    }
    t->n = 0;
    r->api->timer(r, TRIB_NEVER);
    r->api->done(r); /* last: the next operation may start in it */
}

static void rank_timer(struct trib_rank *r)
{
    struct rank *t = r->self;

    t->unsent = t->missing;
    t->tries += t->tries < 4;
    r->api->timer(r, r->api->now(r) + (t->wait_ps << t->tries));
    rank_send(r);
}

static const struct trib_rank_half rank_half = {
    .open = rank_open,
    .close = rank_close,
    .start = rank_start,
    .packet = rank_packet,
    .room = rank_send,
    .timer = rank_timer,
};

const struct trib_protocol trib_protocol = {
    .version = TRIB_PROTOCOL_VERSION,
    .name = "tally",
    .about = "sums of integers in the switches, a window of slots at a time",
    .keys = keys,
    .supports = supports,
    .sw = &switch_half,
    .rank = &rank_half,
};

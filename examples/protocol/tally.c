/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally: a small aggregation protocol for integers, complete.
 *
 * A rank cuts its vector into chunks, one a packet, numbered through all operations. It has a
 * window of them in flight: chunk q + window follows once it has the result of q. A switch adds the
 * chunks of its children up in a slot. When all are in, it sends the sum to its parent; the root's
 * sum comes down to everybody by the same way.
 *
 * Loss: a rank sends a chunk again whose result does not come. A switch knows who is in a slot, so
 * nothing is added twice, and keeps a result for who has missed it. For how long? A rank that sends
 * chunk q has the result of q - window, so everybody has sent that one, and has the result of
 * q - 2 windows. With two windows of slots, the chunk that was in the slot of q before is one that
 * nobody waits for.
 */
#include <string.h>
#include <tributary/ranks.h>
#include <tributary/window.h>

struct head {
    uint64_t chunk;
    uint32_t n; /* elements */
    uint16_t type, op;
};

struct slot {
    struct head head;
    struct trib_set in; /* children whose chunk is in the sum */
    bool used, done;    /* done: data is the result, of all ranks */
    _Alignas(8) uint8_t data[];
};

enum { KEY_SLOTS };
static const struct trib_key keys[] = {
    {"slots", "chunks in flight", 16, 1, 1024},
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

static uint32_t n_slots(const struct trib_switch *s)
{
    return 2 * (uint32_t)s->key[KEY_SLOTS];
}

static int sw_job_open(struct trib_switch *s, struct trib_job *job)
{
    job->self = s->api->array(s, job, "slots", n_slots(s), sizeof(struct slot) + s->payload);
    return job->self ? 0 : -ENOSPC;
}

/* A slot is in use from its first chunk until its result. */
static void sw_job_close(struct trib_switch *s, struct trib_job *job)
{
    for (uint32_t i = 0; i < n_slots(s); i++) {
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

/* The sum of all ranks is in the slot. */
static void sw_done(struct trib_switch *s, struct trib_job *job, uint32_t i, struct slot *l)
{
    l->done = true;
    s->api->give(s, job, job->self, i);
    sw_send(s, job, TRIB_CHILDREN, l);
}

static void sw_add(struct trib_switch *s, struct slot *l, const struct trib_packet *p)
{
    if (trib_set_count(&l->in))
        s->api->reduce(s, l->data, p->data, l->head.n, l->head.type, l->head.op);
    else
        memcpy(l->data, p->data, p->data_bytes);
    s->api->work(s, p->data_bytes, 0); /* beside what reduce() counts */
    trib_set_add(&l->in, TRIB_INDEX(p->from));
}

static void sw_chunk(struct trib_switch *s, struct trib_job *job, uint32_t i, struct slot *l,
                     const struct trib_packet *p)
{
    const struct head *h = p->head;

    if (!l->used || h->chunk > l->head.chunk) { /* nobody waits for the chunk before it */
        if (!l->used || l->done)
            s->api->take(s, job, job->self, i);
        *l = (struct slot){.head = *h, .used = true};
    }
    if (h->chunk < l->head.chunk) { /* delayed in the network */
        s->api->count(s, N_LATE, 1);
    } else if (memcmp(h, &l->head, sizeof(*h))) {
        s->api->abort(s, job, "ranks disagree about an operation");
    } else {
        if (trib_set_has(&l->in, TRIB_INDEX(p->from)))
            s->api->count(s, N_AGAIN, 1);
        else
            sw_add(s, l, p);
        if (l->done) /* lost on its way to this child */
            sw_send(s, job, p->from, l);
        else if (trib_set_count(&l->in) == job->n_children && job->root)
            sw_done(s, job, i, l);
        else if (trib_set_count(&l->in) == job->n_children)
            sw_send(s, job, TRIB_PARENT, l);
    }
}

static void sw_packet(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    uint32_t i;
    struct slot *l;

    if (!good(p)) {
        s->api->count(s, N_BAD, 1);
        return;
    }
    i = (uint32_t)(((const struct head *)p->head)->chunk % n_slots(s));
    l = s->api->at(s, job->self, i);
    if (TRIB_IS(p->from, TRIB_CHILD(0))) {
        sw_chunk(s, job, i, l, p);
    } else if (p->from == TRIB_PARENT && l->used && !l->done &&
               trib_set_count(&l->in) == job->n_children &&
               !memcmp(p->head, &l->head, sizeof(l->head))) {
        memcpy(l->data, p->data, p->data_bytes);
        s->api->work(s, p->data_bytes, 0);
        sw_done(s, job, i, l);
    }
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

static bool rank_send(struct trib_rank *r, const struct trib_flight *f)
{
    const struct trib_window *w = r->self;
    struct head h = {f->seq, trib_window_count(w, f->seq), w->op.type, w->op.op};

    return r->api->send(r, TRIB_SWITCH, &h, sizeof(h), trib_window_from(w, f->seq),
                        h.n * trib_size(h.type));
}

static int rank_open(struct trib_rank *r)
{
    uint32_t n = r->key[KEY_SLOTS] < r->window ? (uint32_t)r->key[KEY_SLOTS] : r->window;
    int64_t full =
        r->round_trip_ps + r->notice_ps + trib_link_ps((uint64_t)n * r->payload, r->rate_bps);

    /* Resends after four times what a full window takes, and does not give up. */
    return trib_window_open(r, sizeof(struct trib_window), n, 4 * full, TRIB_NEVER, rank_send);
}

static int rank_start(struct trib_rank *r, const struct trib_op *op)
{
    trib_window_start(r, op, (r->payload - (uint32_t)sizeof(struct head)) / trib_size(op->type));
    return 0;
}

static void rank_packet(struct trib_rank *r, const struct trib_packet *p)
{
    const struct trib_window *w = r->self;
    const struct head *h = p->head;

    if (p->from != TRIB_SWITCH || !good(p) || !trib_window_awaits(w, h->chunk) ||
        h->n != trib_window_count(w, h->chunk) || h->type != w->op.type || h->op != w->op.op)
        return; /* nothing that it waits for */
    memcpy(trib_window_to(w, h->chunk), p->data, p->data_bytes);
    trib_window_advance(r, h->chunk);
}

static const struct trib_rank_half rank_half = {
    .open = rank_open,
    .close = trib_window_close,
    .start = rank_start,
    .packet = rank_packet,
    .room = trib_window_pump,
    .timer = trib_window_timer,
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

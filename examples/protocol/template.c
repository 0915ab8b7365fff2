/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A protocol to begin with: it compiles, and does nothing yet. Every TODO is a step.
 * `make && trib check-protocol ./template.so` says what is next.
 */
#include <errno.h>
#include <stdlib.h>
#include <tributary/protocol.h>

/* TODO: what every packet begins with; at most TRIB_HEAD bytes. */
struct head {
    uint64_t chunk;
};

static bool supports(enum trib_type type, enum trib_sum op)
{
    (void)type, (void)op;
    return true; /* TODO: the types and reductions that it can do */
}

/* ---- the switch half ---- */

static int sw_job_open(struct trib_switch *s, struct trib_job *job)
{
    /* TODO: the job's slots, and what is in one */
    job->self = s->api->array(s, job, "slots", 16, s->payload);
    return job->self ? 0 : -ENOSPC;
}

static void sw_job_close(struct trib_switch *s, struct trib_job *job)
{
    (void)s, (void)job; /* TODO: give() every slot that was taken */
}

static void sw_packet(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    if (p->head_bytes != sizeof(struct head))
        return; /* others send what they like: check everything before it is used */
    /* TODO: a chunk of a child: take() its slot, reduce() it there, send() what is complete */
    (void)s, (void)job;
}

static const struct trib_switch_half switch_half = {
    .max_bytes = 4096, /* TODO: of slots that one packet may read and write */
    .max_ops = 4096,   /* TODO: reductions of elements that one packet may cause */
    .job_open = sw_job_open,
    .job_close = sw_job_close,
    .packet = sw_packet,
};

/* ---- the rank half ---- */

/* tributary/window.h has a window of packets, which are sent again: tally.c lets it do most of this. */

struct rank {
    struct trib_op op;
};

static int rank_open(struct trib_rank *r)
{
    return (r->self = calloc(1, sizeof(struct rank))) ? 0 : -ENOMEM;
}

static void rank_close(struct trib_rank *r)
{
    free(r->self);
}

static int rank_start(struct trib_rank *r, const struct trib_op *op)
{
    struct rank *t = r->self;

    t->op = *op;
    return -ENOSYS; /* TODO: send() the first chunks, and set the timer() of their retransmission */
}

static void rank_packet(struct trib_rank *r, const struct trib_packet *p)
{
    (void)r, (void)p; /* TODO: put a result into op.recv; call done() after the last */
}

static void rank_room(struct trib_rank *r)
{
    (void)r; /* TODO: send() what found no buffer */
}

static void rank_timer(struct trib_rank *r)
{
    (void)r; /* TODO: send() again what has no result yet */
}

static const struct trib_rank_half rank_half = {
    .open = rank_open,
    .close = rank_close,
    .start = rank_start,
    .packet = rank_packet,
    .room = rank_room,
    .timer = rank_timer,
};

const struct trib_protocol trib_protocol = {
    .version = TRIB_PROTOCOL_VERSION,
    .name = "TODO", /* of --algo: 1 to 15 characters a-z, 0-9, - */
    .about = "TODO: a line for people",
    .supports = supports,
    .sw = &switch_half,
    .rank = &rank_half,
};

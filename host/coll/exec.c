/*
 * Runs operations, one after the other in the order of their start. Each is a schedule; its lanes
 * are served by the ring, by the aggregation node's edge and, for the CPU's, here. One slice is
 * reduced at a time, and what that allows is sent before the next.
 */
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cpu_step(struct comm *c, struct coll_req *r, const struct step *st)
{
    uint8_t *out = (uint8_t *)r->args.recv + st->off;
    const uint8_t *in = (const uint8_t *)r->args.send + st->off;
    size_t count = st->len / r->s.esize;

    if (st->op == STEP_COPY) {
        memcpy(out, st->buf == BUF_SCRATCH ? ring_slot(c, st->slot) : in, st->len);
        return;
    }
    if (count) {
        const void *both[2] = {ring_slot(c, st->slot), in};

        arith_kernel(r->args.op, r->args.type)(out, both, 2, count);
    }
    if (st->last && r->args.op == OP_AVG)
        arith_divide(out, r->args.type, c->cfg.nranks, count);
}

static unsigned cpu_run(struct comm *c, struct coll_req *r)
{
    struct step st;

    if (r->done[LANE_CPU] == r->s.n[LANE_CPU])
        return 0;
    sched_step(&r->s, LANE_CPU, r->done[LANE_CPU], &st);
    if (!sched_ready(&st, r->done))
        return 0;
    cpu_step(c, r, &st);
    r->done[LANE_CPU]++;
    return 1;
}

static bool ended(const struct comm *c, const struct coll_req *r)
{
    for (unsigned l = 0; l < LANES; l++)
        if (r->done[l] < r->s.n[l])
            return false;
    return !r->s.n[LANE_RECV] || ring_ended(c, r);
}

static void finish(struct comm *c, struct coll_req *r)
{
    if (r->args.algo == ALGO_SHARP && c->cfg.nranks > 1 && r->s.bytes)
        agg_end(c);
    c->exec.head = r->next;
    if (!c->exec.head)
        c->exec.tail = NULL;
    c->exec.running = false;
    r->status = 1;
    if (r->abandoned)
        free(r);
}

unsigned exec_run(struct comm *c)
{
    unsigned total = 0, did;

    do {
        struct coll_req *r = c->exec.head;

        if (!r || c->state != COMM_READY)
            break;
        if (!c->exec.running) {
            c->exec.running = true;
            if (r->s.n[LANE_RECV])
                ring_begin(c, r);
        }
        did = cpu_run(c, r);
        if (r->s.n[LANE_RECV])
            did += ring_run(c, r);
        else if (r->s.n[LANE_AGG])
            did += agg_run(c, r);
        if (c->state == COMM_READY && ended(c, r)) {
            finish(c, r);
            did++;
        }
        total += did;
    } while (did);
    return total;
}

/* Requests stay readable: whoever failed may be in the middle of one. */
void exec_fail(struct comm *c)
{
    struct coll_req *r = c->exec.head;

    c->exec.head = c->exec.tail = NULL;
    c->exec.running = false;
    while (r) {
        struct coll_req *next = r->next;

        r->status = -EIO;
        if (r->abandoned) {
            r->next = c->exec.dead;
            c->exec.dead = r;
        }
        r = next;
    }
}

void exec_destroy(struct comm *c)
{
    exec_fail(c);
    while (c->exec.dead) {
        struct coll_req *next = c->exec.dead->next;

        free(c->exec.dead);
        c->exec.dead = next;
    }
}

/* ---- the user's calls ---- */

static int check_args(const struct comm *c, const struct coll_args *a, char *err)
{
    const char *what = NULL;
    int rc = -EINVAL;

    if (c->state == COMM_FAILED) {
        snprintf(err, COMM_TEXT, "%s", c->error);
        return -EIO;
    }
    if (c->state != COMM_READY || c->closing)
        rc = -ENOTCONN, what = "the communicator is not connected";
    else if ((unsigned)a->kind >= COLL_KINDS || (unsigned)a->algo >= ALGO_COUNT)
        what = "no such collective or algorithm";
    else if (!comm_has(c, a->algo))
        rc = -ENOTSUP, what = "this algorithm was not set up for the communicator";
    else if ((unsigned)a->type >= DT_COUNT || (unsigned)a->op >= OP_COUNT)
        what = "no such type or reduction";
    if (what)
        snprintf(err, COMM_TEXT, "%s", what);
    return what ? rc : 0;
}

static int check_buffers(const struct comm *c, struct coll_req *r, char *err)
{
    const uint8_t *in = r->args.send, *out = r->args.recv;
    uint64_t bytes = r->s.bytes;

    if (!bytes)
        return 0;
    if (in != out && in < out + bytes && out < in + bytes) {
        snprintf(err, COMM_TEXT, "send and receive buffers overlap");
        return -EINVAL;
    }
    if (comm_lkey(c, in, bytes, &r->in_lkey) || comm_lkey(c, out, bytes, &r->out_lkey)) {
        snprintf(err, COMM_TEXT, "a buffer is not registered for the communicator");
        return -EFAULT;
    }
    return 0;
}

/* What every rank must have alike, in 32 bits that go with each message (ring.c: disagree). */
static uint32_t tag_of(const struct coll_req *r, uint32_t opseq)
{
    uint32_t size = (uint32_t)((r->s.in.count * 0x9e3779b97f4a7c15ULL) >> 48);

    return (opseq & 0xff) << 24 | (uint32_t)r->args.type << 20 | (uint32_t)r->args.op << 16 | size;
}

int coll_start(struct comm *c, const struct coll_args *a, struct coll_req **req, char *err)
{
    struct sched_in in = {
        .kind = a->kind,
        .algo = a->algo,
        .rank = c->cfg.rank,
        .nranks = c->cfg.nranks,
        .count = a->count,
        .type = a->type,
        .in_place = a->send == a->recv,
        .mtu = c->port.mtu,
    };
    struct coll_req *r;
    int rc = check_args(c, a, err);

    if (rc)
        return rc;
    r = calloc(1, sizeof(*r));
    if (!r) {
        snprintf(err, COMM_TEXT, "out of memory");
        return -ENOMEM;
    }
    r->c = c;
    r->args = *a;
    rc = sched_init(&r->s, &in);
    if (rc)
        snprintf(err, COMM_TEXT, "%zu elements: %s", a->count, strerror(-rc));
    else
        rc = check_buffers(c, r, err);
    if (rc) {
        free(r);
        return rc;
    }
    r->tag = tag_of(r, c->exec.opseq++);
    if (c->exec.tail)
        c->exec.tail->next = r;
    else
        c->exec.head = r;
    c->exec.tail = r;
    *req = r;
    exec_run(c);
    return 0;
}

int coll_test(struct coll_req *req)
{
    return req->status;
}

void coll_free(struct coll_req *req)
{
    if (req->status)
        free(req);
    else
        req->abandoned = true;
}

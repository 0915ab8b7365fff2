/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recovery of operations after a part of the in-network path has failed and the ranks have agreed
 * on their progress (failover.c).
 *
 * An operation that no rank has begun runs by the next algorithm of the policy, like those after
 * it. An operation of several levels, by multimem or by a protocol starts over by that algorithm:
 * partial sums have replaced inputs, NVSwitches write to members without their knowledge, and only
 * a protocol knows its progress. So its input is kept when it begins. Connections are made anew,
 * because messages of the first attempt are in flight on the old ones. A rank that has finished the
 * operation takes part again with the input that it kept.
 *
 * The hosts finish an operation by the trees alone, from the first message on that some rank lacks
 * (collective/repair.c). A rank that has finished it may have given its buffers back, but others
 * lack at most a window of what it has. So each edge keeps the last window of a finished operation,
 * and the messages in flight of an operation whose results overwrite what it sends.
 *
 * When data is carried as lengths, nothing is copied; all else, and so every time, is the same.
 */
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is kept ---- */

static int keep_messages(const struct comm *c, struct agg *a)
{
    if (!policy_goes_on(c, agg_part(a)) && c->cfg.n_trees < 2) /* no others are left */
        return 0;
    a->n_kept = 2 * a->depth + 2; /* in flight, and of the operation before */
    a->kept = calloc(a->n_kept, AGG_MSG_BYTES(c->mtu));
    return a->kept ? 0 : -ENOMEM;
}

int failover_keep_create(struct comm *c, char *err)
{
    int rc = 0;

    if (comm_unbacked(c) || c->cfg.device)
        return 0;
    for (unsigned i = 0; !rc && i < c->n_aggs; i++)
        rc = keep_messages(c, &c->agg[i]);
    if (rc)
        snprintf(err, COMM_TEXT, "out of memory");
    return rc;
}

void failover_keep_end(struct comm *c, const struct coll_req *r)
{
    c->failover.last_parts = op_recovery_whole(&r->s);
    for (unsigned l = 0; l < r->s.n_lanes; l++) {
        const struct lane *lane = &r->s.lane[l];
        struct agg *a = lane->kind == LANE_AGG ? agg_of_lane(c, lane) : NULL;

        if (!a || !a->kept || c->failover.stopped & agg_part(a))
            continue;
        a->op_end = a->posted;
        for (uint64_t m = lane->n > a->depth ? lane->n - a->depth : 0; m < lane->n; m++) {
            const struct step *st = lane_step(lane, m);
            const struct ref *ref = st->agg == AGG_ALLREDUCE ? &st->dst : &st->a;

            if (st->len && st->agg != AGG_REDUCE && ref->buf != BUF_NONE)
                memcpy(agg_kept_at(a, a->posted - lane->n + m, c->mtu), exec_addr(r, ref), st->len);
        }
    }
}

/* Keeps the whole input of an operation that starts over when it is cut: of the last two, because
 * other ranks may still be in the one before. */
void failover_keep_begin(struct comm *c, const struct coll_req *r)
{
    struct failover_kept *k = &c->failover.kept[r->id.seq & 1];
    unsigned parts = op_recovery_whole(&r->s);

    if (r->s.in.in_place) /* it starts over with the operation before */
        parts |= c->failover.last_parts;
    k->here = false;
    if (!parts || c->cfg.device ||
        (!policy_goes_on(c, parts | c->failover.stopped) && !protocols_have_spare(c, parts)))
        return;
    if (k->room < r->s.in_bytes + 1) { /* without input there still is memory to register */
        region_drop(&k->mem);
        mem_host_free(c, k->data, k->room);
        k->data = mem_host(c, r->s.in_bytes + 1);
        k->room = k->data ? r->s.in_bytes + 1 : 0;
    }
    if (!k->data)
        return; /* without it the operation fails when the switches do */
    if (r->s.in_bytes && !comm_unbacked(c))
        memcpy(k->data, r->args.send, r->s.in_bytes);
    k->seq = r->id.seq;
    k->here = true;
}

/* ---- the operations ---- */

/* The parts that the rest of an operation needs. */
static unsigned parts_of(const struct sched *s)
{
    unsigned parts = 0;

    for (unsigned l = 0; l < s->n_lanes; l++) {
        const struct lane *lane = &s->lane[l];

        if (lane->kind == LANE_AGG)
            parts |= lane->peer == GROUP_RAIL ? PART_RAIL : PART_TREES;
        else if (lane->kind == LANE_MM)
            parts |= PART_MM;
        else if (lane->kind == LANE_PROTOCOL)
            parts |= PART_PROTOCOL(lane->chan);
    }
    return parts;
}

static bool has_conns(const struct sched *s)
{
    for (unsigned l = 0; l < s->n_lanes; l++)
        if (s->lane[l].kind == LANE_SEND || s->lane[l].kind == LANE_RECV)
            return true;
    return false;
}

unsigned op_recovery_whole(const struct sched *s)
{
    return parts_of(s) & (has_conns(s) ? PARTS_ALL : PARTS_PROTOCOLS);
}

static int recovery_refuse(char *err, const char *what, int rc)
{
    snprintf(err, COMM_TEXT, "cannot go on without it: %s", what);
    return rc;
}

static struct sched_repair repair_of(const struct failover_round *f, bool bare)
{
    struct sched_repair how = f->how;

    how.bare = bare;
    return how;
}

/* Replaces r's schedule by one for the rest of the operation. */
static int op_cut(struct coll_req *r, const struct failover_round *f, char *err)
{
    struct sched_repair how = repair_of(f, false);
    struct sched rest;
    int rc;

    if (r->s.in.algo != ALGO_SHARP)
        return recovery_refuse(err, "in the middle of another operation than by SHARP", -ENOTSUP);
    rc = sched_repair(&rest, &r->s, &how);
    if (rc)
        return recovery_refuse(err, strerror(-rc), rc);
    sched_free(&r->s);
    r->s = rest;
    r->cut = true;
    return 0;
}

int failover_started(struct comm *c, struct coll_req *r, char *err)
{
    int rc = 0;

    for (unsigned i = 0; !rc && i < c->failover.n_rounds; i++) {
        const struct failover_round *f = &c->failover.round[i];

        if (r->id.seq == f->seq && !f->whole && !f->again && parts_of(&r->s) & f->parts)
            rc = op_cut(r, f, err);
    }
    return rc;
}

/* Restores the inputs that results may have overwritten in part. */
static void inputs_restore(struct comm *c, const struct coll_req *r, const struct failover_round *f)
{
    for (unsigned l = 0; l < r->s.n_lanes; l++) {
        const struct lane *lane = &r->s.lane[l];
        const struct agg *a = lane->kind == LANE_AGG ? agg_of_lane(c, lane) : NULL;
        uint64_t end = a ? r->lane[l].begun : 0, m = a ? f->how.cut[lane->chan].least : 0;

        for (; a && a->kept && m < end; m++) {
            const struct step *st = lane_step(lane, m);
            bool needed = st->agg == AGG_REDUCE || m >= r->lane[l].done;

            if (st->len && needed && agg_same_place(r, st))
                memcpy(exec_addr(r, &st->a), agg_kept_at(a, a->posted - end + m, c->mtu), st->len);
        }
    }
}

/* A request that takes part, without buffers, in an operation that is over here, but not at all
 * ranks. */
static struct coll_req *helper_create(struct comm *c, const struct op_id *id, char *err)
{
    struct coll_req *r = calloc(1, sizeof(*r));

    if (!r) {
        recovery_refuse(err, "out of memory", -ENOMEM);
        return NULL;
    }
    *r = (struct coll_req){.c = c, .id = *id, .tag = op_tag(id), .abandoned = true};
    r->args = (struct coll_args){.kind = id->kind,
                                 .algo = id->algo,
                                 .count = id->count,
                                 .type = id->type,
                                 .op = id->op,
                                 .root = id->root};
    if (op_schedule(c, r, err)) {
        free(r);
        return NULL;
    }
    return r;
}

static void to_front(struct exec *x, struct coll_req *r)
{
    struct coll_req *p = x->head;

    if (p == r)
        return;
    while (p->next != r)
        p = p->next;
    p->next = NULL;
    x->tail = p;
    r->next = x->head;
    x->head = r;
}

/* Gives the helper r the rest of the operation to do, and puts it first. */
static int helper_start(struct comm *c, struct coll_req *r, const struct failover_round *f,
                        char *err)
{
    struct sched_repair how = repair_of(f, true);
    struct sched was = r->s;
    int rc;

    r->s = (struct sched){0};
    rc = sched_repair(&r->s, &was, &how);
    if (rc)
        recovery_refuse(err, strerror(-rc), rc);
    else
        rc = op_prepare(c, r, err);
    for (unsigned l = 0; !rc && l < was.n_lanes; l++) {
        const struct lane *lane = &was.lane[l];
        const struct agg *a = lane->kind == LANE_AGG ? agg_of_lane(c, lane) : NULL;

        for (uint64_t m = a ? how.cut[lane->chan].least : 0; a && a->kept && m < lane->n; m++)
            memcpy(r->tmp->mem.addr + sched_repair_tmp(&was, &how, lane->chan, m),
                   agg_kept_at(a, a->op_end - lane->n + m, c->mtu), lane_step(lane, m)->len);
    }
    sched_free(&was);
    if (!rc && exec_add(c, r))
        rc = recovery_refuse(err, "out of memory", -ENOMEM);
    if (!rc) {
        c->exec.next_seq = r->id.seq;
        to_front(&c->exec, r);
    }
    return rc;
}

/* Only the previous operation can be helped with: the kept messages are of that one, and messages
 * of later ones, such as a broadcast that its root has finished, are in flight on the
 * connections. */
static bool is_before(const struct comm *c, uint32_t seq)
{
    return seq + 1 == c->exec.next_seq;
}

static int help_with(struct comm *c, const struct failover_round *f, char *err)
{
    const struct op_id *id = op_known(c, f->seq);
    struct coll_req *r = id && !failover_was_cut(c, f) ? helper_create(c, id, err) : NULL;
    unsigned parts = r ? parts_of(&r->s) : 0;
    int rc = 0;

    if (failover_was_cut(c, f)) /* the others finish it by the hosts */
        return 0;

    if (!id)
        return recovery_refuse(err, "an operation of long ago", -EBUSY);
    if (!r)
        return -ENOMEM;
    if (parts & f->parts && !is_before(c, f->seq))
        rc = recovery_refuse(err, "an operation before the last", -EBUSY);
    else if (parts & f->parts)
        rc = r->s.in.algo == ALGO_SHARP ? helper_start(c, r, f, err)
                                        : recovery_refuse(err, "several levels", -ENOTSUP);
    if (rc || !(parts & f->parts))
        req_free(r);
    return rc;
}

static int op_reschedule(struct comm *c, struct coll_req *r, char *err)
{
    int rc;

    sched_free(&r->s);
    rc = op_schedule(c, r, err);
    if (!rc)
        rc = op_prepare(c, r, err);
    return rc ? rc : exec_fit(c, r);
}

/* Reschedules the operations after the one that was cut: none of them has results of a failed part
 * yet. */
static int others_reschedule(struct comm *c, const struct failover_round *f, char *err)
{
    for (struct coll_req *r = c->exec.head; r; r = r->next) {
        int rc;

        if (r->id.seq == f->seq && !f->whole && !f->again)
            continue;
        /* Decided by the algorithm as well: a rank with an empty share has no lane of a failed
         * part, but other ranks have one and change the algorithm. */
        if (!((parts_of(&r->s) | policy_parts(r->s.in.algo)) & f->parts) && !f->again)
            continue;
        rc = op_reschedule(c, r, err);
        if (rc)
            return rc;
    }
    return 0;
}

int op_replan(struct comm *c, char *err)
{
    const uint32_t from = failover_floor(c);
    int rc = 0;

    for (struct coll_req *r = c->exec.head; !rc && r; r = r->next)
        if ((int32_t)(r->id.seq - from) >= 0 && !(c->exec.running && r == c->exec.head))
            rc = op_reschedule(c, r, err);
    return rc;
}

/* ---- an operation that starts over ---- */

/* Restores the input that the running operation may have overwritten. */
static int rewind_running(const struct comm *c, struct coll_req *r, char *err)
{
    const struct failover_kept *k = &c->failover.kept[r->id.seq & 1];

    if (!r->s.in.in_place)
        return 0;
    if (!k->here || k->seq != r->id.seq)
        return recovery_refuse(err, "the next operation has begun", -EBUSY);
    if (!comm_unbacked(c))
        memcpy((void *)(uintptr_t)r->args.send, k->data, r->s.in_bytes);
    return 0;
}

/* Frees the memory that a helper's results went to. */
static void drop_out(struct comm *c)
{
    uint8_t *out = c->failover.out.addr;
    size_t bytes = c->failover.out.bytes;

    region_drop(&c->failover.out);
    mem_host_free(c, out, bytes);
}

/* The operation is over here: repeats it with the kept input, and discards its results. */
static int help_again(struct comm *c, const struct failover_round *f, char *err)
{
    struct failover_kept *k = &c->failover.kept[f->seq & 1];
    const struct op_id *id = op_known(c, f->seq);
    struct coll_req *r;
    uint8_t *out;
    int rc;

    if (!id || !k->here || k->seq != f->seq)
        return recovery_refuse(err, "an operation whose input was not kept", -EBUSY);
    if (!is_before(c, f->seq))
        return recovery_refuse(err, "an operation before the last", -EBUSY);
    r = helper_create(c, id, err);
    if (!r)
        return -ENOMEM;
    drop_out(c); /* of an earlier helper, which has ended: otherwise it would be the head */
    out = mem_host(c, r->s.out_bytes + 1);
    rc = out ? region_add(c, &c->failover.out, out, r->s.out_bytes + 1, false) : -ENOMEM;
    if (rc) {
        mem_host_free(c, out, r->s.out_bytes + 1);
        out = NULL;
    }
    if (!rc && !k->mem.addr)
        rc = region_add(c, &k->mem, k->data, k->room, false);
    r->args.send = k->data;
    r->args.recv = out;
    r->in = &k->mem;
    r->out = &c->failover.out;
    if (rc)
        recovery_refuse(err, "out of memory", rc);
    else
        rc = op_prepare(c, r, err);
    if (!rc && exec_add(c, r))
        rc = recovery_refuse(err, "out of memory", -ENOMEM);
    if (rc) {
        req_free(r);
        return rc;
    }
    c->exec.next_seq = id->seq;
    to_front(&c->exec, r);
    return 0;
}

static int start_over(struct comm *c, const struct failover_round *f, bool over, char *err)
{
    struct coll_req *r = c->exec.head;
    unsigned n = 0;
    int rc = 0;

    for (unsigned i = 0; i < c->failover.n_rounds; i++)
        n += c->failover.round[i].again;
    conn_renew(c);
    T_ASSERT(c->generation == n, "connections are of another generation than operations ask for");
    if (c->exec.running) {
        if (parts_of(&r->s) & ~f->parts)
            return recovery_refuse(err, "the next operation has begun", -EBUSY);
        c->exec.running = false;
        rc = rewind_running(c, r, err);
    }
    if (!rc)
        rc = others_reschedule(c, f, err);
    return rc || !over ? rc : help_again(c, f, err);
}

void op_recovery_destroy(struct comm *c)
{
    drop_out(c);
    for (unsigned i = 0; i < 2; i++) {
        region_drop(&c->failover.kept[i].mem);
        mem_host_free(c, c->failover.kept[i].data, c->failover.kept[i].room);
    }
}

int op_recovery(struct comm *c, const struct failover_round *f, char *err)
{
    struct coll_req *r = c->exec.head;
    bool over = r ? r->id.seq != f->seq : c->exec.opseq != f->seq, begun = c->exec.running;
    int rc;

    if (c->cfg.device && !f->whole)
        return recovery_refuse(err, "an operation under way in GPU memory", -ENOTSUP);
    if (f->again)
        return start_over(c, f, over, err);
    if (f->whole || (r && !over && !(parts_of(&r->s) & f->parts)))
        return others_reschedule(c, f, err); /* it keeps its schedule */
    if (r && begun && over && has_conns(&r->s))
        return recovery_refuse(err, "the next operation has begun", -EBUSY);
    if (r && begun) {
        c->exec.running = false;
        inputs_restore(c, r, f);
        rc = parts_of(&r->s) & PARTS_PROTOCOLS ? rewind_running(c, r, err) : 0;
        if (rc)
            return rc;
    }
    rc = others_reschedule(c, f, err);
    if (!rc && r && !over) {
        rc = op_cut(r, f, err);
        return rc ? rc : op_prepare(c, r, err);
    }
    return rc || !over ? rc : help_with(c, f, err);
}

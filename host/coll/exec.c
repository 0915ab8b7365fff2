/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs operations, one after the other in the order of their start. Each is a schedule; its lanes
 * are served by connections, by the edges to aggregation nodes and, the CPU's, here. A lane runs
 * only after an event that it waits for: a step of another lane or a completion; senders without
 * credit run in every call. One slice is reduced at a time, and sends that depend on it are posted
 * before the next.
 */
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- for transports ---- */

static void lane_push(struct lane_queue *q, unsigned lane)
{
    T_ASSERT_HOT(q->n < q->room, "a lane is queued more than once");
    q->lane[(q->head + q->n++) % q->room] = lane;
}

static unsigned lane_pop(struct lane_queue *q)
{
    T_ASSERT_HOT(q->n, "a lane is taken from an empty queue");
    unsigned lane = q->lane[q->head];

    q->head = (q->head + 1) % q->room;
    q->n--;
    return lane;
}

void exec_wake(struct comm *c, unsigned lane)
{
    struct coll_req *r = c->exec.head;

    if (lane == LANE_NONE || !c->exec.running || r->lane[lane].active)
        return;
    T_ASSERT_HOT(lane < r->s.n_lanes, "a transport wakes a lane of another operation");
    r->lane[lane].active = true;
    lane_push(&c->exec.ready, lane);
}

void exec_poll(struct comm *c, unsigned lane)
{
    struct coll_req *r = c->exec.head;

    if (r->lane[lane].polled)
        return;
    r->lane[lane].polled = true;
    lane_push(&c->exec.credit, lane);
}

void exec_posted(struct comm *c, struct coll_req *r, unsigned lane, uint64_t n)
{
    if (c->watch)
        c->watch->posted(c->watch->ctx, r, lane, n);
}

void exec_done(struct comm *c, struct coll_req *r, unsigned lane, uint64_t n)
{
    unsigned *at = &r->lane[lane].waiters;

    T_ASSERT_HOT(lane < r->s.n_lanes, "a step is done on a lane of another operation");
    T_ASSERT_HOT(n >= r->lane[lane].done, "the steps of a lane that are done become fewer");
    T_ASSERT_HOT(n <= r->s.lane[lane].n, "more steps of a lane are done than it has");
    if (n == r->lane[lane].done)
        return;
    r->lane[lane].done = n;
    T_ASSERT_HOT(r->lanes_left, "a lane ends in an operation without lanes to run");
    r->lanes_left -= n == r->s.lane[lane].n;
    c->exec.moved++;
    if (c->watch)
        c->watch->done(c->watch->ctx, r, lane, n);
    while (*at != LANE_NONE) {
        unsigned who = *at / WAITS, which = *at % WAITS;

        T_ASSERT_HOT(who < r->s.n_lanes && r->lane[who].wait[which].on,
                     "a list of waiters holds a lane that does not wait");
        if (r->lane[who].wait[which].count > n) {
            at = &r->lane[who].wait[which].next;
            continue;
        }
        *at = r->lane[who].wait[which].next;
        r->lane[who].wait[which].on = false;
        exec_wake(c, who);
    }
}

bool exec_may_start(struct coll_req *r, unsigned lane, enum wait_for which, const struct step *st)
{
    for (unsigned i = 0; i < st->n_deps; i++) {
        const struct dep *d = &st->dep[i];

        if (r->lane[d->lane].done >= d->count)
            continue;
        if (!r->lane[lane].wait[which].on) {
            r->lane[lane].wait[which].on = true;
            r->lane[lane].wait[which].count = d->count;
            r->lane[lane].wait[which].next = r->lane[d->lane].waiters;
            r->lane[d->lane].waiters = lane * WAITS + which;
        }
        return false;
    }
    return true;
}

uint8_t *exec_addr(const struct coll_req *r, const struct ref *ref)
{
    switch (ref->buf) {
    case BUF_IN:
        return (uint8_t *)(uintptr_t)r->args.send + ref->off;
    case BUF_OUT:
        return (uint8_t *)r->args.recv + ref->off;
    case BUF_TMP:
        return r->tmp->mem.addr + ref->off;
    case BUF_STAGE:
        return r->stage->mem.addr + ref->off;
    case BUF_SLOT:
        return conn_slot(r->lane[ref->lane].conn, ref->off);
    default:
        return NULL;
    }
}

uint32_t exec_lkey(const struct coll_req *r, const struct ref *ref, const struct port *p)
{
    const struct region *m = ref->buf == BUF_IN      ? r->in
                             : ref->buf == BUF_OUT   ? r->out
                             : ref->buf == BUF_TMP   ? &r->tmp->mem
                             : ref->buf == BUF_STAGE ? &r->stage->mem
                                                     : NULL;

    T_ASSERT_HOT(!m || m->mr[p->index], "memory of a step is not registered at its port");
    return m ? m->mr[p->index]->lkey : 0;
}

uint32_t exec_seq(const struct comm *c)
{
    return c->exec.running ? c->exec.head->id.seq : c->exec.next_seq - 1;
}

/* ---- the CPU's lanes ---- */

void exec_release(struct comm *c, struct coll_req *r, const struct ref *ref)
{
    if (ref->buf == BUF_SLOT)
        conn_release(c, r->lane[ref->lane].conn, ref->off);
}

static void cpu_step(struct comm *c, struct coll_req *r, const struct step *st)
{
    uint8_t *dst = exec_addr(r, &st->dst);
    const uint8_t *a = exec_addr(r, &st->a);
    size_t count = comm_unbacked(c) ? 0 : st->len / r->s.esize;

    if (count && st->op == STEP_REDUCE) {
        const void *both[2] = {a, exec_addr(r, &st->b)};

        arith_kernel(r->id.op, r->id.type)(dst, both, 2, count);
    } else if (count && dst != a) {
        memmove(dst, a, st->len);
    }
    if (count && st->last && r->id.op == OP_AVG)
        arith_divide(dst, r->id.type, c->cfg.nranks, count);
    T_ASSERT_HOT(st->b.buf != BUF_SLOT, "the second input of a reduction is a received message");
    exec_release(c, r, &st->a);
}

static unsigned cpu_run(struct comm *c, struct coll_req *r, unsigned lane)
{
    const struct lane *l = &r->s.lane[lane];
    const struct step *st = lane_step(l, r->lane[lane].done);

    if (r->lane[lane].done == l->n || !exec_may_start(r, lane, WAIT_START, st))
        return 0;
    cpu_step(c, r, st);
    exec_done(c, r, lane, r->lane[lane].done + 1);
    exec_wake(c, lane);
    return 1;
}

/* ---- operations ---- */

static bool is_conn(const struct lane *l)
{
    return l->kind == LANE_SEND || l->kind == LANE_RECV;
}

/* At the end of an operation no lane waits, and every step is done. */
static void check_over(const struct coll_req *r)
{
    for (unsigned l = 0; l < r->s.n_lanes; l++) {
        T_ASSERT(r->lane[l].done == r->s.lane[l].n, "an operation ends before its last step");
        T_ASSERT(r->lane[l].waiters == LANE_NONE, "an operation ends while a lane waits");
    }
}

static void op_begin(struct comm *c, struct coll_req *r)
{
    struct exec *x = &c->exec;

    T_ASSERT(r->id.seq == x->next_seq, "operations run in another order than they were started");
    T_ASSERT(x->ready.room >= r->s.n_lanes && x->credit.room >= r->s.n_lanes,
             "the queues of lanes are shorter than the schedule has lanes");
    comm_event(c, COMM_EV_OP_START, r->id.seq, r->s.in.algo);
    if (c->watch)
        c->watch->begin(c->watch->ctx, r);
    if (c->failover.missing)
        rejoin_look(c);
    failover_keep_begin(c, r);
    x->running = true;
    x->ready.n = x->credit.n = x->ready.head = x->credit.head = 0;
    for (unsigned l = 0; l < r->s.n_lanes; l++) {
        if (is_conn(&r->s.lane[l]))
            conn_begin(c, r, l);
        else if (r->s.lane[l].kind == LANE_AGG)
            agg_of_lane(c, &r->s.lane[l])->lane = l;
        else if (r->s.lane[l].kind == LANE_MM)
            plane_begin(c, l);
        exec_wake(c, l);
    }
    for (unsigned i = 0; i < c->n_conns && c->state == COMM_READY; i++)
        if (c->conn[i]->rx_lane == LANE_NONE)
            conn_check_strays(c, c->conn[i], r->id.seq);
}

/* Starts the time before the first step; true once it is over. */
static bool op_launch(struct comm *c, const struct coll_req *r)
{
    const struct comm_hooks *h = &c->hooks;

    if (!h->launch)
        return true;
    if (!c->exec.launched) {
        c->exec.launched = true;
        h->launch(h->ctx, topo_launch_ps(&c->topo, &r->s, c->cfg.rank));
    }
    return h->launched(h->ctx);
}

static void op_finish(struct comm *c, struct coll_req *r)
{
    T_ASSERT(c->exec.running && c->exec.head == r, "an operation ends that does not run");
    if (c->state == COMM_READY)
        check_over(r);
    comm_event(c, COMM_EV_OP_FINISH, r->id.seq, r->s.in.algo);
    if (c->watch)
        c->watch->end(c->watch->ctx, r);
    c->exec.running = c->exec.launched = false;
    c->exec.next_seq = r->id.seq + 1;
    failover_keep_end(c, r);
    for (unsigned l = 0; l < r->s.n_lanes && c->state == COMM_READY; l++)
        if (is_conn(&r->s.lane[l]))
            conn_end(c, r, l);
        else if (r->s.lane[l].kind == LANE_AGG)
            agg_of_lane(c, &r->s.lane[l])->lane = LANE_NONE;
        else if (r->s.lane[l].kind == LANE_MM)
            plane_of_lane(c, &r->s.lane[l])->lane = LANE_NONE;
    if (c->state != COMM_READY)
        return;
    c->exec.head = r->next;
    if (!c->exec.head)
        c->exec.tail = NULL;
    r->status = 1;
    if (r->abandoned)
        req_free(r);
}

static unsigned run_lane(struct comm *c, struct coll_req *r, unsigned lane)
{
    switch (r->s.lane[lane].kind) {
    case LANE_SEND:
    case LANE_RECV:
        return conn_run(c, r, lane);
    case LANE_AGG:
        return agg_run(c, r, lane);
    case LANE_MM:
        return plane_run(c, r, lane);
    case LANE_PROTOCOL:
        return protocol_run(c, r, lane);
    default:
        return c->cfg.device ? gpu_run(c, r, lane) : cpu_run(c, r, lane);
    }
}

/* Binds the buffers that coll_connect() was given; an operation that has started binds its own. */
static void bind_ahead(struct comm *c)
{
    struct coll_req *r = c->exec.binding;

    if (c->state == COMM_READY && !c->exec.head && !planes_bind(c, r))
        return;
    c->exec.binding = NULL;
    req_free(r);
}

unsigned exec_run(struct comm *c)
{
    struct exec *x = &c->exec;
    unsigned total = 0;

    if (x->binding)
        bind_ahead(c);

    for (; x->running && x->credit.n;) {
        unsigned lane = lane_pop(&x->credit);

        x->head->lane[lane].polled = false;
        exec_wake(c, lane);
    }
    while (x->head && c->state == COMM_READY && c->failover.state != FAILOVER_ASKING) {
        struct coll_req *r = x->head;

        if (!x->running && (!planes_bind(c, r) || !op_launch(c, r)))
            break;
        if (!x->running)
            op_begin(c, r);
        while (x->ready.n && r->lanes_left && c->state == COMM_READY) {
            unsigned lane = lane_pop(&x->ready);

            T_ASSERT_HOT(lane < r->s.n_lanes && r->lane[lane].active,
                         "a lane runs that was not woken");
            r->lane[lane].active = false;
            total += run_lane(c, r, lane);
        }
        if (r->lanes_left || c->state != COMM_READY)
            break;
        op_finish(c, r);
        total++;
    }
    return total;
}

static int queue_fit(struct lane_queue *q, unsigned lanes)
{
    unsigned *more;

    if (q->room >= lanes && q->room)
        return 0;
    more = malloc((lanes + 16) * sizeof(*more));
    if (!more)
        return -ENOMEM;
    for (unsigned i = 0; i < q->n; i++)
        more[i] = q->lane[(q->head + i) % q->room];
    free(q->lane);
    q->lane = more;
    q->head = 0;
    q->room = lanes + 16;
    return 0;
}

int exec_fit(struct comm *c, const struct coll_req *r)
{
    struct exec *x = &c->exec;

    return queue_fit(&x->ready, r->s.n_lanes) || queue_fit(&x->credit, r->s.n_lanes) ? -ENOMEM : 0;
}

int exec_add(struct comm *c, struct coll_req *r)
{
    struct exec *x = &c->exec;

    if (exec_fit(c, r))
        return -ENOMEM;
    T_ASSERT(!x->head == !x->tail, "the list of operations has a head and no tail");
    T_ASSERT(!x->tail || !x->tail->next, "the last operation of the list has a successor");
    if (x->tail)
        x->tail->next = r;
    else
        x->head = r;
    x->tail = r;
    return 0;
}

/* Requests stay readable: the caller may be in the middle of one. */
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
    if (c->exec.binding)
        req_free(c->exec.binding);
    while (c->exec.dead) {
        struct coll_req *next = c->exec.dead->next;

        req_free(c->exec.dead);
        c->exec.dead = next;
    }
    free(c->exec.ready.lane);
    free(c->exec.credit.lane);
}

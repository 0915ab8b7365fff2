/*
 * On without the aggregation nodes, when they refuse or give up (DESIGN, Trouble).
 *
 * The ranks agree through rank 0, by datagrams that are repeated until answered:
 *
 *   ASK       0 to all: aggregation has failed, why
 *   REPORT    all to 0: the first operation that is not finished here, and how many messages of
 * each tree it has got. Nothing runs from then on until VERDICT   0 to all: the first operation
 * that is not finished everywhere, how many messages of it all have, how many some rank has, and
 * who
 *
 * Where nobody has begun it, it is run by another algorithm like those after it. Else that
 * operation is finished by the hosts from the first message on that not all have
 * (alg_repair.c); later ones use other algorithms from their beginning. A rank that has finished it
 * may have given its buffers back, but others can lack at most a window of what it has: so an agent
 * keeps of a finished operation the last window, and of one whose results overwrite what was sent
 * the messages under way.
 *
 * Rejected: to wait with an operation's end until all have it. It would cost each of them a round
 * trip for the sake of failures.
 */
#include "host/coll/conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fall_type { FALL_ASK = 1, FALL_REPORT, FALL_VERDICT };
#define FALL_TEXT 96
#define ALL       UINT64_MAX /* messages of a rank that has finished */

struct fall_cut {
    rte_be64_t least; /* REPORT: messages done */
    rte_be32_t more, from;
} __attribute__((packed));

struct fall_msg {
    rte_be32_t magic, group, rank, type, seq;
    rte_be32_t flag; /* REPORT: begun; VERDICT: nobody has begun it */
    struct fall_cut cut[COLL_TREES];
    char why[FALL_TEXT];
} __attribute__((packed));
_Static_assert(sizeof(struct fall_msg) <= CTL_ROOM, "one datagram");

struct fall_report {
    bool here, begun;
    uint32_t seq;
    uint64_t done[COLL_TREES];
};

/* ---- what is kept ---- */

static uint8_t *kept_at(const struct agg *a, uint64_t msg, uint32_t mtu)
{
    return a->kept + msg % a->n_kept * AGG_MSG_BYTES(mtu);
}

int fall_keep_create(struct comm *c, struct agg *a)
{
    if (!c->cfg.fall_back)
        return 0;
    a->n_kept = 2 * a->depth + 2; /* under way, and of the operation before */
    a->kept = calloc(a->n_kept, AGG_MSG_BYTES(c->mtu));
    return a->kept ? 0 : -ENOMEM;
}

static bool same_place(const struct coll_req *r, const struct step *st)
{
    return st->dst.buf != BUF_NONE && st->a.buf != BUF_NONE &&
           exec_addr(r, &st->dst) == exec_addr(r, &st->a);
}

void fall_keep(struct agg *a, const struct coll_req *r, const struct step *st)
{
    if (a->kept && st->len && (st->agg == AGG_REDUCE || same_place(r, st)))
        memcpy(kept_at(a, a->posted, r->c->mtu), exec_addr(r, &st->a), st->len);
}

void fall_keep_end(struct comm *c, const struct coll_req *r)
{
    for (unsigned l = 0; c->cfg.fall_back && c->fall.state == FALL_NONE && l < r->s.n_lanes; l++) {
        const struct lane *lane = &r->s.lane[l];
        struct agg *a = lane->kind == LANE_AGG ? agg_of_lane(c, lane) : NULL;

        if (!a)
            continue;
        a->op_end = a->posted;
        for (uint64_t m = lane->n > a->depth ? lane->n - a->depth : 0; m < lane->n; m++) {
            const struct step *st = &lane->step[m];
            const struct ref *ref = st->agg == AGG_ALLREDUCE ? &st->dst : &st->a;

            if (st->len && st->agg != AGG_REDUCE && ref->buf != BUF_NONE)
                memcpy(kept_at(a, a->posted - lane->n + m, c->mtu), exec_addr(r, ref), st->len);
        }
    }
}

/* ---- the operations ---- */

static int cannot(char *err, const char *what, int rc)
{
    snprintf(err, COMM_TEXT, "cannot go on without aggregation nodes: %s", what);
    return rc;
}

/* In place of r's schedule, what is left of it. */
static int cut(struct comm *c, struct coll_req *r, char *err)
{
    struct sched rest;
    int rc = r->id.algo != ALGO_SHARP ? -ENOTSUP : sched_repair(&rest, &r->s, &c->fall.how);

    if (rc)
        return cannot(err,
                      r->id.algo != ALGO_SHARP ? "in the middle of another operation than by SHARP"
                                               : strerror(-rc),
                      rc);
    sched_free(&r->s);
    r->s = rest;
    return 0;
}

int fall_started(struct comm *c, struct coll_req *r, char *err)
{
    if (c->fall.state != FALL_DONE || r->id.seq != c->fall.seq || c->fall.whole ||
        !comm_by_switches(r->id.algo))
        return 0;
    c->fall.how.bare = false;
    return cut(c, r, err);
}

/* What results may have overwritten in part is put back. */
static void restore(struct comm *c, const struct coll_req *r)
{
    for (unsigned l = 0; l < r->s.n_lanes; l++) {
        const struct lane *lane = &r->s.lane[l];
        const struct agg *a = lane->kind == LANE_AGG ? agg_of_lane(c, lane) : NULL;
        uint64_t end = a ? r->lane[l].begun : 0, m = a ? c->fall.how.cut[lane->chan].least : 0;

        for (; a && m < end; m++) {
            const struct step *st = &lane->step[m];
            bool needed = st->agg == AGG_REDUCE || m >= r->done[l];

            if (st->len && needed && same_place(r, st))
                memcpy(exec_addr(r, &st->a), kept_at(a, a->posted - end + m, c->mtu), st->len);
        }
    }
}

/* It runs here. */
static int cut_running(struct comm *c, struct coll_req *r, char *err)
{
    int rc;

    restore(c, r);
    c->fall.how.bare = false;
    rc = cut(c, r, err);
    return rc ? rc : op_prepare(c, r, err);
}

/* It is over here, but not everywhere: a part in it without its buffers. */
static int help(struct comm *c, const struct op_id *id, char *err)
{
    struct exec *x = &c->exec;
    struct coll_req *r = calloc(1, sizeof(*r));
    struct sched was;
    int rc;

    if (!r)
        return cannot(err, "out of memory", -ENOMEM);
    *r = (struct coll_req){.c = c, .id = *id, .tag = op_tag(id), .abandoned = true};
    r->args = (struct coll_args){.kind = id->kind,
                                 .algo = id->algo,
                                 .count = id->count,
                                 .type = id->type,
                                 .op = id->op,
                                 .root = id->root};
    rc = op_schedule(c, r, err);
    if (rc) {
        free(r);
        return rc;
    }
    was = r->s;
    r->s = (struct sched){0};
    c->fall.how.bare = true;
    rc = sched_repair(&r->s, &was, &c->fall.how);
    if (rc)
        cannot(err, strerror(-rc), rc);
    else
        rc = op_prepare(c, r, err);
    for (unsigned l = 0; !rc && l < was.n_lanes; l++) {
        const struct lane *lane = &was.lane[l];
        const struct agg *a = lane->kind == LANE_AGG ? agg_of_lane(c, lane) : NULL;

        for (uint64_t m = a ? c->fall.how.cut[lane->chan].least : 0; a && m < lane->n; m++)
            memcpy(r->tmp->mem.addr + sched_repair_tmp(&was, &c->fall.how, lane->chan, m),
                   kept_at(a, a->op_end - lane->n + m, c->mtu), lane->step[m].len);
    }
    sched_free(&was);
    if (!rc && exec_add(c, r))
        rc = cannot(err, "out of memory", -ENOMEM);
    if (rc) {
        req_free(r);
        return rc;
    }
    x->next_seq = id->seq;
    if (x->head != r) { /* to the front */
        struct coll_req *p = x->head;

        while (p->next != r)
            p = p->next;
        p->next = NULL;
        x->tail = p;
        r->next = x->head;
        x->head = r;
    }
    return 0;
}

/* Operations after the one that was cut: none of them has a result of aggregation nodes yet. */
static int others(struct comm *c, char *err)
{
    for (struct coll_req *r = c->exec.head; r; r = r->next) {
        int rc;

        if ((r->id.seq == c->fall.seq && !c->fall.whole) || !comm_by_switches(r->id.algo))
            continue;
        sched_free(&r->s);
        rc = op_schedule(c, r, err);
        if (!rc)
            rc = op_prepare(c, r, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int carry_out(struct comm *c, char *err)
{
    struct coll_req *r = c->exec.head;
    bool begun = c->exec.running,
         over = r ? r->id.seq != c->fall.seq : c->exec.opseq != c->fall.seq;
    const struct op_id *id = op_known(c, c->fall.seq);
    int rc = 0;

    if (c->fall.whole || (r && !over && !comm_by_switches(r->id.algo)))
        return others(c, err); /* it goes on as it is */
    if (r && begun && over && !comm_by_switches(r->id.algo))
        return cannot(err, "the next operation has begun", -EBUSY);
    c->exec.running = false;
    if (r)
        restore(c, r);
    rc = others(c, err);
    if (!rc && r && !over)
        rc = cut_running(c, r, err);
    if (!rc && over && !id)
        rc = cannot(err, "an operation of long ago", -EBUSY);
    if (!rc && over && comm_by_switches(id->algo))
        rc = id->algo == ALGO_SHARP ? help(c, id, err) : cannot(err, "several levels", -ENOTSUP);
    return rc;
}

/* ---- agreement ---- */

static struct fall_msg message(const struct comm *c, enum fall_type type)
{
    struct fall_msg m = {
        .magic = rte_cpu_to_be_32(FALL_MAGIC),
        .group = rte_cpu_to_be_32(c->cfg.group),
        .rank = rte_cpu_to_be_32(c->cfg.rank),
        .type = rte_cpu_to_be_32(type),
    };

    snprintf(m.why, sizeof(m.why), "%.*s", FALL_TEXT - 1, c->fall.why);
    return m;
}

static void own_report(const struct comm *c, struct fall_report *p)
{
    const struct coll_req *r = c->exec.head;

    *p = (struct fall_report){
        .here = true, .begun = c->exec.running, .seq = r ? r->id.seq : c->exec.opseq};
    for (unsigned l = 0; r && l < r->s.n_lanes; l++)
        if (r->s.lane[l].kind == LANE_AGG && r->s.lane[l].peer == GROUP_ALL)
            p->done[r->s.lane[l].chan] = r->done[l];
}

static void report(struct comm *c)
{
    struct fall_msg m = message(c, FALL_REPORT);
    struct fall_report p;

    own_report(c, &p);
    m.seq = rte_cpu_to_be_32(p.seq);
    m.flag = rte_cpu_to_be_32(p.begun);
    for (unsigned k = 0; k < COLL_TREES; k++)
        m.cut[k].least = rte_cpu_to_be_64(p.done[k]);
    ctl_send_rank(c, 0, &m, sizeof(m));
}

static void end_ask(struct comm *c)
{
    char err[COMM_TEXT] = "";

    c->fall.state = FALL_DONE;
    join_leave(c); /* not before all have stopped: to others it would be a member that is gone */
    if (carry_out(c, err))
        comm_fail(c, "%s; %s", c->fall.why, err);
    comm_check_ready(c);
}

/* Rank 0 has every report. */
static void judge(struct comm *c)
{
    struct fall *f = &c->fall;
    uint32_t seq = f->report[0].seq;

    for (unsigned r = 1; r < c->cfg.nranks; r++)
        if ((int32_t)(f->report[r].seq - seq) < 0)
            seq = f->report[r].seq;
    f->seq = seq;
    f->whole = true;
    for (unsigned r = 0; r < c->cfg.nranks; r++)
        f->whole &= f->report[r].seq == seq && !f->report[r].begun;
    for (unsigned k = 0; k < COLL_TREES; k++) {
        struct sched_cut *cut = &f->how.cut[k];

        *cut = (struct sched_cut){.least = ALL};
        for (unsigned r = 0; r < c->cfg.nranks; r++) {
            uint64_t done = f->report[r].seq == seq ? f->report[r].done[k] : ALL;

            cut->least = done < cut->least ? done : cut->least;
            if (done > cut->most || !r) {
                cut->most = done;
                cut->from = r;
            }
        }
    }
}

static void tell_verdict(struct comm *c, unsigned rank)
{
    struct fall_msg m = message(c, FALL_VERDICT);

    m.seq = rte_cpu_to_be_32(c->fall.seq);
    m.flag = rte_cpu_to_be_32(c->fall.whole);
    for (unsigned k = 0; k < COLL_TREES; k++) {
        const struct sched_cut *cut = &c->fall.how.cut[k];
        uint64_t more = cut->most == ALL ? UINT32_MAX : cut->most - cut->least;

        m.cut[k] = (struct fall_cut){.least = rte_cpu_to_be_64(cut->least),
                                     .more = rte_cpu_to_be_32((uint32_t)more),
                                     .from = rte_cpu_to_be_32(cut->from)};
    }
    ctl_send_rank(c, rank, &m, sizeof(m));
}

static void on_report(struct comm *c, unsigned rank, const struct fall_msg *m)
{
    struct fall *f = &c->fall;
    struct fall_report *p = &f->report[rank];

    if (f->state == FALL_DONE) { /* it has not heard */
        tell_verdict(c, rank);
        return;
    }
    if (!p->here) {
        p->here = true;
        p->seq = rte_be_to_cpu_32(m->seq);
        p->begun = m->flag != 0;
        for (unsigned k = 0; k < COLL_TREES; k++)
            p->done[k] = rte_be_to_cpu_64(m->cut[k].least);
        f->n_reports++;
    }
    if (f->n_reports < c->cfg.nranks)
        return;
    judge(c);
    for (unsigned r = 1; r < c->cfg.nranks; r++)
        tell_verdict(c, r);
    end_ask(c);
}

static void on_verdict(struct comm *c, const struct fall_msg *m)
{
    if (c->fall.state != FALL_ASKING)
        return;
    c->fall.seq = rte_be_to_cpu_32(m->seq);
    c->fall.whole = m->flag != 0;
    for (unsigned k = 0; k < COLL_TREES; k++) {
        uint64_t least = rte_be_to_cpu_64(m->cut[k].least);
        uint32_t more = rte_be_to_cpu_32(m->cut[k].more), from = rte_be_to_cpu_32(m->cut[k].from);

        c->fall.how.cut[k] = (struct sched_cut){.least = least,
                                                .most = more == UINT32_MAX ? ALL : least + more,
                                                .from = from % c->cfg.nranks};
    }
    end_ask(c);
}

static void begin(struct comm *c, const char *why)
{
    struct fall *f = &c->fall;

    if (f->state != FALL_NONE || c->state == COMM_FAILED || c->closing)
        return;
    if (!c->cfg.fall_back || !(c->n_aggs + c->n_planes) || !c->ctl.peer) {
        comm_fail(c, "%s", why);
        return;
    }
    if (!c->cfg.rank && !f->report)
        f->report = calloc(c->cfg.nranks, sizeof(*f->report));
    if (!c->cfg.rank && !f->report) {
        comm_fail(c, "%s; out of memory", why);
        return;
    }
    snprintf(f->why, sizeof(f->why), "%s", why);
    f->state = FALL_ASKING;
    agg_stop(c);
    planes_stop(c);
    for (unsigned i = 0; i < c->n_aggs; i++)
        c->agg[i].lane = LANE_NONE;
    if (!c->cfg.rank) {
        own_report(c, &f->report[0]);
        f->n_reports = 1;
    }
    fall_tick(c);
}

void fall_begin(struct comm *c, const char *fmt, ...)
{
    char why[COMM_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    begin(c, why);
}

void fall_tick(struct comm *c)
{
    if (c->fall.state != FALL_ASKING || c->state == COMM_FAILED)
        return;
    if (c->cfg.rank) {
        report(c);
        return;
    }
    for (unsigned r = 1; r < c->cfg.nranks; r++) {
        struct fall_msg m = message(c, FALL_ASK);

        if (!c->fall.report[r].here)
            ctl_send_rank(c, r, &m, sizeof(m));
    }
}

void fall_input(struct comm *c, const void *msg, size_t len)
{
    struct fall_msg m;
    unsigned rank;

    if (len < sizeof(m) || !c->ctl.peer || c->state == COMM_FAILED)
        return;
    memcpy(&m, msg, sizeof(m));
    m.why[sizeof(m.why) - 1] = 0;
    rank = rte_be_to_cpu_32(m.rank);
    if (rte_be_to_cpu_32(m.group) != c->cfg.group || rank >= c->cfg.nranks || rank == c->cfg.rank)
        return;
    begin(c, m.why);
    if (rte_be_to_cpu_32(m.type) == FALL_REPORT && !c->cfg.rank && c->fall.report)
        on_report(c, rank, &m);
    else if (rte_be_to_cpu_32(m.type) == FALL_VERDICT && rank == 0)
        on_verdict(c, &m);
    else if (rte_be_to_cpu_32(m.type) == FALL_ASK && rank == 0)
        fall_tick(c);
}

void fall_destroy(struct comm *c)
{
    free(c->fall.report);
}

const char *comm_fell_back(const struct comm *c)
{
    return c->fall.state == FALL_DONE ? c->fall.why : NULL;
}

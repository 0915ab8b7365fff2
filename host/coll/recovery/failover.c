/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On without a part of the switches' help, when it is refused or given up (DESIGN, Trouble).
 *
 * The ranks agree through rank 0, by datagrams that are repeated until answered:
 *
 *   ASK       0 to all: these parts have failed, why
 *   REPORT    all to 0: the first operation that is not finished here, and how many messages of
 *             each tree it has got. Nothing runs from then on until
 *   VERDICT   0 to all: the first operation that is not finished everywhere, how many messages of
 *             it all have, how many some rank has, and who
 *   END       0 to all: there is no verdict, for that rank does not answer
 *
 * Where an answer is late, what is repeated goes by way of other ranks in turn as well, those in
 * the GPU nodes of both: the rail between two ranks may be what has failed.
 *
 * That is a round. Of the parts (trees of all, rails' trees, multimem) each fails once, so there
 * are a few at most; what fails while a round is under way is taken into it, and the reports given
 * before count no more.
 *
 * PART_FIT is a round in which nothing fails: switches have granted some rank smaller windows than
 * it asked for, or not all trees. A REPORT says what the rank was granted, the VERDICT the least of
 * all. A tree that some rank was refused is dropped by all; where a rank has begun an operation, or
 * none is left, the trees have failed instead.
 *
 * Rejected: to wait with an operation's end until all have it. It would cost each of them a round
 * trip for the sake of failures.
 */
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum failover_type { FAILOVER_ASK = 1, FAILOVER_REPORT, FAILOVER_VERDICT, FAILOVER_END };
/* The others give rank 0 time to say whom it misses. */
#define VERDICT_NS (PEER_NS + PEER_NS / 8)
/* BEGUN, ALONE, LAST are a report's: it runs; it needs what has failed and cannot be cut; so was
 * the one before. WHOLE, AGAIN are the verdict's. */
enum failover_flag { BEGUN = 1, ALONE = 2, LAST = 4, WHOLE = 8, AGAIN = 16 };
#define FAILOVER_TEXT 96
#define ALL           UINT64_MAX /* messages of a rank that has finished */

struct failover_cut {
    rte_be64_t least; /* REPORT: messages done */
    rte_be32_t more, from;
} __attribute__((packed));

struct failover_msg {
    rte_be32_t magic, group, rank, seq;
    rte_be32_t to; /* whoever else gets it passes it on */
    uint8_t type, round, parts;
    uint8_t flag; /* of failover_flag */
    struct failover_cut cut[COLL_TREES];
    char why[FAILOVER_TEXT];
} __attribute__((packed));
_Static_assert(sizeof(struct failover_msg) <= CTL_ROOM, "one datagram");

struct failover_report {
    bool here;
    uint32_t fit[COLL_TREES], rail;
    char why[FAILOVER_TEXT]; /* of fit */
    uint8_t flag;
    uint32_t seq;
    uint64_t done[COLL_TREES];
};

/* ---- messages ---- */

static struct failover_msg message(const struct comm *c, enum failover_type type, unsigned round,
                                   unsigned parts)
{
    struct failover_msg m = {
        .magic = rte_cpu_to_be_32(FAILOVER_MAGIC),
        .group = rte_cpu_to_be_32(c->cfg.group),
        .rank = rte_cpu_to_be_32(c->cfg.rank),
        .type = (uint8_t)type,
        .round = (uint8_t)round,
        .parts = (uint8_t)parts,
    };

    snprintf(m.why, sizeof(m.why), "%.*s", FAILOVER_TEXT - 1, c->fall.why);
    return m;
}

/* The k-th of the ranks that share a GPU node with one of two, in turn; NO_RANK: there are none. */
#define NO_RANK (~0u)
static unsigned mate(const struct comm *c, unsigned other, uint64_t k)
{
    const uint16_t *d = c->topo.domain;
    unsigned n = 0, last = NO_RANK;

    for (unsigned round = 0; round < 2 && (!round || n); round++) {
        if (round)
            k %= n;
        for (unsigned r = 0; r < c->cfg.nranks; r++) {
            if (r == other || r == c->cfg.rank || (d[r] != d[other] && d[r] != d[c->cfg.rank]))
                continue;
            if (!round)
                n++;
            else if (!k--)
                last = r;
        }
    }
    return last;
}

static void send_to(struct comm *c, unsigned rank, struct failover_msg *m)
{
    int64_t tries = (c->now_ns - c->fall.since_ns) / RETRY_NS;
    unsigned via = tries > 1 ? mate(c, rank, (uint64_t)tries) : NO_RANK;

    m->to = rte_cpu_to_be_32(rank);
    ctl_send_rank(c, rank, m, sizeof(*m));
    if (via != NO_RANK)
        ctl_send_rank(c, via, m, sizeof(*m));
}

static void own_report(const struct comm *c, struct failover_report *p)
{
    const struct coll_req *r = c->exec.head;
    bool alone = c->exec.running && op_recovery_whole(&r->s) & c->fall.parts;

    *p = (struct failover_report){.here = true,
                                  .flag = (uint8_t)((c->exec.running ? BEGUN : 0) |
                                                    (alone ? ALONE : 0) |
                                                    (c->fall.last & c->fall.parts ? LAST : 0)),
                                  .seq = r ? r->id.seq : c->exec.opseq};
    for (unsigned l = 0; r && l < r->s.n_lanes; l++)
        if (r->s.lane[l].kind == LANE_AGG && r->s.lane[l].peer == GROUP_ALL)
            p->done[r->s.lane[l].chan] = r->lane[l].done;
    p->rail = fit_report(c, p->fit);
    snprintf(p->why, sizeof(p->why), "%s", c->fit.less);
}

/* Not before there is something to report on what was granted. */
static bool can_report(const struct comm *c)
{
    return !(c->fall.parts & PART_FIT) || c->fall.stopped & PART_TREES || fit_known(c);
}

static void report(struct comm *c)
{
    struct failover_msg m = message(c, FAILOVER_REPORT, c->fall.n_rounds, c->fall.parts);
    struct failover_report p;

    if (!can_report(c))
        return;
    own_report(c, &p);
    m.seq = rte_cpu_to_be_32(p.seq);
    m.flag = p.flag;
    for (unsigned k = 0; k < COLL_TREES; k++) {
        m.cut[k].least = rte_cpu_to_be_64(p.done[k]);
        m.cut[k].more = rte_cpu_to_be_32(p.fit[k]);
    }
    m.cut[0].from = rte_cpu_to_be_32(p.rail);
    if (c->fall.parts & PART_FIT)
        memcpy(m.why, p.why, sizeof(m.why));
    send_to(c, 0, &m);
}

static void tell_verdict(struct comm *c, unsigned rank, unsigned round)
{
    const struct failover_round *f = &c->fall.round[round];
    struct failover_msg m = message(c, FAILOVER_VERDICT, round, f->parts);

    m.seq = rte_cpu_to_be_32(f->seq);
    m.flag = (f->whole ? WHOLE : 0) | (f->again ? AGAIN : 0);
    for (unsigned k = 0; k < COLL_TREES; k++) {
        const struct sched_cut *cut = &f->how.cut[k];
        uint64_t more = cut->most == ALL ? UINT32_MAX : cut->most - cut->least;

        m.cut[k] = (struct failover_cut){.least = rte_cpu_to_be_64(cut->least),
                                         .more = rte_cpu_to_be_32((uint32_t)more),
                                         .from = rte_cpu_to_be_32(cut->from)};
        if (f->parts == PART_FIT)
            m.cut[k] = (struct failover_cut){.more = rte_cpu_to_be_32(f->fit[k]),
                                             .from = rte_cpu_to_be_32(f->rail)};
    }
    send_to(c, rank, &m);
}

/* ---- agreement ---- */

static void begin(struct comm *c, unsigned parts, const char *why);

/* Behind what the text says already, as far as there is room. */
static void tell_more(struct comm *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void tell_more(struct comm *c, const char *fmt, ...)
{
    size_t len = strlen(c->fall.text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(c->fall.text + len, sizeof(c->fall.text) - len, fmt, ap);
    va_end(ap);
}

/* Why, and from where on: of the trees the one that is least far. */
static void explain(struct comm *c, const struct failover_round *f)
{
    uint64_t least = ALL;

    for (unsigned k = 0; k < agg_trees(c, GROUP_ALL); k++)
        least = f->how.cut[k].least < least ? f->how.cut[k].least : least;
    tell_more(c, "%s%.*s", *c->fall.text ? "; then " : "", FAILOVER_TEXT, c->fall.why);
    if (!f->whole && !f->again && f->parts & PART_TREES && least != ALL)
        tell_more(c, " (from message %llu of the communicator's operation %u on)",
                  (unsigned long long)least + 1, f->seq + 1);
    else if (f->again)
        tell_more(c, " (the communicator's operation %u starts over)", f->seq + 1);
    else if (f->seq || !f->whole)
        tell_more(c, " (from the communicator's operation %u on)", f->seq + 1);
}

/* A connection that is still meant to be used. */
static bool is_broken(const struct comm *c)
{
    return c->fall.broken && !conn_is_old(c, c->fall.broken);
}

static void cannot_reach(struct comm *c)
{
    comm_fail(c, "%s; rank %u (%s) cannot be reached", c->fall.why, c->fall.broken->peer,
              comm_host(c, c->fall.broken->peer));
}

static void stop(struct comm *c, unsigned parts)
{
    c->fall.stopped |= parts;
    agg_stop(c, parts);
    if (parts & PART_MM)
        planes_stop(c);
}

/* What has failed here since the report that the verdict is about needs a round of its own. */
static void ask_again(struct comm *c, unsigned parts)
{
    char why[COMM_TEXT];

    snprintf(why, sizeof(why), "%s", c->fall.why);
    c->fall.stopped &= ~parts;
    begin(c, parts, why);
}

/* Whether the parts of the verdict are given up here, and operations go on without them. */
static int give_up_parts(struct comm *c, const struct failover_round *f, char *err)
{
    stop(c, f->parts & ~c->fall.stopped);
    explain(c, f);
    join_leave(c, f->parts); /* not before all have stopped: to others it would be a member gone */
    if (f->parts & PART_MM)
        planes_leave(c);
    return op_recovery(c, f, err);
}

static void end_ask(struct comm *c)
{
    const struct failover_round *f = &c->fall.round[c->fall.n_rounds++];
    const unsigned left = c->fall.parts & ~f->parts;
    const bool fits = f->parts == PART_FIT;
    char err[COMM_TEXT] = "";

    c->fall.state = FAILOVER_DONE;
    if (!fits && f->parts & ~c->fall.stopped && !policy_goes_on(c, f->parts | c->fall.stopped)) {
        comm_fail(c, "%s",
                  c->fall.why); /* the verdict has made it more than what was asked about */
        return;
    }
    if (fits ? fit_apply(c, f, c->fall.why, err) : give_up_parts(c, f, err))
        comm_fail(c, "%s; %s", c->fall.why, err);
    if (is_broken(c))
        cannot_reach(c);
    c->fall.broken = NULL;
    if (left)
        ask_again(c, left);
    comm_check_ready(c);
}

/* The least of what all were granted. That a tree is dropped is no way where an operation may have
 * begun to use it, where none is left, or where something else has failed, of which the verdict has
 * to tell: then the trees have failed. */
static void judge_fit(const struct comm *c, struct failover_round *f, char *why)
{
    const struct failover_report *p = c->fall.report;
    uint32_t least = UINT32_MAX;
    bool dropped = false, left = false, alone = f->parts == PART_FIT;

    for (unsigned r = 0; r < c->cfg.nranks; r++) {
        if (p[r].rail && (!f->rail || p[r].rail < f->rail))
            f->rail = p[r].rail;
        if (p[r].rail && p[r].rail < least && *p[r].why) {
            least = p[r].rail;
            snprintf(why, COMM_TEXT, "%s", p[r].why);
        }
    }
    for (unsigned k = 0; k < agg_trees(c, GROUP_ALL); k++) {
        f->fit[k] = UINT32_MAX;
        for (unsigned r = 0; r < c->cfg.nranks; r++) {
            f->fit[k] = p[r].fit[k] < f->fit[k] ? p[r].fit[k] : f->fit[k];
            if (p[r].fit[k] >= least || !*p[r].why)
                continue;
            least = p[r].fit[k];
            snprintf(why, COMM_TEXT, "%s", p[r].why);
        }
        dropped |= !f->fit[k];
        left |= f->fit[k] > 0;
    }
    if (dropped && (!left || !f->whole || f->seq || !alone))
        f->parts |= PART_TREES;
}

/* Rank 0 has every report. */
static void judge(struct comm *c, struct failover_round *f)
{
    const struct failover_report *p = c->fall.report;

    *f = (struct failover_round){.parts = c->fall.parts, .seq = p[0].seq, .whole = true};
    for (unsigned r = 1; r < c->cfg.nranks; r++)
        if ((int32_t)(p[r].seq - f->seq) < 0)
            f->seq = p[r].seq;
    for (unsigned r = 0; r < c->cfg.nranks; r++) {
        f->whole &= p[r].seq == f->seq && !(p[r].flag & BEGUN);
        f->again |= p[r].flag & (p[r].seq == f->seq ? ALONE : LAST);
    }
    for (unsigned k = 0; k < COLL_TREES; k++) {
        struct sched_cut *cut = &f->how.cut[k];

        *cut = (struct sched_cut){.least = ALL};
        for (unsigned r = 0; r < c->cfg.nranks; r++) {
            uint64_t done = p[r].seq == f->seq ? p[r].done[k] : ALL;

            cut->least = done < cut->least ? done : cut->least;
            if (done > cut->most || !r) {
                cut->most = done;
                cut->from = r;
            }
        }
    }
    if (f->parts & PART_FIT && !(f->parts & PART_TREES))
        judge_fit(c, f, c->fall.why);
}

static void judge_when_all_are_here(struct comm *c)
{
    unsigned round = c->fall.n_rounds;

    for (unsigned r = 0; r < c->cfg.nranks; r++)
        if (!c->fall.report[r].here)
            return;
    judge(c, &c->fall.round[round]);
    for (unsigned r = 1; r < c->cfg.nranks; r++)
        tell_verdict(c, r, round);
    end_ask(c);
}

static void on_report(struct comm *c, unsigned rank, const struct failover_msg *m)
{
    struct failover_report *p = &c->fall.report[rank];

    if (m->round < c->fall.n_rounds) { /* it has not heard */
        tell_verdict(c, rank, m->round);
        return;
    }
    if (c->fall.state != FAILOVER_ASKING || m->round > c->fall.n_rounds || p->here ||
        m->parts != c->fall.parts)
        return;
    *p = (struct failover_report){.here = true, .flag = m->flag, .seq = rte_be_to_cpu_32(m->seq)};
    for (unsigned k = 0; k < COLL_TREES; k++) {
        p->done[k] = rte_be_to_cpu_64(m->cut[k].least);
        p->fit[k] = rte_be_to_cpu_32(m->cut[k].more);
    }
    p->rail = rte_be_to_cpu_32(m->cut[0].from);
    memcpy(p->why, m->why, sizeof(p->why));
    judge_when_all_are_here(c);
}

static void on_verdict(struct comm *c, const struct failover_msg *m)
{
    struct failover_round *f = &c->fall.round[c->fall.n_rounds];

    if (c->fall.state != FAILOVER_ASKING || m->round != c->fall.n_rounds)
        return;
    *f = (struct failover_round){.parts = m->parts,
                                 .seq = rte_be_to_cpu_32(m->seq),
                                 .whole = m->flag & WHOLE,
                                 .again = m->flag & AGAIN};
    for (unsigned k = 0; k < COLL_TREES; k++) {
        uint64_t least = rte_be_to_cpu_64(m->cut[k].least);
        uint32_t more = rte_be_to_cpu_32(m->cut[k].more), from = rte_be_to_cpu_32(m->cut[k].from);

        f->fit[k] = more;
        f->rail = from;
        f->how.cut[k] = (struct sched_cut){.least = least,
                                           .most = more == UINT32_MAX ? ALL : least + more,
                                           .from = from % c->cfg.nranks};
    }
    if (f->parts & PART_FIT) /* rank 0 has the words of the switch that gives least */
        snprintf(c->fall.why, sizeof(c->fall.why), "%s", m->why);
    end_ask(c);
}

/* These parts too. */
static void widen(struct comm *c, unsigned parts)
{
    struct failover *f = &c->fall;

    f->parts |= parts;
    stop(c, parts);
    if (!c->cfg.rank) {
        memset(f->report, 0, c->cfg.nranks * sizeof(*f->report));
        if (can_report(c))
            own_report(c, &f->report[0]);
    }
    failover_tick(c);
}

void failover_fit_known(struct comm *c)
{
    struct failover *f = &c->fall;

    if (f->state != FAILOVER_ASKING || !(f->parts & PART_FIT) || !can_report(c))
        return;
    if (c->cfg.rank) {
        report(c);
    } else if (!f->report[0].here) {
        own_report(c, &f->report[0]);
        judge_when_all_are_here(c);
    }
}

static void begin(struct comm *c, unsigned parts, const char *why)
{
    struct failover *f = &c->fall;

    if (c->state == COMM_FAILED || c->closing || !(parts & ~f->stopped))
        return;
    if (!policy_goes_on(c, parts | f->stopped) || !c->ctl.peer || f->n_rounds == PARTS ||
        ((c->cfg.unback || c->cfg.device) &&
         c->exec.head)) { /* what it would go on from is data, or in a GPU */
        comm_fail(c, "%s", why);
        return;
    }
    if (!c->cfg.rank && !f->report)
        f->report = calloc(c->cfg.nranks, sizeof(*f->report));
    if (!c->cfg.rank && !f->report) {
        comm_fail(c, "%s; out of memory", why);
        return;
    }
    if (f->state != FAILOVER_ASKING) {
        f->parts = 0;
        f->since_ns = c->now_ns;
        snprintf(f->why, sizeof(f->why), "%s", why);
    }
    f->state = FAILOVER_ASKING;
    if (c->exec.running && op_recovery_whole(&c->exec.head->s) & parts) /* it ends as a whole */
        parts |= op_recovery_whole(&c->exec.head->s);
    if (f->last & parts)
        parts |= f->last;
    widen(c, parts & ~f->stopped);
}

void failover_begin(struct comm *c, unsigned parts, const char *fmt, ...)
{
    char why[COMM_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    begin(c, parts, why);
}

static void not_answered(struct comm *c, unsigned r)
{
    comm_fail(c, "%s; rank %u (%s) does not answer", c->fall.why, r, comm_host(c, r));
}

/* Rank 0 knows who it is. */
static void say_end(struct comm *c, unsigned missing)
{
    for (unsigned r = 1; r < c->cfg.nranks; r++) {
        struct failover_msg m = message(c, FAILOVER_END, c->fall.n_rounds, c->fall.parts);

        m.cut[0].from = rte_cpu_to_be_32(missing);
        send_to(c, r, &m);
    }
}

/* Names who has not answered. */
static void give_up(struct comm *c)
{
    unsigned r = 0;

    if (is_broken(c)) {
        cannot_reach(c);
        return;
    }
    while (!c->cfg.rank && r + 1 < c->cfg.nranks && c->fall.report[r].here)
        r++;
    if (!c->cfg.rank)
        say_end(c, r);
    not_answered(c, r);
}

void failover_tick(struct comm *c)
{
    if (c->fall.state != FAILOVER_ASKING || c->state == COMM_FAILED)
        return;
    if (c->now_ns - c->fall.since_ns > (is_broken(c)  ? GIVE_UP_NS
                                        : c->cfg.rank ? VERDICT_NS
                                                      : PEER_NS)) {
        give_up(c);
        return;
    }
    if (c->cfg.rank) {
        report(c);
        return;
    }
    for (unsigned r = 1; r < c->cfg.nranks; r++) {
        struct failover_msg m = message(c, FAILOVER_ASK, c->fall.n_rounds, c->fall.parts);

        if (!c->fall.report[r].here)
            send_to(c, r, &m);
    }
}

void failover_input(struct comm *c, const void *msg, size_t len)
{
    struct failover_msg m;
    unsigned rank, to;

    if (len < sizeof(m) || !c->ctl.peer || c->state == COMM_FAILED)
        return;
    memcpy(&m, msg, sizeof(m));
    m.why[sizeof(m.why) - 1] = 0;
    rank = rte_be_to_cpu_32(m.rank);
    to = rte_be_to_cpu_32(m.to);
    if (rte_be_to_cpu_32(m.group) != c->cfg.group || rank >= c->cfg.nranks || rank == c->cfg.rank ||
        to >= c->cfg.nranks || m.round >= PARTS)
        return;
    if (to != c->cfg.rank) {
        ctl_send_rank(c, to, &m, sizeof(m));
        return;
    }
    if (m.round == c->fall.n_rounds)
        begin(c, m.parts & ((1u << PARTS) - 1), m.why);
    if (m.type == FAILOVER_REPORT && !c->cfg.rank && c->fall.report)
        on_report(c, rank, &m);
    else if (m.type == FAILOVER_VERDICT && rank == 0)
        on_verdict(c, &m);
    else if (m.type == FAILOVER_ASK && rank == 0)
        failover_tick(c);
    else if (m.type == FAILOVER_END && rank == 0 && c->fall.state == FAILOVER_ASKING &&
             m.round == c->fall.n_rounds)
        not_answered(c, rte_be_to_cpu_32(m.cut[0].from) % c->cfg.nranks);
}

void failover_destroy(struct comm *c)
{
    op_recovery_destroy(c);
    free(c->fall.report);
}

const char *comm_fell_back(const struct comm *c)
{
    return *c->fall.text ? c->fall.text : NULL;
}

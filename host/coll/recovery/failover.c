/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failover after a part of the in-network path is refused or fails.
 *
 * The ranks agree through rank 0, by datagrams that are repeated until answered:
 *
 *   ASK       0 to all: these parts have failed, why
 *   REPORT    all to 0: the first operation that is not finished here, and how many messages of
 *             each tree it has got. Nothing runs from then on until
 *   VERDICT   0 to all: the first operation that is not finished everywhere, how many messages of
 *             it all ranks have, how many some rank has, and which
 *   END       0 to all: there is no verdict, because that rank does not answer
 *
 * This is a round. Each part (trees of all ranks, rails' trees, multimem, each protocol) fails
 * once, except for trees, which may return. A part that fails while a round is under way is taken
 * into it, and reports given before no longer count.
 *
 * PART_FIT is a round in which nothing fails: switches have granted some rank smaller windows than
 * it asked for, or not all trees. A REPORT says what the rank was granted, the VERDICT the least of
 * all. All ranks drop a tree that some rank was refused; where a rank has begun an operation, or no
 * tree is left, the trees have failed instead.
 *
 * PART_BACK is a round in which trees return: those that have not failed, right after one that gave
 * up all of them, and later what has been repaired (rejoin.c).
 *
 * Rejected: a rank ends an operation only when all ranks have it. Every operation would pay a round
 * trip for the sake of failures.
 */
#include "host/coll/recovery/failover_priv.h"

#include "base/log.h"
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranks other than 0 wait longer: rank 0 has time to tell them which rank does not answer. */
#define VERDICT_NS (PEER_NS + PEER_NS / 8)

static const char *const state_names[FAILOVER_STATES] = {
    [FAILOVER_NONE] = "none", [FAILOVER_ASKING] = "asking", [FAILOVER_DONE] = "done"};

static void set_state(struct comm *c, enum failover_state state)
{
    T_ASSERT(state == FAILOVER_ASKING || c->failover.state == FAILOVER_ASKING,
             "a round ends that has not begun");
    c->failover.state = state;
    T_LOG("coll", LOG_DEBUG, "rank %u: failover round %u: %s, parts %u", c->cfg.rank,
          c->failover.n_rounds, state_names[state], c->failover.parts);
}

/* ---- agreement ---- */

static void round_begin(struct comm *c, unsigned parts, const char *why);

/* Appends to the text, as far as there is room. */
static void tell_more(struct comm *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void tell_more(struct comm *c, const char *fmt, ...)
{
    size_t len = strlen(c->failover.text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(c->failover.text + len, sizeof(c->failover.text) - len, fmt, ap);
    va_end(ap);
}

/* Appends the reason, and the first message that the tree with the least progress lacks. */
static void round_explain(struct comm *c, const struct failover_round *f)
{
    uint64_t least = FAILOVER_ALL;

    for (unsigned k = 0; k < COLL_TREES; k++)
        if (agg_in_use(c) >> k & 1 && f->how.cut[k].least < least)
            least = f->how.cut[k].least;
    tell_more(c, "%s%.*s", *c->failover.text ? "; then " : "", FAILOVER_TEXT, c->failover.why);
    if (!f->whole && !f->again && f->parts & PART_TREES && least != FAILOVER_ALL)
        tell_more(c, " (from message %llu of the communicator's operation %u on)",
                  (unsigned long long)least + 1, f->seq + 1);
    else if (f->again)
        tell_more(c, " (the communicator's operation %u starts over)", f->seq + 1);
    else if (f->seq || !f->whole)
        tell_more(c, " (from the communicator's operation %u on)", f->seq + 1);
}

/* A connection of the current generation has failed. */
static bool is_broken(const struct comm *c)
{
    return c->failover.broken && !conn_is_old(c, c->failover.broken);
}

static void cannot_reach(struct comm *c)
{
    comm_fail(c, "%s; rank %u (%s) cannot be reached", c->failover.why, c->failover.broken->peer,
              comm_host(c, c->failover.broken->peer));
}

static void parts_stop(struct comm *c, unsigned parts)
{
    T_ASSERT(!(parts & ~FAILOVER_PARTS), "a part that does not exist is stopped");
    c->failover.stopped |= parts;
    agg_stop(c, parts);
    if (parts & PART_MM)
        planes_stop(c);
    protocols_stop(c, parts);
}

/* Parts that have failed here since this rank's report need a round of their own. */
static void ask_again(struct comm *c, unsigned parts)
{
    char why[COMM_TEXT];

    snprintf(why, sizeof(why), "%s", c->failover.why);
    c->failover.stopped &= ~parts;
    round_begin(c, parts, why);
}

/* Appends how many trees each protocol still uses. */
static void say_trees(struct comm *c, const struct failover_round *f)
{
    for (unsigned seat = 0; seat < PROTO_SEATS; seat++)
        if (f->fewer & PART_PROTOCOL(seat))
            tell_more(c, "; %s by %d of %u trees", proto_at(seat)->name,
                      __builtin_popcount(protocol_in_use(c, seat)), c->protocols->of[seat].n);
}

/* Stops and leaves the verdict's parts, and reschedules operations without them. 0 or -errno. */
static int give_up_parts(struct comm *c, const struct failover_round *f, char *err)
{
    int rc;

    parts_stop(c, f->parts & ~c->failover.stopped);
    round_explain(c, f);
    join_leave(c, f->parts); /* after all have stopped: before, it would look like a lost member */
    if (f->parts & PART_MM)
        planes_leave(c);
    protocols_leave(c, f->parts & ~f->fewer);
    rejoin_give_up(c, f);
    rc = protocols_fewer(c, f->parts, f->protocol, err);
    c->failover.stopped &= ~f->fewer;
    say_trees(c, f);
    return rc ? rc : op_recovery(c, f, err);
}

/* The stopped parts are those that rounds have given up and not taken back, and `left`, which need
 * a round of their own. */
static void check_stopped(const struct comm *c, unsigned left)
{
    unsigned parts = 0;

    for (unsigned i = 0; i < c->failover.n_rounds; i++) {
        const struct failover_round *f = &c->failover.round[i];

        if (f->parts != PART_BACK)
            parts |= f->parts & ~f->fewer;
        else if (f->trees)
            parts &= ~PART_TREES;
    }
    T_ASSERT(c->state == COMM_FAILED || (parts | left) == c->failover.stopped,
             "the parts that are stopped are not those that the rounds have given up");
}

/* Whether an algorithm goes on without the parts that the round gives up, or SHARP on the trees
 * that are left. */
static bool round_goes_on(const struct comm *c, const struct failover_round *f)
{
    unsigned parts = (f->parts | c->failover.stopped) & ~f->fewer;
    bool follows = f->parts & PART_TREES ? rejoin_survivors(c, f) : f->back;

    return policy_goes_on(c, follows ? parts & ~PART_TREES : parts);
}

/* Applies the agreement on windows: trees that some rank was refused are not used. */
static int fit_agreed(struct comm *c, const struct failover_round *f, char *err)
{
    const struct failover_round all = {.parts = PART_TREES, .whole = true};

    if (!fit_apply(c, f->fit, f->rail, c->failover.why))
        return 0;
    c->failover.first = c->failover.trees = agg_in_use(c);
    if (!c->failover.trees) {
        snprintf(err, COMM_TEXT, "rank 0 gives up every tree without their failure");
        return -EPROTO;
    }
    return op_recovery(c, &all, err);
}

static void end_round(struct comm *c)
{
    T_ASSERT(c->failover.n_rounds < FAILOVER_ROUNDS, "more rounds than a communicator has");
    const struct failover_round *f = &c->failover.round[c->failover.n_rounds++];
    unsigned left = c->failover.parts & ~f->parts & ~PART_BACK;
    char err[COMM_TEXT] = "";
    int rc;

    set_state(c, FAILOVER_DONE);
    c->failover.stopped &= ~PART_BACK;
    comm_event(c, COMM_EV_FAIL_AGREED, f->parts, f->seq);
    if (!(f->parts & (PART_FIT | PART_BACK)) && !round_goes_on(c, f)) {
        comm_fail(c, "%s", c->failover.why);
        return;
    }
    c->failover.lost = 0;
    if (c->protocols)
        c->protocols->failing = 0;
    rc = f->parts == PART_FIT    ? fit_agreed(c, f, err)
         : f->parts == PART_BACK ? rejoin_apply(c, f, err)
                                 : give_up_parts(c, f, err);
    if (rc)
        comm_fail(c, "%s; %s", c->failover.why, err);
    if (is_broken(c))
        cannot_reach(c);
    c->failover.broken = NULL;
    comm_event(c, COMM_EV_FAIL_DONE, c->failover.stopped, c->failover.n_rounds);
    check_stopped(c, left);
    left |= (c->failover.back ? PART_BACK : 0) | (c->failover.lost ? PART_TREES : 0);
    if (left)
        ask_again(c, left);
    comm_check_ready(c);
}

static void judge_when_all_are_here(struct comm *c)
{
    unsigned round = c->failover.n_rounds;

    for (unsigned r = 0; r < c->cfg.nranks; r++)
        if (!c->failover.report[r].here)
            return;
    failover_judge(c, &c->failover.round[round]);
    for (unsigned r = 1; r < c->cfg.nranks; r++)
        failover_send_verdict(c, r, round);
    end_round(c);
}

/* Notes the protocols' trees that another rank has seen to fail. */
static void hear_protocols(struct comm *c, const struct failover_msg *m)
{
    if (c->protocols)
        c->protocols->failing |= m->protocol;
}

static void on_report(struct comm *c, unsigned rank, const struct failover_msg *m)
{
    struct failover_report *p = &c->failover.report[rank];

    if (m->round < c->failover.n_rounds) { /* the verdict was lost on its way there */
        failover_send_verdict(c, rank, m->round);
        return;
    }
    if (c->failover.state != FAILOVER_ASKING || m->round > c->failover.n_rounds || p->here ||
        rte_be_to_cpu_16(m->parts) != c->failover.parts)
        return;
    failover_read_report(m, p);
    if (!(c->failover.parts & PART_BACK))
        c->failover.lost |= m->trees & c->failover.trees;
    hear_protocols(c, m);
    judge_when_all_are_here(c);
}

static void on_verdict(struct comm *c, const struct failover_msg *m)
{
    struct failover_round *f;

    if (c->failover.state != FAILOVER_ASKING || m->round != c->failover.n_rounds)
        return;
    f = &c->failover.round[c->failover.n_rounds];
    failover_read_verdict(c, m, f);
    c->failover.back = f->back;
    if (f->parts & PART_FIT) /* rank 0 has the text of the switch that grants least */
        snprintf(c->failover.why, sizeof(c->failover.why), "%s", m->why);
    end_round(c);
}

/* Takes these parts into the round: reports given so far no longer count. */
static void round_widen(struct comm *c, unsigned parts)
{
    struct failover *f = &c->failover;

    f->parts |= parts;
    parts_stop(c, parts);
    if (parts & PART_BACK)
        rejoin_start(c);
    T_ASSERT(!(f->parts & ~f->stopped), "a part that the ranks agree on is still in use");
    if (!c->cfg.rank) {
        memset(f->report, 0, c->cfg.nranks * sizeof(*f->report));
        if (failover_can_report(c))
            failover_own_report(c, &f->report[0]);
    }
    failover_tick(c);
}

void failover_fit_known(struct comm *c)
{
    struct failover *f = &c->failover;

    if (f->state != FAILOVER_ASKING || !(f->parts & (PART_FIT | PART_BACK)) ||
        !failover_can_report(c))
        return;
    if (c->cfg.rank) {
        failover_send_report(c);
    } else if (!f->report[0].here) {
        failover_own_report(c, &f->report[0]);
        judge_when_all_are_here(c);
    }
}

/* Whether some algorithm may go on, or SHARP on trees that this rank has not seen to fail. The
 * verdict may know more. */
static bool may_go_on(const struct comm *c, unsigned parts)
{
    const struct failover *f = &c->failover;

    if (parts == PART_BACK)
        return true;
    parts |= f->stopped;
    if (f->back || (c->state == COMM_READY && f->trees & ~f->lost))
        parts &= ~PART_TREES;
    parts &= ~protocols_go_on(c, parts, c->protocols ? c->protocols->failing : 0);
    return policy_goes_on(c, parts & PARTS_ALL);
}

static void round_begin(struct comm *c, unsigned parts, const char *why)
{
    struct failover *f = &c->failover;

    if (c->state == COMM_FAILED || c->closing || !(parts & ~f->stopped))
        return;
    if (!f->round)
        f->round = calloc(FAILOVER_ROUNDS, sizeof(*f->round));
    if (!f->round || !may_go_on(c, parts) || !c->ctl.peer || f->n_rounds == FAILOVER_ROUNDS ||
        (c->cfg.device && c->exec.head && parts != PART_BACK)) {
        /* an operation under way can be taken up again only from host memory */
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
    }
    if (f->state != FAILOVER_ASKING || f->parts == PART_BACK)
        snprintf(f->why, sizeof(f->why), "%s", why);
    set_state(c, FAILOVER_ASKING);
    /* what cannot be cut starts over without any of its parts */
    if (c->exec.running && op_recovery_whole(&c->exec.head->s) & parts)
        parts |= op_recovery_whole(&c->exec.head->s);
    if (f->last_parts & parts)
        parts |= f->last_parts;
    comm_event(c, COMM_EV_FAIL_BEGIN, parts, f->n_rounds);
    round_widen(c, parts & ~f->stopped);
}

void failover_begin(struct comm *c, unsigned parts, const char *fmt, ...)
{
    char why[COMM_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    round_begin(c, parts, why);
}

static void not_answered(struct comm *c, unsigned r)
{
    comm_fail(c, "%s; rank %u (%s) does not answer", c->failover.why, r, comm_host(c, r));
}

/* Fails, and names the rank that has not answered. */
static void give_up(struct comm *c)
{
    unsigned r = 0;

    if (is_broken(c)) {
        cannot_reach(c);
        return;
    }
    while (!c->cfg.rank && r + 1 < c->cfg.nranks && c->failover.report[r].here)
        r++;
    for (unsigned to = 1; !c->cfg.rank && to < c->cfg.nranks; to++)
        failover_send_end(c, to, r);
    not_answered(c, r);
}

void failover_tick(struct comm *c)
{
    if (c->failover.state != FAILOVER_ASKING || c->state == COMM_FAILED)
        return;
    if (c->now_ns - c->failover.since_ns > (is_broken(c)  ? GIVE_UP_NS
                                            : c->cfg.rank ? VERDICT_NS
                                                          : PEER_NS)) {
        give_up(c);
        return;
    }
    if (c->cfg.rank) {
        failover_send_report(c);
        return;
    }
    failover_fit_known(c); /* it may no longer wait for answers to JOINs */
    if (c->failover.state != FAILOVER_ASKING)
        return;
    for (unsigned r = 1; r < c->cfg.nranks; r++)
        if (!c->failover.report[r].here)
            failover_send_ask(c, r);
}

/* Handles what another rank says of the next round, or of the one under way. */
static void round_hear(struct comm *c, const struct failover_msg *m)
{
    unsigned parts = rte_be_to_cpu_16(m->parts) & FAILOVER_PARTS;

    if (m->type == FAILOVER_READY)
        return;
    if (parts & PART_BACK && !c->failover.back)
        c->failover.back = m->back;
    if (parts & PART_TREES && m->type == FAILOVER_ASK)
        c->failover.lost |= m->trees & c->failover.trees;
    if (m->type == FAILOVER_ASK || m->type == FAILOVER_REPORT)
        hear_protocols(c, m);
    round_begin(c, parts, m->why);
}

/* Whether this job runs every protocol that the message names. If not, its sender is of another
 * job, or lies. */
static bool has_its_protocols(const struct comm *c, const struct failover_msg *m)
{
    unsigned parts = rte_be_to_cpu_16(m->parts) & PARTS_PROTOCOLS;

    for (unsigned seat = 0; seat < PROTO_SEATS; seat++)
        if (parts & PART_PROTOCOL(seat) && !(c->protocols && c->protocols->of[seat].n))
            return false;
    return true;
}

void failover_input(struct comm *c, const void *msg, size_t len)
{
    struct failover_msg m;
    unsigned rank, to;

    if (len < sizeof(m) || c->state == COMM_FAILED)
        return;
    memcpy(&m, msg, sizeof(m));
    m.why[sizeof(m.why) - 1] = 0;
    rank = rte_be_to_cpu_32(m.rank);
    to = rte_be_to_cpu_32(m.to);
    if (rank >= c->cfg.nranks || rank == c->cfg.rank || to >= c->cfg.nranks ||
        m.round >= FAILOVER_ROUNDS)
        return;
    if (to != c->cfg.rank) {
        ctl_send_rank(c, to, &m, sizeof(m));
        return;
    }
    if (!has_its_protocols(c, &m))
        return;
    if (m.round == c->failover.n_rounds)
        round_hear(c, &m);
    if (m.type == FAILOVER_REPORT && !c->cfg.rank && c->failover.report)
        on_report(c, rank, &m);
    else if (m.type == FAILOVER_VERDICT && rank == 0)
        on_verdict(c, &m);
    else if (m.type == FAILOVER_READY && !c->cfg.rank && m.round == c->failover.n_rounds)
        rejoin_ready(c, rank, m.trees);
    else if (m.type == FAILOVER_ASK && rank == 0)
        failover_tick(c);
    else if (m.type == FAILOVER_END && rank == 0 && c->failover.state == FAILOVER_ASKING &&
             m.round == c->failover.n_rounds)
        not_answered(c, rte_be_to_cpu_32(m.cut[0].from) % c->cfg.nranks);
}

void failover_destroy(struct comm *c)
{
    op_recovery_destroy(c);
    free(c->failover.round);
    free(c->failover.report);
}

const char *comm_fell_back(const struct comm *c)
{
    return *c->failover.text ? c->failover.text : NULL;
}

static void on_failed(struct comm *c, unsigned parts, const char *why)
{
    failover_begin(c, parts, "%s", why);
}

const struct transport_events failover_events = {.failed = on_failed,
                                                 .joins_answered = failover_fit_known,
                                                 .lost_answered = rejoin_answered,
                                                 .lost_left = rejoin_left,
                                                 .input = failover_input};

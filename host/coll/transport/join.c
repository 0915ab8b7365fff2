/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The member's half of the aggregation protocol's control messages (aggregation/proto.h).
 * Requests are repeated by comm_tick until answered; the answers' handling is idempotent as well.
 */
#include "base/log.h"
#include "host/coll/comm.h"

#define PROBES_MAX 10 /* in a row without an answer, RETRY_NS apart */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *agg_leaf_name(const struct comm *c, const struct agg *a)
{
    return c->cfg.fab->nodes[a->leaf].name;
}

static const char *const state_names[JOIN_STATES] = {
    [JOIN_NONE] = "none",       [JOIN_ASKED] = "asked",     [JOIN_GRANTED] = "granted",
    [JOIN_REFUSED] = "refused", [JOIN_LEAVING] = "leaving", [JOIN_LEFT] = "left"};

static void set_state(struct comm *c, struct agg *a, enum join_state state)
{
    T_ASSERT(a->state != JOIN_LEFT || state == JOIN_ASKED,
             "a group that was left changes its state, and is not joined again");
    T_ASSERT(state != JOIN_GRANTED || a->state == JOIN_ASKED, "a grant that was not requested");
    a->state = state;
    comm_event(c, COMM_EV_JOIN, a->tree, state);
    T_LOG("coll", LOG_DEBUG, "rank %u: tree %u at %s: %s", c->cfg.rank, a->tree,
          agg_leaf_name(c, a), state_names[state]);
}

static void send_ctl(struct comm *c, struct agg *a, enum agg_type type, uint32_t xid)
{
    struct agg_ctl m = {
        .magic = rte_cpu_to_be_32(AGG_MAGIC),
        .version = AGG_VERSION,
        .type = (uint8_t)type,
        .xid = rte_cpu_to_be_32(xid),
        .tree = rte_cpu_to_be_16(a->tree),
        .mtu = rte_cpu_to_be_16((uint16_t)c->mtu),
        .group = rte_cpu_to_be_32(a->group->id),
        .window = rte_cpu_to_be_32(a->window),
        .key = rte_cpu_to_be_64(c->cfg.key),
        .qpn = rte_cpu_to_be_32(a->qp->qp_num),
        .psn = rte_cpu_to_be_32(a->psn),
        .member = rte_cpu_to_be_32(a->group->member_of_rank[c->cfg.rank]),
        .node = rte_cpu_to_be_16(FAB_NONE),
        .attempt = rte_cpu_to_be_16(a->attempt),
        .slot = rte_cpu_to_be_32(a->job_groups),
    };

    int rc = agg_members_write(&m, &a->group->members);

    T_ASSERT(!rc, "a group was created whose members do not fit a JOIN");
    ctl_send(c, a->port->index, a->ah, AGG_QPN, &m, sizeof(m));
}

int join_start(struct comm *c, char *err)
{
    for (unsigned i = 0; i < c->n_aggs; i++) {
        struct agg *a = &c->agg[i];
        union ibv_gid gid;

        gid_of_ip(&gid, c->cfg.fab->nodes[a->leaf].ip);
        a->ah = ud_address(a->port, &gid);
        if (!a->ah) {
            snprintf(err, COMM_TEXT, "no address handle for %s", agg_leaf_name(c, a));
            return -EHOSTUNREACH;
        }
        set_state(c, a, JOIN_ASKED);
        send_ctl(c, a, AGG_JOIN, ++a->xid);
    }
    return 0;
}

void join_again(struct comm *c, struct agg *a)
{
    a->attempt = a->next;
    a->wanted = false;
    if (agg_renew(c, a))
        return;
    set_state(c, a, JOIN_ASKED);
    send_ctl(c, a, AGG_JOIN, ++a->xid);
}

void join_leave_one(struct comm *c, struct agg *a)
{
    if (a->state != JOIN_ASKED && a->state != JOIN_GRANTED)
        return;
    set_state(c, a, JOIN_LEAVING);
    send_ctl(c, a, AGG_LEAVE, ++a->xid);
}

void join_leave(struct comm *c, unsigned parts)
{
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (parts & agg_part(&c->agg[i]))
            join_leave_one(c, &c->agg[i]);
}

void join_tick(struct comm *c)
{
    for (unsigned i = 0; i < c->n_aggs; i++) {
        struct agg *a = &c->agg[i];

        if (a->state == JOIN_ASKED)
            send_ctl(c, a, AGG_JOIN, a->xid);
        else if (a->state == JOIN_LEAVING)
            send_ctl(c, a, AGG_LEAVE, a->xid);
    }
}

/* All sends may be acknowledged: then only a probe reveals that no results will arrive. */
void join_probe(struct comm *c)
{
    for (unsigned i = 0; i < c->n_aggs; i++) {
        struct agg *a = &c->agg[i];

        if (c->failover.stopped & agg_part(a) || a->state != JOIN_GRANTED || a->lane == LANE_NONE ||
            a->posted == a->done)
            continue;
        if (a->probes++ < PROBES_MAX) {
            send_ctl(c, a, AGG_PROBE, a->xid);
        } else {
            agg_fails(c, a);
            transport_failed(c, agg_part(a), "%s does not answer any more", agg_leaf_name(c, a));
        }
    }
}

bool join_all_granted(const struct comm *c)
{
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].state != JOIN_GRANTED && !agg_is_out(&c->agg[i]) &&
            !(c->failover.stopped & agg_part(&c->agg[i])))
            return false;
    return true;
}

bool join_all_left(const struct comm *c)
{
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].state != JOIN_NONE && c->agg[i].state != JOIN_REFUSED &&
            c->agg[i].state != JOIN_LEFT)
            return false;
    return true;
}

/* Another algorithm avoids a failed aggregation node, or a node where somebody else has a group of
 * this id. It does not avoid a failed member. */
bool join_recoverable(enum agg_status s)
{
    static const bool theirs[AGG_STATUS_COUNT] = {
        [AGG_OK] = true,
        [AGG_E_TREE] = true,
        [AGG_E_NOT_IN_TREE] = true,
        [AGG_E_KEY] = true,
        [AGG_E_QUOTA_GROUPS] = true,
        [AGG_E_QUOTA_SLOTS] = true,
        [AGG_E_QUOTA_BUFFERS] = true,
        [AGG_E_QUOTA_HOST] = true,
        [AGG_E_NO_REDUCTION] = true,
        [AGG_E_PARENT] = true,
        [AGG_E_OP_UNSUPPORTED] = true,
        [AGG_E_EDGE] = true,
        [AGG_E_NO_GROUP] = true,
        [AGG_E_CHILDREN] = true,
    };

    return s < AGG_STATUS_COUNT && theirs[s];
}

__attribute__((format(printf, 4, 5))) static void trouble(struct comm *c, const struct agg *a,
                                                          enum agg_status s, const char *fmt, ...)
{
    char why[COMM_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    agg_fails(c, a);
    if (join_recoverable(s))
        transport_failed(c, agg_part(a), "%s", why);
    else
        comm_fail(c, "%s", why);
}

/* The operation can use the other trees when this one is refused. */
static bool is_spare(const struct comm *c, const struct agg *a, enum agg_status status)
{
    return a->kind == GROUP_ALL && agg_in_use(c) & ~agg_bit(a) &&
           (status == AGG_E_QUOTA_GROUPS || status == AGG_E_QUOTA_SLOTS ||
            status == AGG_E_QUOTA_BUFFERS || status == AGG_E_QUOTA_HOST || status == AGG_E_PARENT);
}

const char *agg_refusal(char *buf, const char *leaf, enum agg_status status, const char *words)
{
    bool known = status < AGG_STATUS_COUNT;
    const char *means = known ? agg_status_text(status) : "unknown status";
    const char *name = known ? agg_status_name(status) : "?";
    bool more = *words && strcmp(words, means) != 0;
    int n = snprintf(buf, COMM_TEXT, "JOIN refused by %s: %s%s%s (%s)", leaf, means,
                     more ? ": " : "", more ? words : "", name);

    if (n >= FAILOVER_TEXT && more)
        snprintf(buf, COMM_TEXT, "JOIN refused: %s (%s)", words, name);
    return buf;
}

/* The answer to the JOIN of a tree that was given up: a refusal is no failure. */
static void on_again_reply(struct comm *c, struct agg *a, const struct agg_ctl *m)
{
    enum agg_status status = rte_be_to_cpu_16(m->status);
    bool granted = status == AGG_OK && !agg_connect(c, a, m);

    /* The switch has the group of another attempt, or a queue pair that is gone: a higher attempt
     * ends it. */
    if (status == AGG_E_DUPLICATE)
        a->next++;
    set_state(c, a, status == AGG_OK ? JOIN_GRANTED : JOIN_NONE);
    comm_event(c, granted ? COMM_EV_GRANT : COMM_EV_REFUSE, a->tree, granted ? a->window : status);
    if (status == AGG_OK && !granted)
        join_leave_one(c, a);
    c->tell->lost_answered(c);
}

static void on_join_reply(struct comm *c, struct agg *a, const struct agg_ctl *m)
{
    enum agg_status status = rte_be_to_cpu_16(m->status);
    const char *leaf = agg_leaf_name(c, a);
    uint32_t asked = a->window;
    char words[sizeof(m->text)];
    int rc;

    if (a->state != JOIN_ASKED || rte_be_to_cpu_32(m->xid) != a->xid)
        return;
    if (a->lost) {
        on_again_reply(c, a, m);
        return;
    }
    snprintf(words, sizeof(words), "%.*s", (int)sizeof(m->text) - 1, m->text);
    if (is_spare(c, a, status)) {
        set_state(c, a, JOIN_REFUSED);
        comm_event(c, COMM_EV_REFUSE, a->tree, status);
        a->refused = status;
        fit_answered(c, *words ? words : agg_status_text(status));
        return;
    }
    if (status != AGG_OK) {
        set_state(c, a, JOIN_NONE);
        comm_event(c, COMM_EV_REFUSE, a->tree, status);
        char why[COMM_TEXT];

        trouble(c, a, status, "%s", agg_refusal(why, leaf, status, words));
        fit_answered(c, "");
        return;
    }
    rc = agg_connect(c, a, m);
    set_state(c, a, JOIN_GRANTED);
    comm_event(c, COMM_EV_GRANT, a->tree, a->window);
    if (rc)
        agg_fails(c, a);
    if (rc == -EMSGSIZE)
        transport_failed(c, agg_part(a), "%s grants %u slots, less than one message takes (%u)",
                         leaf, rte_be_to_cpu_32(m->window), AGG_MSG_PKTS);
    else if (rc)
        transport_failed(c, agg_part(a), "cannot connect to %s: %s", leaf, strerror(-rc));
    else
        fit_answered(c, a->window < asked ? words : "");
    comm_check_ready(c);
}

/* The text names the member that is missing or differs, in the words of the node that noticed. */
static void on_abort(struct comm *c, struct agg *a, const struct agg_ctl *m)
{
    enum agg_status status = rte_be_to_cpu_16(m->status);
    bool known = status < AGG_STATUS_COUNT;

    send_ctl(c, a, AGG_ABORT_ACK, rte_be_to_cpu_32(m->xid));
    if (m->attempt != rte_cpu_to_be_16(a->attempt))
        return; /* of an earlier group */
    comm_event(c, COMM_EV_ABORT, a->tree, status);
    if (a->state != JOIN_LEFT) /* an ABORT may be repeated */
        set_state(c, a, JOIN_LEFT);
    if (c->failover.stopped & agg_part(a) || agg_is_out(a)) {
        if (a->lost)
            a->next = (uint16_t)(a->attempt + 1); /* switches remember the aborted one */
        c->tell->lost_left(c, a);
        return; /* it is given up already */
    }
    trouble(c, a, status, "aborted by %s: %s (%s)", agg_leaf_name(c, a),
            m->text[0] ? m->text
            : known    ? agg_status_text(status)
                       : "no reason given",
            known ? agg_status_name(status) : "unknown status");
}

/* Other groups need a part of the window, or give it back. Ranks hear of it at different times, so
 * it limits messages in flight, and does not change how a vector is cut. */
static void on_window(struct comm *c, struct agg *a, const struct agg_ctl *m)
{
    uint32_t slots = rte_be_to_cpu_32(m->window), number = rte_be_to_cpu_32(m->xid);

    if (a->state != JOIN_GRANTED || slots < AGG_MSG_PKTS || (int32_t)(number - a->resizes) < 0)
        return;
    a->resizes = number;
    a->credit = slots < a->window ? slots : a->window;
    comm_event(c, COMM_EV_WINDOW, a->tree, a->credit);
    if (a->lane != LANE_NONE)
        exec_wake(c, a->lane);
}

static struct agg *agg_of(struct comm *c, uint32_t ip, const struct agg_ctl *m)
{
    if (m->version != AGG_VERSION)
        return NULL;
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].tree == rte_be_to_cpu_16(m->tree) &&
            c->agg[i].group->id == rte_be_to_cpu_32(m->group) && c->agg[i].ah &&
            c->cfg.fab->nodes[c->agg[i].leaf].ip == ip)
            return &c->agg[i];
    return NULL;
}

bool join_input(struct comm *c, uint32_t ip, const struct agg_ctl *m)
{
    struct agg *a = agg_of(c, ip, m);

    if (!a)
        return false;
    switch ((enum agg_type)m->type) {
    case AGG_JOIN_REPLY:
        on_join_reply(c, a, m);
        break;
    case AGG_LEAVE_REPLY:
        if (a->state == JOIN_LEAVING && rte_be_to_cpu_32(m->xid) == a->xid)
            set_state(c, a, JOIN_LEFT);
        c->tell->lost_left(c, a);
        break;
    case AGG_ABORT:
        on_abort(c, a, m);
        break;
    case AGG_PROBE_REPLY:
        a->probes = 0;
        if (m->status && a->state == JOIN_GRANTED && !a->lost) {
            agg_fails(c, a);
            transport_failed(c, agg_part(a), "%s no longer knows the group", agg_leaf_name(c, a));
        }
        break;
    case AGG_WINDOW:
        on_window(c, a, m);
        break;
    case AGG_PROBE:
        send_ctl(c, a, AGG_PROBE_REPLY, rte_be_to_cpu_32(m->xid));
        break;
    default:
        break;
    }
    return true;
}

void join_destroy(struct comm *c)
{
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].ah)
            ibv_destroy_ah(c->agg[i].ah);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's membership in a job at the switches (protocols/host/protocol_wire.h). comm_tick()
 * repeats requests until they are answered. A granted member sends a PROBE at every tick, which
 * keeps the job and shows whether the switch still has it.
 */
#include "base/log.h"
#include "host/coll/comm.h"
#include "protocols/host/protocol_wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PROBES_MAX 10 /* in a row without an answer, RETRY_NS apart */
#define JOINS_MAX  (GIVE_UP_NS / RETRY_NS)

static const char *leaf_name(const struct comm *c, const struct protocol *e)
{
    return c->cfg.fab->nodes[e->at->leaf_of_rank[c->cfg.rank]].name;
}

static void send_ctl(struct comm *c, struct protocol *e, enum agg_type type)
{
    const struct protocols *s = c->protocols;
    struct agg_ctl m = {
        .magic = rte_cpu_to_be_32(PROTO_MAGIC),
        .version = AGG_VERSION,
        .type = (uint8_t)type,
        .xid = rte_cpu_to_be_32(e->xid),
        .tree = rte_cpu_to_be_16(e->at->id),
        .mtu = rte_cpu_to_be_16((uint16_t)c->mtu),
        .group = rte_cpu_to_be_32(c->cfg.group),
        .window = rte_cpu_to_be_32(c->cfg.nranks),
        .key = rte_cpu_to_be_64(c->cfg.key),
        .qpn = rte_cpu_to_be_32(e->qp->qp_num),
        .psn = rte_cpu_to_be_32(c->cfg.rank),
        .member = rte_cpu_to_be_32(s->member_of_rank[c->cfg.rank]),
        .node = rte_cpu_to_be_16(FAB_NONE),
        .child = rte_cpu_to_be_16(e->child),
        .slot = rte_cpu_to_be_32(e->tag),
    };
    int rc = agg_members_write(&m, &s->members);

    if (type == AGG_JOIN)
        m.attempt = rte_cpu_to_be_16(s->attempt[e->seat]);
    T_ASSERT(!rc, "a job was created whose members do not fit a JOIN");
    snprintf(m.name, sizeof(m.name), "%s", e->p->name);
    protocol_send_ctl(e, protocol_leaf(c, e, c->cfg.rank), &m);
}

static void set_state(struct comm *c, struct protocol *e, enum join_state state)
{
    e->state = state;
    comm_event(c, COMM_EV_PROTOCOL, e->seat, state);
    T_LOG("coll", LOG_DEBUG, "rank %u: protocol %s at %s: membership %u", c->cfg.rank, e->p->name,
          leaf_name(c, e), state);
}

void protocol_join(struct comm *c, struct protocol *e)
{
    set_state(c, e, JOIN_ASKED);
    e->xid++;
    e->probes = 0;
    send_ctl(c, e, AGG_JOIN);
}

void protocol_leave(struct comm *c, struct protocol *e)
{
    if (e->state != JOIN_ASKED && e->state != JOIN_GRANTED)
        return;
    set_state(c, e, JOIN_LEAVING);
    e->xid++;
    send_ctl(c, e, AGG_LEAVE);
}

void protocols_join(struct comm *c)
{
    for (unsigned i = 0; i < c->protocols->n; i++) {
        struct protocol *e = &c->protocols->p[i];

        if (e->p->sw)
            protocol_join(c, e);
    }
}

void protocols_leave(struct comm *c, unsigned parts)
{
    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++) {
        struct protocol *e = &c->protocols->p[i];

        if (parts & PART_PROTOCOL(e->seat))
            protocol_leave(c, e);
    }
}

static void membership_probe(struct comm *c, struct protocol *e)
{
    if (e->stopped)
        return;
    if (e->probes++ < PROBES_MAX)
        send_ctl(c, e, AGG_PROBE);
    else
        protocol_fail(e, "protocol %s: %s does not answer any more", e->p->name, leaf_name(c, e));
}

/* connect_give_up() gives up a first JOIN; later ones are given up here. */
static void repeat_join(struct comm *c, struct protocol *e)
{
    if (e->stopped)
        return;
    if (c->state != COMM_READY || e->probes++ < JOINS_MAX)
        send_ctl(c, e, AGG_JOIN);
    else
        protocol_fail(e, "protocol %s: %s does not answer JOIN", e->p->name, leaf_name(c, e));
}

void protocols_tick(struct comm *c)
{
    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++) {
        struct protocol *e = &c->protocols->p[i];

        if (e->state == JOIN_ASKED)
            repeat_join(c, e);
        else if (e->state == JOIN_LEAVING)
            send_ctl(c, e, AGG_LEAVE);
        else if (e->state == JOIN_GRANTED)
            membership_probe(c, e);
    }
}

/* Fails the instance; fails the communicator if a member is lost, as no other algorithm avoids
 * that. */
__attribute__((format(printf, 3, 4))) static void
trouble(struct protocol *e, enum agg_status status, const char *fmt, ...)
{
    char why[COMM_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    if (join_recoverable(status))
        protocol_fail(e, "%s", why);
    else
        comm_fail(e->c, "%s", why);
}

/* Wakes the lanes of the running operation that wait for this instance. */
static void instance_wake(struct comm *c, const struct protocol *e)
{
    const struct coll_req *r = c->exec.head;

    for (unsigned l = 0; c->exec.running && l < r->s.n_lanes; l++)
        if (r->s.lane[l].kind == LANE_PROTOCOL && protocol_of_lane(c, &r->s.lane[l]) == e)
            exec_wake(c, l);
}

static void on_join_reply(struct comm *c, struct protocol *e, const struct agg_ctl *m)
{
    enum agg_status status = rte_be_to_cpu_16(m->status);

    if (e->state != JOIN_ASKED || rte_be_to_cpu_32(m->xid) != e->xid)
        return;
    if (status == AGG_OK) {
        e->child = rte_be_to_cpu_16(m->child);
        e->probes = 0;
        set_state(c, e, JOIN_GRANTED);
        instance_wake(c, e);
        comm_check_ready(c);
        return;
    }
    set_state(c, e, JOIN_REFUSED);
    trouble(e, status, "protocol %s refused by %s: %s (%s)", e->p->name, leaf_name(c, e),
            m->text[0]                  ? m->text
            : status < AGG_STATUS_COUNT ? agg_status_text(status)
                                        : "no reason given",
            status < AGG_STATUS_COUNT ? agg_status_name(status) : "unknown status");
}

static void on_abort(struct comm *c, struct protocol *e, const struct agg_ctl *m)
{
    if (e->state == JOIN_LEFT)
        return;
    set_state(c, e, JOIN_LEFT);
    if (!c->closing && !e->stopped)
        trouble(e, rte_be_to_cpu_16(m->status), "protocol %s: aborted by %s: %s", e->p->name,
                leaf_name(c, e), m->text[0] ? m->text : "no reason given");
}

void protocol_control(struct comm *c, struct protocol *e, const struct agg_ctl *m)
{
    switch ((enum agg_type)m->type) {
    case AGG_JOIN_REPLY:
        on_join_reply(c, e, m);
        break;
    case AGG_LEAVE_REPLY:
        if (e->state == JOIN_LEAVING && rte_be_to_cpu_32(m->xid) == e->xid)
            set_state(c, e, JOIN_LEFT);
        break;
    case AGG_ABORT:
        on_abort(c, e, m);
        break;
    case AGG_PROBE_REPLY:
        e->probes = 0;
        if (m->status && e->state == JOIN_GRANTED && !e->stopped)
            protocol_fail(e, "protocol %s: %s no longer knows the job", e->p->name,
                          leaf_name(c, e));
        break;
    default:
        break;
    }
}

bool protocols_joined(const struct comm *c)
{
    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++)
        if (c->protocols->p[i].state == JOIN_ASKED && !c->protocols->p[i].stopped)
            return false;
    return true;
}

bool protocols_left(const struct comm *c)
{
    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++)
        if (c->protocols->p[i].state == JOIN_LEAVING)
            return false;
    return true;
}

bool protocols_give_up(struct comm *c)
{
    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++) {
        struct protocol *e = &c->protocols->p[i];

        if (e->state != JOIN_ASKED || e->stopped)
            continue;
        protocol_fail(e, "protocol %s: %s does not answer JOIN", e->p->name, leaf_name(c, e));
        return true;
    }
    return false;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of a protocol's job at a switch, and its messages; protocol_join.c has the JOINs. */
#include "switch/protocol/protocol_priv.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

void pn_say(struct protocol_node *p, uint32_t ip, uint32_t qpn, enum agg_type type,
            struct agg_ctl *c)
{
    struct roce_pkt k;
    uint8_t *at;
    struct rte_mbuf *m = pn_frame(p, ip, qpn, sizeof(*c), &k, &at);

    if (!m)
        return;
    c->magic = RTE_BE32(PROTO_MAGIC);
    c->version = AGG_VERSION;
    c->type = (uint8_t)type;
    c->node = rte_cpu_to_be_16(p->cfg.node);
    memcpy(at, c, sizeof(*c));
    pn_send(p, m, &k);
}

void pn_answer(struct protocol_node *p, const struct pn_request *r, enum agg_type type,
               enum agg_status status, const char *text)
{
    struct agg_ctl a = {.status = rte_cpu_to_be_16((uint16_t)status),
                        .xid = r->c->xid,
                        .tree = r->c->tree,
                        .mtu = r->c->mtu,
                        .group = r->c->group,
                        .key = r->c->key,
                        .slot = r->c->slot,
                        .member = r->c->member};

    join_text(a.text, "%s", text[0] ? text : agg_status_text(status));
    pn_say(p, r->ip, r->qpn, type, &a);
}

/* Fills in a message about the job, to a child or to the parent. */
struct agg_ctl pn_about(const struct pn_job *j, uint32_t xid, uint32_t member)
{
    return (struct agg_ctl){.xid = rte_cpu_to_be_32(xid),
                            .tree = rte_cpu_to_be_16(j->tree->id),
                            .mtu = rte_cpu_to_be_16(j->mtu),
                            .group = rte_cpu_to_be_32(j->id),
                            .key = rte_cpu_to_be_64(j->key),
                            .slot = rte_cpu_to_be_32(j->tag),
                            .member = rte_cpu_to_be_32(member)};
}

/* Sends AGG_JOIN, AGG_LEAVE, AGG_ABORT or AGG_PROBE to the parent. */
void pn_say_up(struct pn_job *j, enum agg_type type, enum agg_status status, const char *text)
{
    struct agg_ctl c = pn_about(j, j->xid, j->child[0].who.first_member);

    c.status = rte_cpu_to_be_16((uint16_t)status);
    c.qpn = RTE_BE32(PROTO_QPN);
    c.psn = RTE_BE32(0xffffffff);
    c.window = rte_cpu_to_be_32(j->nranks);
    if (type == AGG_JOIN)
        c.attempt = rte_cpu_to_be_16(j->attempt);
    if (type != AGG_JOIN)
        join_text(c.text, "%s", text);
    else if (agg_members_write(&c, &j->members))
        return; /* join_members() has checked that it fits */
    else
        snprintf(c.name, sizeof(c.name), "%s", text);
    pn_say(j->p, j->p->cfg.fab->nodes[j->up].ip, PROTO_QPN, type, &c);
}

/* ---- life ---- */

struct pn_job *pn_find(struct protocol_node *p, uint32_t id, uint32_t tag)
{
    struct pn_job *j;

    LIST_FOREACH(j, &p->jobs, link)
    if (j->id == id && j->tag == tag)
        return j;
    return NULL;
}

void pn_free(struct pn_job *j)
{
    struct protocol_node *p = j->p;
    char leak[PROTO_TEXT] = "";

    if (j->job)
        proto_job_close(p->sw[j->seat], j->job, p->now, leak);
    if (*leak)
        T_LOG("switch", LOG_WARN, "%s: %s", p->me->name, leak);
    LIST_REMOVE(j, link);
    free(j);
    if (!--p->n_jobs)
        p->look_ps = PS_NEVER;
}

void pn_end(struct pn_job *j, const struct pn_child *culprit, enum agg_status status,
            const char *why)
{
    struct protocol_node *p = j->p;

    T_LOG("switch", LOG_INFO, "%s: job %u of protocol %s ends: %s", p->me->name, j->id,
          proto_at(j->seat)->name, why);
    for (unsigned i = 0; i < j->n; i++) {
        struct pn_child *k = &j->child[i];
        struct agg_ctl c = pn_about(j, k->xid, k->who.first_member);

        if (!k->joined || k->left || (culprit && k == culprit))
            continue;
        c.status = rte_cpu_to_be_16((uint16_t)status);
        join_text(c.text, "%s", why);
        pn_say(p, k->ip, k->qpn, AGG_ABORT, &c);
    }
    if (!j->top && j->xid)
        pn_say_up(j, AGG_ABORT, status, why);
    pn_free(j);
}

void pn_settle(struct protocol_node *p)
{
    for (unsigned i = 0; i < PROTO_SEATS; i++) {
        struct proto_job *job;

        while (p->sw[i] && (job = proto_switch_doomed(p->sw[i])))
            pn_end(proto_job_ctx(job), NULL, AGG_E_OP_UNSUPPORTED, proto_job_why(job));
    }
}

/* The job that a child's message is about. */
static struct pn_job *job_of(struct protocol_node *p, const struct pn_request *r)
{
    struct pn_job *j = pn_find(p, rte_be_to_cpu_32(r->c->group), rte_be_to_cpu_32(r->c->slot));

    if (!j || j->key != rte_be_to_cpu_64(r->c->key))
        return NULL;
    for (unsigned i = 0; i < j->n; i++)
        if (j->child[i].joined && j->child[i].ip == r->ip && j->child[i].qpn == r->qpn)
            return j;
    return NULL;
}

static struct pn_child *child_of(struct pn_job *j, const struct pn_request *r)
{
    for (unsigned i = 0; i < j->n; i++)
        if (j->child[i].joined && j->child[i].ip == r->ip && j->child[i].qpn == r->qpn &&
            j->child[i].who.first_member == rte_be_to_cpu_32(r->c->member))
            return &j->child[i];
    return NULL;
}

/* The job whose parent sent the message; NULL: none. */
struct pn_job *pn_below(struct protocol_node *p, const struct pn_request *r)
{
    struct pn_job *j;

    if (r->qpn != PROTO_QPN)
        return NULL;
    LIST_FOREACH(j, &p->jobs, link)
    if (!j->top && j->xid && j->id == rte_be_to_cpu_32(r->c->group) &&
        j->key == rte_be_to_cpu_64(r->c->key) && j->xid == rte_be_to_cpu_32(r->c->xid) &&
        p->cfg.fab->nodes[j->up].ip == r->ip)
        return j;
    return NULL;
}

/* ---- the end ---- */

static void on_leave(struct protocol_node *p, const struct pn_request *r)
{
    struct pn_job *j = job_of(p, r);
    struct pn_child *k = j ? child_of(j, r) : NULL;

    pn_answer(p, r, AGG_LEAVE_REPLY, j ? AGG_OK : AGG_E_NO_GROUP, "");
    if (!k || k->left)
        return;
    k->left = true;
    if (++j->n_left < j->n)
        return;
    if (!j->top && j->xid)
        pn_say_up(j, AGG_LEAVE, AGG_OK, "");
    pn_free(j);
}

/* Handles an ABORT of a switch below, or of the parent. */
static void on_abort(struct protocol_node *p, const struct pn_request *r)
{
    struct pn_job *j = pn_below(p, r);
    struct pn_child *k = NULL;
    char text[JOIN_TEXT];

    if (!j) {
        j = r->qpn == PROTO_QPN ? job_of(p, r) : NULL;
        k = j ? child_of(j, r) : NULL;
        if (!k)
            return;
    } else {
        j->xid = 0; /* the parent knows: send it no ABORT */
    }
    join_text(text, "%.*s", (int)sizeof(r->c->text) - 1, r->c->text);
    pn_end(j, k, rte_be_to_cpu_16(r->c->status), text);
}

static void on_probe(struct protocol_node *p, const struct pn_request *r)
{
    struct pn_job *j = job_of(p, r);
    struct pn_child *k = j ? child_of(j, r) : NULL;

    if (k)
        k->heard_ps = p->now;
    pn_answer(p, r, AGG_PROBE_REPLY, k ? AGG_OK : AGG_E_NO_GROUP, "");
}

/* Ends a job that the parent no longer knows: it has restarted, or its ABORT was lost. */
static void on_probe_reply(struct protocol_node *p, const struct pn_request *r)
{
    struct pn_job *j = pn_below(p, r);
    char why[JOIN_TEXT];

    if (!j || !j->job || r->c->status == RTE_BE16(AGG_OK))
        return;
    join_text(why, "%s no longer knows the job", p->cfg.fab->nodes[j->up].name);
    j->xid = 0;
    pn_end(j, NULL, AGG_E_NO_GROUP, why);
}

/* Status for the others when a child is lost: of a host with several ports only this path is lost. */
static enum agg_status loss_of(const struct protocol_node *p, const struct pn_child *k)
{
    return k->who.is_member && p->cfg.fab->nodes[k->who.node].n_ports < 2 ? AGG_E_MEMBER_LOST
                                                                          : AGG_E_EDGE;
}

void pn_process_down(struct protocol_node *p, uint32_t ip, uint32_t space)
{
    struct pn_job *j, *next;
    char why[JOIN_TEXT];

    for (j = LIST_FIRST(&p->jobs); j; j = next) {
        next = LIST_NEXT(j, link);
        for (unsigned i = 0; i < j->n; i++) {
            struct pn_child *k = &j->child[i];

            if (!k->joined || k->left || !k->who.is_member || k->ip != ip || k->qpn >> 16 != space)
                continue;
            join_text(why, "rank %u (%s) is gone", k->rank, p->cfg.fab->nodes[k->who.node].name);
            pn_end(j, k, AGG_E_MEMBER_LOST, why);
            break;
        }
    }
}

/* Ends all jobs that have a child or their parent at a node that is out of reach. */
void protocol_node_peer_down(struct protocol_node *p, uint16_t peer_node, int64_t now_ps)
{
    const char *name = p->cfg.fab->nodes[peer_node].name;
    struct pn_job *j, *next;
    char why[JOIN_TEXT];

    p->now = now_ps;
    join_text(why, "%s: the link to %s is down", p->me->name, name);
    for (j = LIST_FIRST(&p->jobs); j; j = next) {
        struct pn_child *k = NULL;

        next = LIST_NEXT(j, link);
        for (unsigned i = 0; i < j->n && !k; i++)
            if (j->child[i].who.node == peer_node && !j->child[i].left)
                k = &j->child[i];
        if (k || (!j->top && j->up == peer_node))
            pn_end(j, k, k ? loss_of(p, k) : AGG_E_PARENT, why);
    }
}

void protocol_node_cut_off(struct protocol_node *p, int64_t now_ps)
{
    char why[JOIN_TEXT];

    p->now = now_ps;
    join_text(why, "%s has lost all its links", p->me->name);
    while (LIST_FIRST(&p->jobs))
        pn_end(LIST_FIRST(&p->jobs), NULL, AGG_E_EDGE, why);
}

/* Ends jobs with a silent child, and jobs whose members do not all join. */
void pn_tick_jobs(struct protocol_node *p)
{
    struct pn_job *j, *next;
    char why[JOIN_TEXT];

    p->look_ps = p->now + PN_LOOK_PS;
    for (j = LIST_FIRST(&p->jobs); j; j = next) {
        const struct pn_child *lost = NULL;

        next = LIST_NEXT(j, link);
        for (unsigned i = 0; i < j->n && !lost; i++)
            if (!j->child[i].left &&
                (j->job ? p->now - j->child[i].heard_ps > PN_SILENCE_PS : !j->child[i].joined))
                lost = &j->child[i];
        if (lost && (j->job || p->now - j->born_ps > p->me->reduce.join_timeout_ps)) {
            join_text(why, "%s: %s %s", p->me->name, p->cfg.fab->nodes[lost->who.node].name,
                      j->job ? "is silent" : "has not joined");
            pn_end(j, lost, loss_of(p, lost), why);
        } else if (!j->top && j->job) {
            pn_say_up(j, AGG_PROBE, AGG_OK, "");
        }
    }
    if (!p->n_jobs)
        p->look_ps = PS_NEVER;
}

void pn_control(struct protocol_node *p, const struct roce_pkt *k)
{
    struct agg_ctl c;
    const struct pn_request r = {&c, k->src_ip, k->sqpn};

    if (k->len < sizeof(c)) {
        p->cnt.bad++;
        return;
    }
    memcpy(&c, k->payload, sizeof(c));
    if (c.version != AGG_VERSION) {
        p->cnt.bad++;
        return;
    }
    char *text = c.type == AGG_JOIN ? c.name : c.text;

    c.text[sizeof(c.text) - 1] = '\0'; /* this also ends the name */
    for (char *s = text; *s; s++)
        if (*s < 0x20 || *s > 0x7e)
            *s = '?';
    switch ((enum agg_type)c.type) {
    case AGG_JOIN:
        pn_join(p, &r);
        break;
    case AGG_JOIN_REPLY:
        pn_join_reply(p, &r);
        break;
    case AGG_LEAVE:
        on_leave(p, &r);
        break;
    case AGG_ABORT:
        on_abort(p, &r);
        break;
    case AGG_PROBE:
        on_probe(p, &r);
        break;
    case AGG_PROBE_REPLY:
        on_probe_reply(p, &r);
        break;
    default:
        break;
    }
}

/*
 * The member's half of the aggregation protocol's control messages (switch/reduce/proto.h).
 * Requests are repeated by comm_tick until answered; the answers' handling is idempotent as well.
 */
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *leaf_name(const struct comm *c)
{
    return c->cfg.fab->nodes[c->join.leaf].name;
}

unsigned comm_members(const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank,
                      struct fab_members *m, uint16_t *id)
{
    uint16_t *here = calloc(fab->n_hosts, sizeof(*here));
    unsigned per_host = 1;

    memset(m, 0, sizeof(*m));
    if (!here)
        return 0;
    for (unsigned r = 0; r < nranks; r++) {
        unsigned local = here[host_of_rank[r]]++;

        per_host = local + 1 > per_host ? local + 1 : per_host;
    }
    m->ranks_per_host = (uint16_t)per_host;
    memset(here, 0, fab->n_hosts * sizeof(*here));
    for (unsigned r = 0; r < nranks; r++) {
        unsigned member = host_of_rank[r] * per_host + here[host_of_rank[r]]++;

        if (member >= FAB_MAX_MEMBERS) {
            per_host = 0;
            break;
        }
        fab_members_add(m, member);
        if (id)
            id[r] = (uint16_t)member;
    }
    free(here);
    return per_host;
}

static void send_ctl(struct comm *c, enum agg_type type, uint32_t xid)
{
    struct agg_ctl m = {
        .magic = rte_cpu_to_be_32(AGG_MAGIC),
        .version = AGG_VERSION,
        .type = (uint8_t)type,
        .xid = rte_cpu_to_be_32(xid),
        .tree = rte_cpu_to_be_16(c->cfg.tree),
        .mtu = rte_cpu_to_be_16((uint16_t)c->port.mtu),
        .group = rte_cpu_to_be_32(c->cfg.group),
        .window = rte_cpu_to_be_32(c->agg.window),
        .key = rte_cpu_to_be_64(c->cfg.key),
        .qpn = rte_cpu_to_be_32(c->agg.qp->qp_num),
        .psn = rte_cpu_to_be_32(c->agg.psn),
        .member = rte_cpu_to_be_32(c->join.member),
        .node = rte_cpu_to_be_16(FAB_NONE),
        .ranks_per_host = rte_cpu_to_be_16(c->join.members.ranks_per_host),
    };

    for (unsigned i = 0; i < FAB_MAX_MEMBERS / 64; i++)
        m.bits[i] = rte_cpu_to_be_64(c->join.members.bits[i]);
    ctl_send(c, c->join.ah, AGG_QPN, &m, sizeof(m));
}

int join_start(struct comm *c, char *err)
{
    const struct fabric *fab = c->cfg.fab;
    uint16_t *id = calloc(c->cfg.nranks, sizeof(*id));
    union ibv_gid gid;
    unsigned per_host = 0;

    if (id)
        per_host = comm_members(fab, c->cfg.nranks, c->cfg.host_of_rank, &c->join.members, id);
    if (per_host)
        c->join.member = id[c->cfg.rank];
    free(id);
    c->join.leaf = FAB_NONE;
    if (per_host && c->cfg.tree < fab->n_trees)
        c->join.leaf =
            fab_group_leaf(fab, &fab->trees[c->cfg.tree], c->join.member, &c->join.members);
    if (c->join.leaf == FAB_NONE) {
        snprintf(err, COMM_TEXT, "no aggregation node of tree %u reaches all %u ranks", c->cfg.tree,
                 c->cfg.nranks);
        return -ENOTSUP;
    }
    gid_of_ip(&gid, fab->nodes[c->join.leaf].ip);
    c->join.ah = ud_address(&c->port, &gid);
    if (!c->join.ah) {
        snprintf(err, COMM_TEXT, "no address handle for %s", leaf_name(c));
        return -EHOSTUNREACH;
    }
    c->join.state = JOIN_ASKED;
    send_ctl(c, AGG_JOIN, ++c->join.xid);
    return 0;
}

void join_leave(struct comm *c)
{
    if (c->join.state != JOIN_ASKED && c->join.state != JOIN_GRANTED)
        return;
    c->join.state = JOIN_LEAVING;
    send_ctl(c, AGG_LEAVE, ++c->join.xid);
}

void join_tick(struct comm *c)
{
    if (c->join.state == JOIN_ASKED)
        send_ctl(c, AGG_JOIN, c->join.xid);
    else if (c->join.state == JOIN_LEAVING)
        send_ctl(c, AGG_LEAVE, c->join.xid);
}

static void on_join_reply(struct comm *c, const struct agg_ctl *m)
{
    enum agg_status status = rte_be_to_cpu_16(m->status);
    int rc;

    if (c->join.state != JOIN_ASKED || rte_be_to_cpu_32(m->xid) != c->join.xid)
        return;
    if (status != AGG_OK) {
        const char *text = status < AGG_STATUS_COUNT ? agg_status_text(status) : "unknown status";

        c->join.state = JOIN_NONE;
        if (m->text[0] && strcmp(m->text, text))
            comm_fail(c, "JOIN refused by %s: %s: %s (%s)", leaf_name(c), text, m->text,
                      agg_status_name(status));
        else
            comm_fail(c, "JOIN refused by %s: %s (%s)", leaf_name(c), text,
                      agg_status_name(status));
        return;
    }
    rc = agg_connect(c, m);
    c->join.state = JOIN_GRANTED;
    if (rc == -EMSGSIZE)
        comm_fail(c, "%s grants %u slots, less than one message takes (%u)", leaf_name(c),
                  rte_be_to_cpu_32(m->window), AGG_MSG_PKTS);
    else if (rc)
        comm_fail(c, "cannot connect to %s: %s", leaf_name(c), strerror(-rc));
    comm_check_ready(c);
}

/* The text names whoever is missing or differs; the node that noticed knows it best. */
static void on_abort(struct comm *c, const struct agg_ctl *m)
{
    enum agg_status status = rte_be_to_cpu_16(m->status);
    bool known = status < AGG_STATUS_COUNT;

    send_ctl(c, AGG_ABORT_ACK, rte_be_to_cpu_32(m->xid));
    comm_fail(c, "aborted by %s: %s (%s)", leaf_name(c),
              m->text[0] ? m->text
              : known    ? agg_status_text(status)
                         : "no reason given",
              known ? agg_status_name(status) : "unknown status");
}

void join_input(struct comm *c, const struct agg_ctl *m)
{
    if (m->version != AGG_VERSION || rte_be_to_cpu_32(m->group) != c->cfg.group ||
        c->join.leaf == FAB_NONE || !c->join.ah)
        return;
    switch ((enum agg_type)m->type) {
    case AGG_JOIN_REPLY:
        on_join_reply(c, m);
        break;
    case AGG_LEAVE_REPLY:
        if (c->join.state == JOIN_LEAVING && rte_be_to_cpu_32(m->xid) == c->join.xid)
            c->join.state = JOIN_LEFT;
        break;
    case AGG_ABORT:
        on_abort(c, m);
        break;
    case AGG_PROBE:
        send_ctl(c, AGG_PROBE_REPLY, rte_be_to_cpu_32(m->xid));
        break;
    default:
        break;
    }
}

void join_destroy(struct comm *c)
{
    if (c->join.ah)
        ibv_destroy_ah(c->join.ah);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank tells the others about itself before they connect. */
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLOB_MAGIC   0x54524342u
#define BLOB_VERSION 6

struct blob {
    rte_be32_t magic;
    rte_be32_t version;
    rte_be32_t rank, mtu, algos;
    rte_be64_t policy, job;         /* job: seal_of_job() */
    rte_be32_t ctl_qpn[COMM_PORTS]; /* of its datagrams, by port */
    rte_be32_t protocol_qpn[PROTOCOL_JOBS];
} __attribute__((packed));
_Static_assert(sizeof(struct blob) <= COMM_BLOB, "what every rank exchanges");

void blob_write(const struct comm *c, void *out)
{
    rte_be32_t qpn[PROTOCOL_JOBS] = {0};
    struct blob b = {
        .magic = rte_cpu_to_be_32(BLOB_MAGIC),
        .version = rte_cpu_to_be_32(BLOB_VERSION),
        .rank = rte_cpu_to_be_32(c->cfg.rank),
        .job = rte_cpu_to_be_64(seal_of_job(c->cfg.key, c->cfg.group)),
        .mtu = rte_cpu_to_be_32(c->mtu),
        .algos = rte_cpu_to_be_32(c->cfg.algos),
        .policy = rte_cpu_to_be_64(policy_code(c)),
    };

    for (unsigned p = 0; p < c->n_ports; p++)
        b.ctl_qpn[p] = rte_cpu_to_be_32(c->ctl.port[p].qp->qp_num);
    protocols_qpns(c, qpn);
    memcpy(b.protocol_qpn, qpn, sizeof(qpn));
    memset(out, 0, COMM_BLOB);
    memcpy(out, &b, sizeof(b));
}

/* Every rank's configuration must equal ours; the error names a rank that differs. */
static int check_blob(const struct comm *c, unsigned rank, const struct blob *b, char *err)
{
    const char *what = NULL;

    if (rte_be_to_cpu_32(b->magic) != BLOB_MAGIC || rte_be_to_cpu_32(b->version) != BLOB_VERSION)
        what = "speaks another version";
    else if (rte_be_to_cpu_32(b->rank) != rank)
        what = "gave another rank's data";
    else if (rte_be_to_cpu_64(b->job) != seal_of_job(c->cfg.key, c->cfg.group))
        what = "is in another group, or has another key";
    else if (rte_be_to_cpu_32(b->mtu) != c->mtu)
        what = "has another MTU";
    else if (rte_be_to_cpu_32(b->algos) != c->cfg.algos)
        what = "has set up other algorithms";
    else if (rte_be_to_cpu_64(b->policy) != policy_code(c))
        what = "has another policy";
    if (what)
        snprintf(err, COMM_TEXT, "rank %u (%s) %s", rank, comm_host(c, rank), what);
    return what ? -EPROTO : 0;
}

/* Datagrams take the first channel between two ranks. */
static void set_peer(struct comm *c, unsigned rank, const struct blob *b)
{
    const struct fabric *f = c->cfg.fab;
    struct peer *p = &c->ctl.peer[rank];
    struct fab_channel ch;

    if (!topo_channels(&c->topo, c->cfg.rank, rank, &ch, 1))
        return;
    p->port = ch.port_a;
    p->qpn = rte_be_to_cpu_32(b->ctl_qpn[ch.port_b]);
    gid_of_ip(&p->gid, f->nodes[f->hosts[c->cfg.host_of_rank[rank]]].ip_of_port[ch.port_b]);
}

int blob_take(struct comm *c, unsigned rank, const void *blob, char *err)
{
    rte_be32_t qpn[PROTOCOL_JOBS];
    struct blob b;
    int rc;

    memcpy(&b, blob, sizeof(b));
    rc = check_blob(c, rank, &b, err);
    if (rc)
        return rc;
    set_peer(c, rank, &b);
    memcpy(qpn, b.protocol_qpn, sizeof(qpn));
    protocols_set_peer(c, rank, qpn);
    return 0;
}

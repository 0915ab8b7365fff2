#include "host/coll/comm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_BATCH 32
#define PROGRESS_MAX                                                                               \
    4096 /* completions in one call of comm_progress, so that a caller gets to its other duties */

#define BLOB_MAGIC   0x54524342u
#define BLOB_VERSION 1

/* What a rank tells the others of itself. */
struct blob {
    rte_be32_t magic;
    rte_be32_t version;
    rte_be32_t rank, group, mtu, algos;
    rte_be32_t ctl_qpn, right_qpn, right_psn, left_qpn, left_psn, word_key;
    rte_be64_t word_addr;
    uint8_t gid[16];
} __attribute__((packed));
_Static_assert(sizeof(struct blob) <= COMM_BLOB, "what every rank exchanges");

/* ---- hot path ---- */

static void complete(struct comm *c, const struct ibv_wc *wc)
{
    switch (WR_KIND(wc->wr_id)) {
    case WR_RING_RECV:
    case WR_RING_SEND:
    case WR_RING_CREDIT:
        ring_complete(c, wc);
        break;
    case WR_AGG_RECV:
    case WR_AGG_SEND:
        agg_complete(c, wc);
        break;
    case WR_CTL_RECV:
    case WR_CTL_SEND:
        ctl_complete(c, wc);
        break;
    }
}

/*
 * What a completion allows is posted before the queue is looked at again: an empty poll may put the
 * process to sleep.
 */
int comm_progress(struct comm *c)
{
    struct ibv_wc wc[POLL_BATCH];
    unsigned total = 0, moved;

    do {
        int n = ibv_poll_cq(c->port.cq, POLL_BATCH, wc);

        if (n < 0) {
            comm_fail(c, "polling the completion queue failed");
            break;
        }
        for (int i = 0; i < n; i++)
            complete(c, &wc[i]);
        moved = (unsigned)n + exec_run(c);
        total += moved;
    } while (moved && total < PROGRESS_MAX);
    return (int)total;
}

/* ---- control path ---- */

enum comm_state comm_state(const struct comm *c)
{
    return c->state;
}

const char *comm_error(const struct comm *c)
{
    return c->error;
}

const char *comm_host(const struct comm *c, unsigned rank)
{
    return c->cfg.fab->nodes[c->cfg.fab->hosts[c->cfg.host_of_rank[rank]]].name;
}

/* A first PSN that two connections hardly share, and the same in every run. */
uint32_t comm_psn(const struct comm *c, unsigned which)
{
    uint64_t x = ((uint64_t)c->cfg.group << 32 | c->cfg.rank << 4 | which) * 0x9e3779b97f4a7c15ULL;

    return (uint32_t)(x >> 40);
}

void comm_fail(struct comm *c, const char *fmt, ...)
{
    va_list ap;

    if (c->state == COMM_FAILED)
        return;
    va_start(ap, fmt);
    vsnprintf(c->error, sizeof(c->error), fmt, ap);
    va_end(ap);
    c->state = COMM_FAILED;
    ring_stop(c);
    agg_stop(c);
    exec_fail(c);
    ctl_tell(c);
}

void comm_abort(struct comm *c, const char *why)
{
    comm_fail(c, "%s", why);
}

void comm_check_ready(struct comm *c)
{
    if (c->state == COMM_CONNECTING && ctl_all_in(c, PHASE_READY) &&
        (c->join.state == JOIN_NONE || c->join.state == JOIN_GRANTED))
        c->state = COMM_READY;
}

/* Who has not answered in time. */
static void connect_give_up(struct comm *c)
{
    if (c->join.state == JOIN_ASKED) {
        comm_fail(c, "%s does not answer JOIN", c->cfg.fab->nodes[c->join.leaf].name);
        return;
    }
    for (unsigned i = 0; i < c->ctl.n_peers; i++)
        if (c->ctl.peer[i].phase == PHASE_NONE) {
            comm_fail(c, "rank %u (%s): does not answer", c->ctl.peer[i].rank,
                      comm_host(c, c->ctl.peer[i].rank));
            return;
        }
}

void comm_tick(struct comm *c, int64_t now_ns)
{
    c->now_ns = now_ns;
    if (c->since_ns < 0)
        c->since_ns = c->told_ns = now_ns;
    if (c->state == COMM_CONNECTING && c->ctl.n_peers && now_ns - c->since_ns > GIVE_UP_NS)
        connect_give_up(c);
    if (now_ns - c->told_ns < RETRY_NS)
        return;
    c->told_ns = now_ns;
    ctl_tick(c);
    join_tick(c);
}

void comm_close(struct comm *c)
{
    if (c->closing)
        return;
    if (c->exec.head && c->state != COMM_FAILED)
        comm_fail(c, "closed with operations under way");
    c->closing = true;
    c->since_ns = -1;
    ctl_tell(c);
    join_leave(c);
}

bool comm_closed(const struct comm *c)
{
    bool left = c->join.state == JOIN_NONE || c->join.state == JOIN_LEFT;

    if (!c->closing)
        return false;
    if (c->since_ns >= 0 && c->now_ns - c->since_ns > CLOSE_NS)
        return true;
    return left && ctl_all_know(c) && (c->state == COMM_FAILED || ctl_all_in(c, PHASE_CLOSING));
}

/* ---- memory ---- */

int comm_register(struct comm *c, void *buf, size_t bytes)
{
    struct region *r = &c->region[c->n_regions];
    uint32_t lkey;

    if (!comm_lkey(c, buf, bytes, &lkey))
        return 0;
    if (c->n_regions == COMM_REGIONS)
        return -ENOSPC;
    r->mr = ibv_reg_mr(c->port.pd, buf, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!r->mr)
        return errno ? -errno : -ENOMEM;
    r->addr = buf, r->bytes = bytes;
    c->n_regions++;
    return 0;
}

int comm_lkey(const struct comm *c, const void *addr, size_t bytes, uint32_t *lkey)
{
    const uint8_t *p = addr;

    for (unsigned i = 0; i < c->n_regions; i++) {
        const struct region *r = &c->region[i];

        if (p >= r->addr && bytes <= r->bytes && (size_t)(p - r->addr) <= r->bytes - bytes) {
            *lkey = r->mr->lkey;
            return 0;
        }
    }
    return -EFAULT;
}

/* ---- set-up ---- */

static int check_cfg(const struct comm_cfg *cfg, char *err)
{
    unsigned n = cfg->fab->n_hosts;

    if (!cfg->nranks || cfg->nranks > FAB_MAX_MEMBERS || cfg->rank >= cfg->nranks) {
        snprintf(err, COMM_TEXT, "rank %u of %u: between 1 and %d ranks are possible", cfg->rank,
                 cfg->nranks, FAB_MAX_MEMBERS);
        return -EINVAL;
    }
    for (unsigned r = 0; r < cfg->nranks; r++)
        if (cfg->host_of_rank[r] >= n) {
            snprintf(err, COMM_TEXT, "rank %u is on host %u; the fabric has %u hosts", r,
                     cfg->host_of_rank[r], n);
            return -EINVAL;
        }
    return 0;
}

static int open_port(struct comm *c, char *err)
{
    const struct fabric *fab = c->cfg.fab;
    const struct fab_node *host = &fab->nodes[fab->hosts[c->cfg.host_of_rank[c->cfg.rank]]];
    int rc;

    c->port.ctx = c->cfg.ctx;
    c->port.real_time = fab->dilation == 1;
    rc = port_find(&c->port, host->ip_of_port, host->n_ports, fab->mtu);
    if (rc) {
        snprintf(err, COMM_TEXT, "no port of %s has an address of host %s (%s)",
                 ibv_get_device_name(c->cfg.ctx->device), host->name, strerror(-rc));
        return rc;
    }
    c->port.pd = ibv_alloc_pd(c->cfg.ctx);
    if (c->port.pd)
        c->port.cq = ibv_create_cq(c->cfg.ctx, 1024, NULL, NULL, 0);
    if (!c->port.cq) {
        snprintf(err, COMM_TEXT, "protection domain or completion queue: %s", strerror(errno));
        return -errno;
    }
    return 0;
}

static void write_blob(const struct comm *c, void *out)
{
    struct blob b = {
        .magic = rte_cpu_to_be_32(BLOB_MAGIC),
        .version = rte_cpu_to_be_32(BLOB_VERSION),
        .rank = rte_cpu_to_be_32(c->cfg.rank),
        .group = rte_cpu_to_be_32(c->cfg.group),
        .mtu = rte_cpu_to_be_32(c->port.mtu),
        .algos = rte_cpu_to_be_32(c->cfg.algos),
        .ctl_qpn = rte_cpu_to_be_32(c->ctl.qp->qp_num),
    };

    memcpy(b.gid, c->port.gid.raw, sizeof(b.gid));
    if (c->ring.right) {
        b.right_qpn = rte_cpu_to_be_32(c->ring.right->qp_num);
        b.right_psn = rte_cpu_to_be_32(c->ring.psn_right);
        b.left_qpn = rte_cpu_to_be_32(c->ring.left->qp_num);
        b.left_psn = rte_cpu_to_be_32(c->ring.psn_left);
        b.word_key = rte_cpu_to_be_32(c->ring.word_mr->rkey);
        b.word_addr = 0; /* registered at 0 */
    }
    memset(out, 0, COMM_BLOB);
    memcpy(out, &b, sizeof(b));
}

int comm_create(struct comm **out, const struct comm_cfg *cfg, void *blob, char *err)
{
    struct comm *c;
    uint16_t *hosts;
    int rc = check_cfg(cfg, err);

    if (rc)
        return rc;
    c = calloc(1, sizeof(*c));
    hosts = malloc(cfg->nranks * sizeof(*hosts));
    if (!c || !hosts) {
        free(c);
        free(hosts);
        snprintf(err, COMM_TEXT, "out of memory");
        return -ENOMEM;
    }
    memcpy(hosts, cfg->host_of_rank, cfg->nranks * sizeof(*hosts));
    c->cfg = *cfg;
    c->cfg.host_of_rank = hosts;
    c->since_ns = -1;
    rc = open_port(c, err);
    if (!rc)
        rc = ctl_create(c, err);
    if (!rc && cfg->nranks > 1 && comm_has(c, ALGO_RING))
        rc = ring_create(c, err);
    if (!rc && cfg->nranks > 1 && comm_has(c, ALGO_SHARP))
        rc = agg_create(c, err);
    if (rc) {
        comm_destroy(c);
        return rc;
    }
    write_blob(c, blob);
    *out = c;
    return 0;
}

/* Every rank's view must be ours; whoever differs is named. */
static int check_blob(const struct comm *c, unsigned rank, const struct blob *b, char *err)
{
    const char *what = NULL;

    if (rte_be_to_cpu_32(b->magic) != BLOB_MAGIC || rte_be_to_cpu_32(b->version) != BLOB_VERSION)
        what = "speaks another version";
    else if (rte_be_to_cpu_32(b->rank) != rank)
        what = "gave another rank's data";
    else if (rte_be_to_cpu_32(b->group) != c->cfg.group)
        what = "is in another group";
    else if (rte_be_to_cpu_32(b->mtu) != c->port.mtu)
        what = "has another MTU";
    else if (rte_be_to_cpu_32(b->algos) != c->cfg.algos)
        what = "has set up other algorithms";
    if (what)
        snprintf(err, COMM_TEXT, "rank %u (%s) %s", rank, comm_host(c, rank), what);
    return what ? -EPROTO : 0;
}

static void add_peer(struct comm *c, unsigned rank, const struct blob *b)
{
    struct peer *p = &c->ctl.peer[c->ctl.n_peers];
    union ibv_gid gid;

    if (c->ctl.n_peers && c->ctl.peer[0].rank == rank)
        return;
    memcpy(gid.raw, b->gid, sizeof(gid.raw));
    p->rank = rank;
    p->qpn = rte_be_to_cpu_32(b->ctl_qpn);
    p->ah = ud_address(&c->port, &gid);
    c->ctl.n_peers++;
}

static int connect_neighbours(struct comm *c, const struct blob *all[], char *err)
{
    unsigned n = c->cfg.nranks, l = (c->cfg.rank + n - 1) % n, r = (c->cfg.rank + 1) % n;
    struct remote left, right;

    memcpy(left.gid.raw, all[0]->gid, sizeof(left.gid.raw));
    left.qpn = rte_be_to_cpu_32(all[0]->right_qpn);
    left.psn = rte_be_to_cpu_32(all[0]->right_psn);
    memcpy(right.gid.raw, all[1]->gid, sizeof(right.gid.raw));
    right.qpn = rte_be_to_cpu_32(all[1]->left_qpn);
    right.psn = rte_be_to_cpu_32(all[1]->left_psn);
    c->ring.remote_word = rte_be_to_cpu_64(all[0]->word_addr);
    c->ring.remote_key = rte_be_to_cpu_32(all[0]->word_key);
    add_peer(c, l, all[0]);
    add_peer(c, r, all[1]);
    return comm_has(c, ALGO_RING) ? ring_connect(c, &left, &right, err) : 0;
}

int comm_connect(struct comm *c, const void *blobs, char *err)
{
    unsigned n = c->cfg.nranks;
    struct blob left = {0}, right = {0};
    const struct blob *neighbour[2] = {&left, &right};
    int rc;

    for (unsigned r = 0; r < n; r++) {
        struct blob b;

        memcpy(&b, (const uint8_t *)blobs + (size_t)r * COMM_BLOB, sizeof(b));
        rc = check_blob(c, r, &b, err);
        if (rc)
            return rc;
        if (r == (c->cfg.rank + n - 1) % n)
            left = b;
        if (r == (c->cfg.rank + 1) % n)
            right = b;
    }
    if (n == 1) {
        c->state = COMM_READY;
        return 0;
    }
    c->since_ns = -1;
    rc = connect_neighbours(c, neighbour, err);
    if (!rc)
        rc = ctl_connect(c, err);
    if (!rc && comm_has(c, ALGO_SHARP))
        rc = join_start(c, err);
    return rc;
}

void comm_destroy(struct comm *c)
{
    if (!c)
        return;
    exec_destroy(c);
    ring_destroy(c);
    agg_destroy(c);
    join_destroy(c);
    ctl_destroy(c);
    for (unsigned i = 0; i < c->n_regions; i++)
        ibv_dereg_mr(c->region[i].mr);
    if (c->port.cq)
        ibv_destroy_cq(c->port.cq);
    if (c->port.pd)
        ibv_dealloc_pd(c->port.pd);
    free((void *)c->cfg.host_of_rank);
    free(c);
}

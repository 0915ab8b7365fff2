/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check that ranks agree. Every message carries its operation in 32 bits, the tag, which reveals
 * a rank that runs another one. Without progress between two ticks (ranks that disagree on the root
 * wait for each other), a rank sends the full description of its operation to those that it waits
 * for.
 */
#include "collective/file/sched_file.h"
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ASK_RANKS 4 /* asked at a tick */

/* Arguments that the collective does not use are 0: ranks may differ in them. */
struct op_id op_id_of(const struct coll_args *a, uint32_t seq)
{
    struct op_id id = {.seq = seq, .kind = a->kind, .algo = a->algo};

    if (a->kind == COLL_BARRIER)
        return id;
    id.type = a->type;
    id.op = coll_reduces(a->kind) ? a->op : 0;
    id.root = coll_rooted(a->kind) ? a->root : 0;
    id.sparse = a->kind == COLL_ALLTOALL ? a->sparse : 0;
    id.count = a->count;
    id.file = a->algo == ALGO_SCHEDULE && a->file ? a->file->hash : 0;
    return id;
}

/* Number 8 bits, collective 4, type 4, reduction 4, root 4, the rest 8. */
_Static_assert(COLL_KINDS <= 16 && DT_COUNT <= 16 && OP_COUNT <= 16, "four bits each");
uint32_t op_tag(const struct op_id *id)
{
    uint64_t rest = (id->count ^ (uint64_t)id->algo << 56 ^ (uint64_t)id->sparse << 44);
    uint32_t root = (id->root ^ id->root >> 4 ^ id->root >> 8) & 15;

    rest ^= (uint64_t)id->file << 24;
    rest *= 0x9e3779b97f4a7c15ULL;
    return (id->seq & 0xff) << 24 | (uint32_t)id->kind << 20 | (uint32_t)id->type << 16 |
           (uint32_t)id->op << 12 | root << 8 | (uint32_t)(rest >> 56);
}

/* Our operation of that number; NULL: not known (any more). */
static const struct op_id *op_find(const struct comm *c, uint32_t seq, uint32_t mask)
{
    for (uint32_t i = c->exec.opseq; i && c->exec.opseq - i < OPS_KNOWN; i--) {
        const struct op_id *id = &c->known[(i - 1) % OPS_KNOWN];

        if (((id->seq ^ seq) & mask) == 0)
            return id;
    }
    return NULL;
}

const struct op_id *op_known(const struct comm *c, uint32_t seq)
{
    return op_find(c, seq, ~0u);
}

static void fail_kind_type_op(struct comm *c, unsigned rank, const struct op_id *mine,
                              unsigned kind, unsigned type, unsigned op)
{
    const char *host = comm_host(c, rank);

    if (kind != mine->kind)
        comm_fail(c, "rank %u (%s) disagrees on the collective: %s, and %s at rank %u", rank, host,
                  coll_name(kind), coll_name(mine->kind), c->cfg.rank);
    else if (type != mine->type && type < DT_COUNT)
        comm_fail(c, "rank %u (%s) disagrees on the type: %s, and %s at rank %u", rank, host,
                  dtype_name(type), dtype_name(mine->type), c->cfg.rank);
    else if (op != mine->op && op < OP_COUNT)
        comm_fail(c, "rank %u (%s) disagrees on the reduction: %s, and %s at rank %u", rank, host,
                  redop_name(op), redop_name(mine->op), c->cfg.rank);
}

void op_disagree(struct comm *c, unsigned rank, uint32_t tag)
{
    const struct op_id *mine = op_find(c, tag >> 24, 0xff);
    const char *host = comm_host(c, rank);
    uint32_t diff;

    if (!mine || (tag >> 24) != (exec_seq(c) & 0xff)) {
        comm_fail(c, "rank %u (%s) disagrees on which operation runs: number %u, and %u at rank %u",
                  rank, host, tag >> 24, exec_seq(c) & 0xff, c->cfg.rank);
        return;
    }
    fail_kind_type_op(c, rank, mine, tag >> 20 & 15, tag >> 16 & 15, tag >> 12 & 15);
    diff = op_tag(mine) ^ tag;
    if (diff >> 8 & 15)
        comm_fail(c, "rank %u (%s) disagrees on the root: not %u as at rank %u", rank, host,
                  mine->root, c->cfg.rank);
    else if (diff)
        comm_fail(c,
                  "rank %u (%s) disagrees on the size or the algorithm: not %llu elements by %s "
                  "as at rank %u",
                  rank, host, (unsigned long long)mine->count, sched_algo_name(mine->algo),
                  c->cfg.rank);
    else
        comm_fail(c, "rank %u (%s) disagrees on the size: it sent more in %s than rank %u expects",
                  rank, host, coll_name(mine->kind), c->cfg.rank);
}

struct op_msg {
    struct ctl_head head;
    rte_be32_t seq, kind, algo, type, op, root, sparse, file;
    rte_be64_t count;
} __attribute__((packed));
_Static_assert(sizeof(struct op_msg) <= CTL_MSG_BYTES, "one datagram");

void op_tick(struct comm *c)
{
    struct exec *x = &c->exec;
    const struct op_id *id = x->running ? &x->head->id : NULL;
    bool stuck = id && x->moved == x->moved_at_tick;
    unsigned asked = 0;
    struct op_msg m;

    x->moved_at_tick = x->moved;
    if (stuck || c->failover.state == FAILOVER_ASKING)
        conn_probe(c);
    if (!stuck || c->state != COMM_READY)
        return;
    join_probe(c);
    if (!x->running) /* a probe that could not be posted has ended it */
        return;
    m = (struct op_msg){
        .head.magic = rte_cpu_to_be_32(OP_MAGIC),
        .seq = rte_cpu_to_be_32(id->seq),
        .kind = rte_cpu_to_be_32(id->kind),
        .algo = rte_cpu_to_be_32(id->algo),
        .type = rte_cpu_to_be_32(id->type),
        .op = rte_cpu_to_be_32(id->op),
        .root = rte_cpu_to_be_32(id->root),
        .sparse = rte_cpu_to_be_32(id->sparse),
        .file = rte_cpu_to_be_32(id->file),
        .count = rte_cpu_to_be_64(id->count),
    };
    for (unsigned l = 0; l < x->head->s.n_lanes && asked < ASK_RANKS; l++)
        if (x->head->s.lane[l].kind == LANE_PROTOCOL) /* it waits for all ranks: ask the next in
                                                       * the ring */
            asked += ctl_send_rank(c, (c->cfg.rank + 1) % c->cfg.nranks, &m, sizeof(m));
        else if (x->head->lane[l].conn && x->head->lane[l].done < x->head->s.lane[l].n)
            asked += ctl_send_rank(c, x->head->s.lane[l].peer, &m, sizeof(m));
}

void op_input(struct comm *c, unsigned rank, const void *msg, size_t len)
{
    const struct op_id *mine;
    const char *host;
    struct op_msg m;

    if (len < sizeof(m))
        return;
    memcpy(&m, msg, sizeof(m));
    mine = op_find(c, rte_be_to_cpu_32(m.seq), ~0u);
    if (!mine)
        return;
    host = comm_host(c, rank);
    fail_kind_type_op(c, rank, mine, rte_be_to_cpu_32(m.kind), rte_be_to_cpu_32(m.type),
                      rte_be_to_cpu_32(m.op));
    if (rte_be_to_cpu_32(m.root) != mine->root)
        comm_fail(c, "rank %u (%s) disagrees on the root: %u, and %u at rank %u", rank, host,
                  rte_be_to_cpu_32(m.root), mine->root, c->cfg.rank);
    else if (rte_be_to_cpu_64(m.count) != mine->count)
        comm_fail(c, "rank %u (%s) disagrees on the size: %llu elements, and %llu at rank %u", rank,
                  host, (unsigned long long)rte_be_to_cpu_64(m.count),
                  (unsigned long long)mine->count, c->cfg.rank);
    else if (rte_be_to_cpu_32(m.algo) != mine->algo || rte_be_to_cpu_32(m.sparse) != mine->sparse)
        comm_fail(c, "rank %u (%s) disagrees on the algorithm", rank, host);
    else if (rte_be_to_cpu_32(m.file) != mine->file)
        comm_fail(c, "rank %u (%s) disagrees on the schedule's file", rank, host);
}

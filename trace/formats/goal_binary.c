/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GOAL in binary: little endian, without padding.
 *
 *   u64 magic; u32 ranks; u8 highest cpu; u8 highest nic; for each rank u64 start, u64 end (from byte 8 on)
 *   for each rank: u32 nodes; u32 roots; u32 index of each root; nodes; u32 appendix to the end
 *   node: u32 dependencies; u8 type; u32 peer; u64 size; u32 tag; u8 cpu; u8 nic;
 *         u32 number and u32 first place in the appendix of nodes that wait for its end; the same for
 *         its start
 */
#include "trace/formats/goal_coll.h"
#include "trace/grow.h"
#include "trace/formats/trace_readers.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC       4223u
#define MAGIC_SPOIL 2342u
#define HEAD_BYTES  14u
#define NODE_BYTES  39u
#define BLOCK_MOST  (1ull << 40)
#define PART        (1u << 20)

struct goal_block {
    struct app_graph *g;
    struct trace_input *in;
    uint8_t *at;
    uint64_t n; /* bytes */
    size_t room;
    uint32_t rank, nodes, roots, places, n_ranks; /* places: of the appendix */
    const uint8_t *node, *appendix;
    uint32_t *waits; /* dependencies that the appendix has */
};

static uint32_t u32_at(const uint8_t *at)
{
    uint32_t v;

    memcpy(&v, at, sizeof(v));
    return le32toh(v);
}

static uint64_t u64_at(const uint8_t *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof(v));
    return le64toh(v);
}

static int block_refuse(struct goal_block *b, const char *what, uint64_t found, uint64_t expected)
{
    char place[32];

    snprintf(place, sizeof(place), "rank %u", b->rank);
    return trace_refuse_at(b->in, place, "found %s %" PRIu64 ", expected %" PRIu64, what, found,
                           expected);
}

static int node_refuse(struct goal_block *b, uint32_t node, const char *what, uint64_t found,
                       const char *expected)
{
    char place[48];

    snprintf(place, sizeof(place), "rank %u, record %u", b->rank, node);
    return trace_refuse_at(b->in, place, "found %s %" PRIu64 ", expected %s", what, found,
                           expected);
}

/* The block's bytes, in parts: what the file says of its length is believed as far as it is there. */
static int block_bytes(struct goal_block *b)
{
    uint64_t got = 0;

    while (got < b->n) {
        size_t k = b->n - got < PART ? (size_t)(b->n - got) : PART;
        const char *from;
        int rc = trace_input_bytes(b->in, k, &from, "a rank's block");

        if (rc == 1)
            return block_refuse(b, "a block that ends with byte", got, b->n);
        if (rc)
            return rc;
        GROW(b->at, got + k, &b->room);
        memcpy(b->at + got, from, k);
        got += k;
    }
    return 0;
}

static int block_layout(struct goal_block *b)
{
    uint64_t nodes_at, appendix_at;

    if (b->n < 8)
        return block_refuse(b, "bytes of a block:", b->n, 8);
    b->nodes = u32_at(b->at);
    b->roots = u32_at(b->at + 4);
    nodes_at = 8 + 4ull * b->roots;
    appendix_at = nodes_at + (uint64_t)NODE_BYTES * b->nodes;
    if (b->roots > b->nodes)
        return block_refuse(b, "roots:", b->roots, b->nodes);
    if (appendix_at > b->n)
        return block_refuse(b, "bytes of a block:", b->n, appendix_at);
    if ((b->n - appendix_at) % 4)
        return block_refuse(b, "bytes of an appendix:", b->n - appendix_at,
                            (b->n - appendix_at) & ~3ull);
    if ((b->n - appendix_at) / 4 > UINT32_MAX)
        return block_refuse(b, "places of an appendix:", (b->n - appendix_at) / 4, UINT32_MAX);
    b->places = (uint32_t)((b->n - appendix_at) / 4);
    b->node = b->at + nodes_at;
    b->appendix = b->at + appendix_at;
    return 0;
}

static int node_coll(struct goal_block *b, uint32_t i, const uint8_t *node, struct app_op *op)
{
    uint32_t root = op->peer >> 16;

    op->kind = APP_COLL;
    op->coll = goal_colls[node[4] - GOAL_COLL_FIRST].coll;
    op->group = op->peer & 0xffff;
    op->peer = root == 0xffff ? APP_ANY : root;
    return op->tag == APP_ANY ? node_refuse(b, i, "collective", op->tag, "a number of one") : 0;
}

static int node_read(struct goal_block *b, uint32_t i)
{
    const uint8_t *node = b->node + (size_t)NODE_BYTES * i;
    struct app_op op = {.peer = u32_at(node + 5),
                        .bytes = u64_at(node + 9),
                        .tag = u32_at(node + 17),
                        .stream = node[21],
                        .nic = node[22],
                        .line = i};
    int rc = 0;

    if (node[4] == 1 || node[4] == 2) {
        op.kind = node[4] == 1 ? APP_SEND : APP_RECV;
    } else if (node[4] == 3) {
        op.kind = APP_COMPUTE;
        op.ns = op.bytes;
        op.bytes = 0;
        op.peer = op.tag = 0;
    } else if (node[4] >= GOAL_COLL_FIRST && node[4] < GOAL_COLL_FIRST + GOAL_COLLS) {
        rc = node_coll(b, i, node, &op);
    } else {
        rc = node_refuse(b, i, "type", node[4], "1, 2, 3 or 10 to 14");
    }
    if (!rc && app_graph_op(b->g, &op) < 0)
        rc = node_refuse(b, i, "operation", APP_OPS_MOST, "fewer");
    return rc;
}

/* Those that wait for the end of node i, or for its start. */
static int node_waiters(struct goal_block *b, uint32_t i, bool at_start)
{
    const uint8_t *node = b->node + (size_t)NODE_BYTES * i + (at_start ? 31 : 23);
    uint32_t n = u32_at(node), first = u32_at(node + 4);

    if (n && (first > b->places || n > b->places - first))
        return node_refuse(b, i, "an appendix up to place", (uint64_t)first + n,
                           "one within the block");
    for (uint32_t k = 0; k < n; k++) {
        uint32_t waits = u32_at(b->appendix + 4 * (size_t)(first + k));

        b->g->repaired[REPAIR_ABSENT] += waits >= b->nodes;
        if (waits >= b->nodes) {
            finding_note(&b->g->found, FINDING_DEPENDENCY,
                         "%s: rank %u, record %u: found record %u, expected one below %u",
                         b->in->name, b->rank, i, waits, b->nodes);
            continue;
        }
        b->waits[waits]++;
        app_graph_dep(b->g, waits, i, at_start);
    }
    return 0;
}

/* What nodes say of their dependencies, and the list of roots. */
static void block_counts(struct goal_block *b)
{
    uint32_t roots = 0;

    for (uint32_t i = 0; i < b->nodes; i++) {
        uint32_t said = u32_at(b->node + (size_t)NODE_BYTES * i);

        roots += !b->waits[i];
        if (said != b->waits[i])
            finding_note(&b->g->found, FINDING_COUNT,
                         "%s: rank %u, record %u: found %u dependencies, expected the %u that it "
                         "says",
                         b->in->name, b->rank, i, b->waits[i], said);
    }
    for (uint32_t i = 0; i < b->roots; i++) {
        uint32_t root = u32_at(b->at + 8 + 4 * (size_t)i);

        if (root >= b->nodes || b->waits[root])
            finding_note(&b->g->found, FINDING_COUNT,
                         "%s: rank %u: found root %u, expected a record without dependencies",
                         b->in->name, b->rank, root);
    }
    if (roots != b->roots)
        finding_note(&b->g->found, FINDING_COUNT,
                     "%s: rank %u: found %u records without dependencies, expected the %u roots "
                     "that it says",
                     b->in->name, b->rank, roots, b->roots);
}

/* Each place of the appendix is one dependency: nodes that share places say more than there are. */
static int block_sum(struct goal_block *b)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < b->nodes; i++) {
        const uint8_t *node = b->node + (size_t)NODE_BYTES * i;

        sum += (uint64_t)u32_at(node + 23) + u32_at(node + 31);
    }
    return sum > b->places ? block_refuse(b, "dependencies:", sum, b->places) : 0;
}

static int block_read(struct goal_block *b)
{
    int rc = block_layout(b);

    if (!rc)
        rc = block_sum(b);
    if (rc)
        return rc;
    b->waits = enough_memory(b->nodes + 1ul, sizeof(*b->waits));
    for (uint32_t i = 0; !rc && i < b->nodes; i++)
        rc = node_read(b, i);
    for (uint32_t i = 0; !rc && i < b->nodes; i++) {
        rc = node_waiters(b, i, false);
        if (!rc)
            rc = node_waiters(b, i, true);
    }
    if (!rc)
        block_counts(b);
    free(b->waits);
    return rc;
}

/* ---- the whole file ---- */

static int goal_binary_head(struct goal_block *b)
{
    const char *head;
    int rc = trace_input_bytes(b->in, HEAD_BYTES, &head, "the header");
    uint64_t magic;

    if (rc)
        return rc == 1 ? trace_refuse_at(b->in, "", "found no bytes, expected GOAL") : rc;
    magic = u64_at((const uint8_t *)head);
    if (magic == MAGIC_SPOIL)
        return trace_refuse_at(b->in, "",
                               "found a schedule that a run has spoilt (magic 2342), "
                               "expected the file as txt2bin writes it");
    if (magic != MAGIC)
        return trace_refuse_at(b->in, "", "found magic %" PRIu64 ", expected %u", magic, MAGIC);
    b->n_ranks = u32_at((const uint8_t *)head + 8);
    return b->n_ranks > APP_RANKS_MOST
               ? trace_refuse_at(b->in, "", "found %u ranks, expected %u at most", b->n_ranks,
                                 APP_RANKS_MOST)
               : 0;
}

/* Ends of the ranks' blocks: they lie one behind the other. */
static int goal_binary_table(struct goal_block *b, uint64_t *end)
{
    uint64_t at = HEAD_BYTES - 8 + 16ull * b->n_ranks;

    for (b->rank = 0; b->rank < b->n_ranks; b->rank++) {
        const char *row;
        int rc = trace_input_bytes(b->in, 16, &row, "the table of ranks");
        uint64_t start = rc ? 0 : u64_at((const uint8_t *)row);

        if (rc)
            return rc == 1 ? block_refuse(b, "the end of the file in the place of rank", b->rank,
                                          b->n_ranks)
                           : rc;
        end[b->rank] = u64_at((const uint8_t *)row + 8);
        if (start != at)
            return block_refuse(b, "a block at byte", start, at);
        if (end[b->rank] < start || end[b->rank] - start > BLOCK_MOST)
            return block_refuse(b, "the end of a block at byte", end[b->rank], start);
        at = end[b->rank];
    }
    return 0;
}

static int goal_binary_blocks(struct goal_block *b, const uint64_t *end, uint32_t file)
{
    uint64_t at = HEAD_BYTES - 8 + 16ull * b->n_ranks;
    const char *rest;
    int rc = 0;

    for (b->rank = 0; !rc && b->rank < b->n_ranks; b->rank++) {
        b->n = end[b->rank] - at;
        at = end[b->rank];
        rc = block_bytes(b);
        if (rc)
            break;
        app_graph_rank(b->g, b->rank, file);
        rc = block_read(b);
        app_graph_rank_end(b->g);
    }
    if (!rc && trace_input_peek(b->in, 1, &rest) == 1)
        rc = trace_refuse_at(b->in, "", "found bytes behind the last rank, expected the end");
    return rc;
}

int goal_binary_read(struct app_graph *g, struct trace_input *in, uint32_t rank)
{
    struct goal_block b = {.g = g, .in = in};
    uint32_t file = app_graph_file(g, in->name, true);
    uint64_t *end = NULL;
    int rc = goal_binary_head(&b);

    (void)rank;
    g->format = "GOAL binary";
    if (!rc) {
        end = enough_memory(b.n_ranks + 1ul, sizeof(*end));
        rc = goal_binary_table(&b, end);
    }
    if (!rc)
        rc = goal_binary_blocks(&b, end, file);
    free(end);
    free(b.at);
    return rc;
}

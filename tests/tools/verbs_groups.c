/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaches a queue pair to N multicast groups, from FIRST (an address as a number) on.
 *
 *     verbs_groups FIRST N [SECONDS]
 *
 * Prints "attached K of N", and with what error the next one failed; stays a member for SECONDS.
 */
#include "tests/tools/verbs_oob.h"

#include <netinet/in.h>

static union ibv_gid group(uint32_t ip)
{
    union ibv_gid g = {.raw = {[10] = 0xff, [11] = 0xff}};
    uint32_t be = htonl(ip);

    memcpy(g.raw + 12, &be, 4);
    return g;
}

int main(int argc, char **argv)
{
    struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_UD, .cap = {1, 1, 1, 1, 0}};
    struct ibv_context *ctx;
    struct ibv_qp *qp;
    unsigned n, k = 0;
    int rc = 0;

    if (argc < 3)
        die("usage: verbs_groups FIRST N [SECONDS]");
    n = (unsigned)atoi(argv[2]);
    ctx = open_first();
    a.send_cq = a.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    qp = ibv_create_qp(ibv_alloc_pd(ctx), &a);
    must(qp);
    while (k < n && !rc) {
        union ibv_gid g = group((uint32_t)strtoul(argv[1], NULL, 0) + k);

        rc = ibv_attach_mcast(qp, &g, 0);
        k += !rc;
    }
    printf("attached %u of %u%s%s\n", k, n, rc ? ": " : "", rc ? strerrorname_np(rc) : "");
    fflush(stdout);
    if (argc > 3)
        sleep((unsigned)atoi(argv[3]));
    return 0;
}

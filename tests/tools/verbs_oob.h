/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the verbs programs of the end-to-end tests: plain libibverbs, and a TCP connection on
 * this machine over which two or more of them exchange addresses and synchronize. Any error ends
 * the program with a message.
 */
#ifndef TRIB_TESTS_TOOLS_VERBS_OOB_H
#define TRIB_TESTS_TOOLS_VERBS_OOB_H

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define die(...)                                                                                   \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        exit(1);                                                                                   \
    } while (0)
#define must(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            die("expected %s (errno: %s)", #cond, strerror(errno));                                \
    } while (0)

/* ---- the other side ---- */

static inline struct sockaddr_in oob_addr(const char *port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static inline int oob_listen(const char *port)
{
    struct sockaddr_in a = oob_addr(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    must(fd >= 0);
    must(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
    must(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
    must(!listen(fd, 16));
    return fd;
}

static inline int oob_connect(const char *port)
{
    struct sockaddr_in a = oob_addr(port);
    struct timespec nap = {0, 50000000};

    for (unsigned i = 0; i < 600; i++) { /* the other side may not have started yet */
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        must(fd >= 0);
        if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
            return fd;
        close(fd);
        nanosleep(&nap, NULL);
    }
    die("no process listens on port %s", port);
}

static inline void oob_put(int fd, const void *p, size_t n)
{
    must(write(fd, p, n) == (ssize_t)n);
}

static inline void oob_get(int fd, void *p, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t k = read(fd, (char *)p + got, n - got);

        if (k <= 0)
            die("the other side is gone");
        got += (size_t)k;
    }
}

static inline void oob_swap(int fd, const void *mine, void *theirs, size_t n)
{
    oob_put(fd, mine, n);
    oob_get(fd, theirs, n);
}

static inline void oob_barrier(int fd)
{
    char c = 'b', d = 0;

    oob_swap(fd, &c, &d, 1);
    must(d == 'b');
}

/* ---- verbs ---- */

static inline struct ibv_context *open_first(void)
{
    struct ibv_device **l = ibv_get_device_list(NULL);
    struct ibv_context *c;

    must(l && l[0]);
    c = ibv_open_device(l[0]);
    must(c);
    ibv_free_device_list(l);
    return c;
}

/* The address that a side sends to the other. */
struct peer {
    union ibv_gid gid;
    uint32_t qpn, rkey;
    uint64_t addr;
};

static inline struct ibv_ah_attr ah_of(const union ibv_gid *gid)
{
    return (struct ibv_ah_attr){
        .is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}};
}

#define OOB_QKEY 0x1234u

/* Brings a queue pair of any of the three transports to RTS. access: its access flags. */
static inline void qp_connect(struct ibv_qp *qp, const struct peer *to, unsigned access)
{
    bool rc = qp->qp_type == IBV_QPT_RC, ud = qp->qp_type == IBV_QPT_UD;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = access,
                            .qkey = OOB_QKEY,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = to->qpn,
                            .max_dest_rd_atomic = 4,
                            .max_rd_atomic = 4,
                            .min_rnr_timer = 1,
                            .timeout = 12,
                            .retry_cnt = 5,
                            .rnr_retry = 2,
                            .ah_attr = ah_of(&to->gid)};
    int av = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

    must(!ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                            (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
    a.qp_state = IBV_QPS_RTR;
    must(!ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | (ud ? 0 : av) |
                            (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
    a.qp_state = IBV_QPS_RTS;
    must(!ibv_modify_qp(
        qp, &a,
        IBV_QP_STATE | IBV_QP_SQ_PSN |
            (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                : 0)));
}

/* The next completion, or -1 after so many ms. */
static inline int next_wc(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
    struct timespec t;
    time_t end;

    clock_gettime(CLOCK_MONOTONIC, &t);
    end = t.tv_sec * 1000 + t.tv_nsec / 1000000 + ms;
    for (;;) {
        int n = ibv_poll_cq(cq, 1, wc);

        if (n < 0)
            die("ibv_poll_cq: %d", n);
        if (n)
            return 0;
        clock_gettime(CLOCK_MONOTONIC, &t);
        if (t.tv_sec * 1000 + t.tv_nsec / 1000000 > end)
            return -1;
    }
}

#define WC_MS 30000 /* long enough on a loaded machine */

static inline void expect_wc(struct ibv_cq *cq, enum ibv_wc_status want, const char *what)
{
    struct ibv_wc wc;

    if (next_wc(cq, &wc, WC_MS))
        die("%s: no completion, expected %s", what, ibv_wc_status_str(want));
    if (wc.status != want)
        die("%s: found %s, expected %s", what, ibv_wc_status_str(wc.status),
            ibv_wc_status_str(want));
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks every byte that an RC connection moves: rounds of WRITEs, an atomic, READs of what was
 * just written and a SEND, all posted at once, compared with a copy kept here. So it detects errors
 * after loss, a link failure or a retransmission: a wrong byte, a message or an atomic executed
 * twice.
 *
 *   verbs_exact DIR server            answers one client; the two meet by files in DIR
 *   verbs_exact DIR client SECONDS [TIMEOUT [RETRIES]]   TIMEOUT as ibv_qp_attr.timeout
 *
 * Exit 0: all exact; 1: something was not; 3: a completion with an error, whose name is printed.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AREAS     8
#define AREA      65536
#define MESSAGE   8192
#define RECEIVES  64
#define STORE     (AREAS * AREA + 64) /* the atomics' counter is behind the areas */
#define MEET_S    30
#define LAST_WORD UINT64_MAX

struct end {
    uint64_t addr;
    uint32_t rkey, qpn, psn;
    union ibv_gid gid;
};

struct side {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *mem; /* store, READ landing areas, messages */
    size_t size;
    struct end me, peer;
};

static uint8_t *landing(struct side *s)
{
    return s->mem + STORE;
}
static uint8_t *message(struct side *s, unsigned i)
{
    return landing(s) + STORE + (size_t)i * MESSAGE;
}
static uint64_t *counter(uint8_t *store)
{
    return (uint64_t *)(store + AREAS * AREA);
}

static void die(int rc, const char *what)
{
    printf("verbs_exact: %s\n", what);
    exit(rc);
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void fill(uint8_t *p, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t v = mix(seed + i);

        memcpy(p + i, &v, n - i < 8 ? n - i : 8);
    }
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- connecting ---- */

static void say(const char *dir, const char *who, const struct end *e)
{
    char tmp[512], path[512];
    FILE *f;

    snprintf(tmp, sizeof(tmp), "%s/%s.new", dir, who);
    snprintf(path, sizeof(path), "%s/%s.end", dir, who);
    f = fopen(tmp, "w");
    if (!f || fwrite(e, sizeof(*e), 1, f) != 1 || fclose(f) || rename(tmp, path))
        die(1, "cannot write into DIR");
}

static void hear(const char *dir, const char *who, struct end *e)
{
    double end = seconds() + MEET_S;
    char path[512];

    snprintf(path, sizeof(path), "%s/%s.end", dir, who);
    while (seconds() < end) {
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(e, sizeof(*e), 1, f) : 0;

        if (f)
            fclose(f);
        if (n == 1)
            return;
        usleep(10000);
    }
    die(1, "the other side did not come");
}

/* The client has its last completion: until then the server must answer what it sends again, since
 * the acknowledgement may have been lost. */
static void part(const char *dir)
{
    struct end nothing = {0};

    say(dir, "over", &nothing);
}

static void await_part(const char *dir)
{
    struct end nothing;

    hear(dir, "over", &nothing);
}

static void open_side(struct side *s)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {128, RECEIVES, 1, 1, 0}};
    int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
              IBV_ACCESS_REMOTE_ATOMIC;

    s->size = 2 * STORE + RECEIVES * MESSAGE;
    s->mem = calloc(1, s->size);
    s->ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    s->pd = s->ctx ? ibv_alloc_pd(s->ctx) : NULL;
    s->cq = s->pd ? ibv_create_cq(s->ctx, 256, NULL, NULL, 0) : NULL;
    s->mr = s->cq && s->mem ? ibv_reg_mr(s->pd, s->mem, s->size, all) : NULL;
    ia.send_cq = ia.recv_cq = s->cq;
    s->qp = s->mr ? ibv_create_qp(s->pd, &ia) : NULL;
    if (!s->qp || ibv_query_gid(s->ctx, 1, 0, &s->me.gid))
        die(1, "no device, or it refuses");
    s->me.addr = (uintptr_t)s->mem;
    s->me.rkey = s->mr->rkey;
    s->me.qpn = s->qp->qp_num;
    s->me.psn = (uint32_t)mix(s->me.qpn) & 0xffffff;
}

static void connect_side(struct side *s, uint8_t timeout, uint8_t retries)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                               IBV_ACCESS_REMOTE_ATOMIC};
    int rc = ibv_modify_qp(s->qp, &a,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = s->peer.qpn,
        .rq_psn = s->peer.psn,
        .max_dest_rd_atomic = 16,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = s->peer.gid, .hop_limit = 64}}};
    rc |= ibv_modify_qp(s->qp, &a,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = timeout,
                             .retry_cnt = retries,
                             .rnr_retry = 7,
                             .sq_psn = s->me.psn,
                             .max_rd_atomic = 16};
    rc |= ibv_modify_qp(s->qp, &a,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (rc)
        die(1, "the queue pair cannot be connected");
}

/* Takes n completions, or exits with the name of the error. */
static void complete(struct side *s, unsigned n, uint64_t *last_id)
{
    double end = seconds() + 60;
    struct ibv_wc wc;

    while (n) {
        int k = ibv_poll_cq(s->cq, 1, &wc);

        if (k < 0 || (!k && seconds() > end))
            die(1, "no completion for 60 s");
        if (!k)
            continue;
        if (wc.status != IBV_WC_SUCCESS)
            die(3, ibv_wc_status_str(wc.status));
        if (last_id)
            *last_id = wc.wr_id;
        n--;
    }
}

/* ---- the client's rounds ---- */

static void post(struct side *s, enum ibv_wr_opcode op, uint8_t *local, uint32_t len, size_t at)
{
    struct ibv_sge sge = {(uintptr_t)local, len, s->mr->lkey};
    struct ibv_send_wr w = {.sg_list = &sge,
                            .num_sge = 1,
                            .opcode = op,
                            .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        w.wr.atomic.remote_addr = s->peer.addr + at;
        w.wr.atomic.rkey = s->peer.rkey;
        w.wr.atomic.compare_add = 1;
    } else {
        w.wr.rdma.remote_addr = s->peer.addr + at;
        w.wr.rdma.rkey = s->peer.rkey;
    }
    if (ibv_post_send(s->qp, &w, &bad))
        die(1, "a request is refused");
}

static void post_message(struct side *s, uint64_t word, uint32_t len)
{
    fill(message(s, 0), len, word);
    memcpy(message(s, 0), &word, sizeof(word));
    post(s, IBV_WR_SEND, message(s, 0), len, 0);
}

static uint64_t round_once(struct side *s, uint64_t n)
{
    uint64_t *before = counter(landing(s)), bytes = 0;
    uint32_t at[AREAS], len[AREAS];

    for (unsigned i = 0; i < AREAS; i++) {
        uint64_t r = mix(n * AREAS + i);

        at[i] = (uint32_t)(r % AREA);
        len[i] = 1 + (uint32_t)((r >> 32) % (AREA - at[i]));
        fill(s->mem + i * AREA + at[i], len[i], r);
        post(s, IBV_WR_RDMA_WRITE, s->mem + i * AREA + at[i], len[i], i * AREA + at[i]);
        bytes += 2 * len[i];
    }
    *before = ~n;
    post(s, IBV_WR_ATOMIC_FETCH_AND_ADD, (uint8_t *)before, 8, AREAS * AREA);
    memset(landing(s), 0x5a, AREAS * AREA);
    for (unsigned i = 0; i < AREAS; i++)
        post(s, IBV_WR_RDMA_READ, landing(s) + i * AREA + at[i], len[i], i * AREA + at[i]);
    post_message(s, n, 8 + (uint32_t)(mix(n) % (MESSAGE - 8)));
    complete(s, 2 * AREAS + 2, NULL);
    if (*before != n)
        die(1, "an atomic was executed twice or never");
    for (unsigned i = 0; i < AREAS; i++)
        if (memcmp(landing(s) + i * AREA + at[i], s->mem + i * AREA + at[i], len[i]))
            die(1, "what was read is not what was written");
    return bytes;
}

static void client(struct side *s, double how_long)
{
    double end = seconds() + how_long;
    uint64_t n = 0, bytes = 0;

    while (n == 0 || seconds() < end)
        bytes += round_once(s, n++);
    /* the whole store, not only what the last rounds touched */
    post(s, IBV_WR_RDMA_READ, landing(s), AREAS * AREA + 8, 0);
    complete(s, 1, NULL);
    *counter(s->mem) = n;
    if (memcmp(landing(s), s->mem, AREAS * AREA + 8))
        die(1, "the store is not what was written");
    post_message(s, LAST_WORD, 8);
    complete(s, 1, NULL);
    printf("verbs_exact: %" PRIu64 " rounds, %" PRIu64 " bytes exact\n", n, bytes);
}

/* ---- the server's messages ---- */

static void post_receive(struct side *s, uint64_t i)
{
    struct ibv_sge sge = {(uintptr_t)message(s, (unsigned)i), MESSAGE, s->mr->lkey};
    struct ibv_recv_wr w = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

    memset(message(s, (unsigned)i), 0, MESSAGE);
    if (ibv_post_recv(s->qp, &w, &bad))
        die(1, "a receive is refused");
}

static void server(struct side *s)
{
    static uint8_t want[MESSAGE];

    for (uint64_t n = 0;; n++) {
        uint64_t i = 0, word;
        uint32_t len = 8 + (uint32_t)(mix(n) % (MESSAGE - 8));

        complete(s, 1, &i);
        memcpy(&word, message(s, (unsigned)i), sizeof(word));
        if (word == LAST_WORD) {
            if (*counter(s->mem) != n)
                die(1, "messages and atomics are not as many");
            printf("verbs_exact: %" PRIu64 " messages exact\n", n);
            return;
        }
        fill(want, len, n);
        memcpy(want, &n, sizeof(n));
        if (memcmp(want, message(s, (unsigned)i), len))
            die(1, "a message is lost, doubled or not what was sent");
        post_receive(s, i);
    }
}

int main(int argc, char **argv)
{
    bool is_client = argc > 3 && !strcmp(argv[2], "client");
    const char *me = is_client ? "client" : "server", *other = is_client ? "server" : "client";
    struct side s = {0};

    if (argc < 3 || (!is_client && strcmp(argv[2], "server")))
        die(1, "expected: verbs_exact DIR server | verbs_exact DIR client SECONDS [TIMEOUT "
               "[RETRIES]]");
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_side(&s);
    say(argv[1], me, &s.me);
    hear(argv[1], other, &s.peer);
    connect_side(&s, argc > 4 ? (uint8_t)atoi(argv[4]) : 14, argc > 5 ? (uint8_t)atoi(argv[5]) : 7);
    if (is_client) {
        client(&s, atof(argv[3]));
        part(argv[1]);
        return 0;
    }
    for (uint64_t i = 0; i < RECEIVES; i++)
        post_receive(&s, i);
    server(&s);
    await_part(argv[1]);
    return 0;
}

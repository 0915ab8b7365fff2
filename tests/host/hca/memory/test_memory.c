/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a program's memory can be registered, and what comes of it when it goes away later. */
#include "tests/host/hca/pair.h"

#include "host/hca/io/process_priv.h"
#include "roce/guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096u
#define PAGES 6u
#define LW    IBV_ACCESS_LOCAL_WRITE

static const struct hca_driver real = {
    .check_memory = rim_check_memory, .prefetch = rim_prefetch, .guarded = true};

static void open_real(struct pair *p)
{
    pair_open_driven(p, &real);
}

static char *map(int prot)
{
    char *m = mmap(NULL, PAGES * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(m, MAP_FAILED);
    return m;
}

/* Six pages: . mapped for nothing, r, w (both), x a hole, f of a file, e beyond its end. */
static char *lay_out(const char *pages)
{
    char *m = map(PROT_READ | PROT_WRITE);
    int fd = memfd_create("file", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)(strcspn(pages, "e") * PAGE)), 0);
    for (unsigned i = 0; i < PAGES; i++) {
        char *at = m + i * PAGE;

        m[i * PAGE] = (char)(i + 1);
        if (pages[i] == '.')
            assert_int_equal(mprotect(at, PAGE, PROT_NONE), 0);
        if (pages[i] == 'r')
            assert_int_equal(mprotect(at, PAGE, PROT_READ), 0);
        if (pages[i] == 'x')
            assert_int_equal(munmap(at, PAGE), 0);
        if (pages[i] == 'f' || pages[i] == 'e')
            assert_ptr_equal(
                mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)i * PAGE),
                at);
    }
    close(fd);
    return m;
}

static const struct layout {
    const char *pages;
    unsigned off, len, access;
    int rc;
} layouts[] = {
    {"wwwwww", 0, PAGES *PAGE, LW, 0},
    {"rrrrrr", 0, PAGES *PAGE, 0, 0},
    {"rrrrrr", 0, PAGES *PAGE, IBV_ACCESS_REMOTE_READ, 0},
    {"rrrrrr", 0, PAGES *PAGE, LW, EFAULT},
    {"rrrrrr", 100, 8, LW | IBV_ACCESS_REMOTE_WRITE, EFAULT},
    {"rrrrrr", 100, 8, IBV_ACCESS_MW_BIND, EFAULT},
    {"wwrwww", 0, PAGES *PAGE, LW, EFAULT},
    {"wwrwww", 0, PAGES *PAGE, 0, 0},
    {"wwrwww", 0, 2 * PAGE, LW, 0},
    {"wwrwww", 0, 2 * PAGE + 1, LW, EFAULT},
    {"wwrwww", 3 * PAGE - 1, 2, LW, EFAULT},
    {"wwrwww", 3 * PAGE, 3 * PAGE, LW, 0},
    {"wwxwww", 0, PAGES *PAGE, LW, EFAULT},
    {"wwxwww", 0, PAGES *PAGE, 0, EFAULT},
    {"wwxwww", 2 * PAGE, 1, 0, EFAULT},
    {"ww.www", 0, PAGES *PAGE, 0, EFAULT},
    {"......", 0, 1, 0, EFAULT},
    {"wwffww", 0, PAGES *PAGE, LW, 0},
    {"rwffrr", 0, PAGES *PAGE, 0, 0},
    {"rwffrr", PAGE, 3 * PAGE, LW, 0},
    {"wwffee", 0, 4 * PAGE, LW, 0},
    {"wwffee", 0, 5 * PAGE, LW, EFAULT},
    {"wwffew", 0, 6 * PAGE, LW, EFAULT}, /* inside, between what is there */
};

/* Every call that registers says the same, and memory is as it was. */
static void memory_that_is_not_there_or_not_for_writing_is_refused(void **state)
{
    struct pair p;

    (void)state;
    open_real(&p);
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        const struct layout *l = &layouts[i];
        char *m = lay_out(l->pages), *at = m + l->off;
        struct ibv_mr *mr[3], *other = ibv_reg_mr(p.s[0].pd, p.s[0].buf, 64, l->access);

        errno = 0;
        mr[0] = ibv_reg_mr(p.s[0].pd, at, l->len, (int)l->access);
        assert_int_equal(mr[0] ? 0 : errno, l->rc);
        mr[1] = ibv_reg_mr_iova(p.s[0].pd, at, l->len, l->off % PAGE, (int)l->access);
        assert_int_equal(mr[1] ? 0 : errno, l->rc);
        mr[2] = ibv_reg_mr_iova2(p.s[0].pd, at, l->len, l->off % PAGE,
                                 l->access | IBV_ACCESS_RELAXED_ORDERING);
        assert_int_equal(mr[2] ? 0 : errno, l->rc);
        assert_int_equal(ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at, l->len, 0),
                         l->rc ? IBV_REREG_MR_ERR_INPUT : 0);
        assert_ptr_equal(other->addr, l->rc ? (void *)p.s[0].buf : (void *)at);
        for (unsigned k = 0; k < PAGES; k++)
            if (l->pages[k] == 'w' || l->pages[k] == 'r')
                assert_int_equal(m[k * PAGE], k + 1);
        for (unsigned k = 0; k < 3; k++)
            if (mr[k])
                assert_int_equal(ibv_dereg_mr(mr[k]), 0);
        assert_int_equal(ibv_dereg_mr(other), 0);
        munmap(m, PAGES * PAGE);
    }
    pair_close(&p);
}

/* Of a region that is there already more is asked of its memory. */
static void more_rights_need_memory_for_writing(void **state)
{
    char *m = map(PROT_READ);
    struct ibv_mr *mr;
    struct pair p;

    (void)state;
    open_real(&p);
    mr = ibv_reg_mr(p.s[0].pd, m, PAGE, IBV_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    assert_int_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW | IBV_ACCESS_REMOTE_WRITE),
        IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(mprotect(m, PAGE, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW | IBV_ACCESS_REMOTE_WRITE),
        0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    munmap(m, PAGES * PAGE);
    pair_close(&p);
}

static void a_dma_buf_for_reading_is_not_written(void **state)
{
    int fd = memfd_create("dmabuf", MFD_CLOEXEC), ro;
    struct ibv_mr *mr;
    struct pair p;
    char name[40];

    (void)state;
    open_real(&p);
    assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    ro = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(ro >= 0);
    mr = ibv_reg_dmabuf_mr(p.s[0].pd, 0, 2 * PAGE, 0, ro, IBV_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW),
                     IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_null(ibv_reg_dmabuf_mr(p.s[0].pd, 0, 2 * PAGE, 0, ro, LW));
    assert_null(ibv_reg_dmabuf_mr(p.s[0].pd, PAGE, PAGE + 1, 0, fd, LW));
    assert_int_equal(errno, EINVAL); /* more than there is of it */
    assert_null(ibv_reg_dmabuf_mr(p.s[0].pd, UINT64_MAX - 1, PAGE, 0, fd, LW));
    assert_int_equal(errno, EINVAL);
    close(fd);
    close(ro);
    pair_close(&p);
}

static void a_gigabyte_is_not_touched(void **state)
{
    const size_t bytes = 1ul << 30;
    char *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    unsigned char *vec = malloc(bytes / PAGE);
    struct ibv_mr *mr;
    unsigned there = 0;
    struct pair p;

    (void)state;
    open_real(&p);
    madvise(m, bytes, MADV_NOHUGEPAGE);
    mr = ibv_reg_mr(p.s[0].pd, m, bytes, LW);
    assert_non_null(mr);
    assert_int_equal(mincore(m, bytes, vec), 0);
    for (size_t i = 0; i < bytes / PAGE; i++)
        there += vec[i] & 1;
    assert_in_range(there, 0, 4);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    free(vec);
    munmap(m, bytes);
    pair_close(&p);
}

/* ---- memory that goes away ---- */

enum way { UNMAP, PROTECT, TRUNCATE };

static const struct gone {
    const char *what;
    enum ibv_wr_opcode op;
    bool local; /* the memory of who asks; else the other's */
    bool recv;  /* of its receive */
    enum way way;
    enum ibv_wc_status asks, other; /* other: of the receive */
} gones[] = {
    {"WRITE from", IBV_WR_RDMA_WRITE, true, false, UNMAP, IBV_WC_LOC_PROT_ERR, 0},
    {"WRITE to", IBV_WR_RDMA_WRITE, false, false, UNMAP, IBV_WC_REM_ACCESS_ERR, 0},
    {"WRITE to", IBV_WR_RDMA_WRITE, false, false, PROTECT, IBV_WC_REM_ACCESS_ERR, 0},
    {"WRITE to", IBV_WR_RDMA_WRITE, false, false, TRUNCATE, IBV_WC_REM_ACCESS_ERR, 0},
    {"READ from", IBV_WR_RDMA_READ, false, false, UNMAP, IBV_WC_REM_OP_ERR, 0},
    {"READ from", IBV_WR_RDMA_READ, false, false, TRUNCATE, IBV_WC_REM_OP_ERR, 0},
    {"READ to", IBV_WR_RDMA_READ, true, false, UNMAP, IBV_WC_LOC_PROT_ERR, 0},
    {"READ to", IBV_WR_RDMA_READ, true, false, PROTECT, IBV_WC_LOC_PROT_ERR, 0},
    {"SEND from", IBV_WR_SEND, true, false, TRUNCATE, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
    {"SEND to", IBV_WR_SEND, false, true, UNMAP, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR},
    {"SEND to", IBV_WR_SEND, false, true, PROTECT, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR},
    {"FETCH_ADD of", IBV_WR_ATOMIC_FETCH_AND_ADD, false, false, UNMAP, IBV_WC_REM_ACCESS_ERR, 0},
    {"CMP_SWAP of", IBV_WR_ATOMIC_CMP_AND_SWP, false, false, PROTECT, IBV_WC_REM_ACCESS_ERR, 0},
};

static void take_away(char *m, int fd, enum way way)
{
    if (way == UNMAP)
        assert_int_equal(munmap(m + PAGE, PAGE), 0);
    else if (way == PROTECT)
        assert_int_equal(mprotect(m + PAGE, PAGE, PROT_READ), 0);
    else
        assert_int_equal(ftruncate(fd, PAGE), 0);
}

static void use_of_memory_that_is_gone_ends_with_an_error(void **state)
{
    (void)state;
    rim_fault_init();
    for (size_t i = 0; i < sizeof(gones) / sizeof(gones[0]); i++) {
        const struct gone *g = &gones[i];
        int fd = memfd_create("file", MFD_CLOEXEC);
        struct ibv_qp *a, *b;
        struct ibv_async_event ev;
        struct ibv_mr *mr;
        struct ibv_sge s, r;
        struct ibv_send_wr wr = {
            .sg_list = &s, .num_sge = 1, .opcode = g->op, .send_flags = IBV_SEND_SIGNALED};
        struct pair p;
        bool word = g->op >= IBV_WR_ATOMIC_CMP_AND_SWP;
        uint32_t len = word ? 8 : 3000;
        uint64_t at;
        char *m;

        open_real(&p);
        rc_pair(&p, &a, &b);
        assert_int_equal(ftruncate(fd, 3 * PAGE), 0);
        m = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        mr = ibv_reg_mr(p.s[!g->local].pd, m, 3 * PAGE,
                        LW | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                            IBV_ACCESS_REMOTE_ATOMIC);
        assert_non_null(mr);
        at = (uintptr_t)m + PAGE - (word ? 0 : 1000); /* it begins before what goes away */
        s = g->local ? (struct ibv_sge){at, len, mr->lkey} : sge_at(&p.s[0], 0, len);
        if (word)
            wr.wr.atomic.remote_addr = at, wr.wr.atomic.rkey = mr->rkey;
        else if (g->local)
            wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf, wr.wr.rdma.rkey = p.s[1].mr->rkey;
        else
            wr.wr.rdma.remote_addr = at, wr.wr.rdma.rkey = mr->rkey;
        r = g->recv ? (struct ibv_sge){at, len, mr->lkey} : sge_at(&p.s[1], 0, len);
        if (g->op == IBV_WR_SEND)
            assert_int_equal(post_recv(b, 1, &r, 1), 0);
        take_away(m, fd, g->way);
        assert_int_equal(post_send(a, wr), 0);
        pair_run(&p, PS_PER_S);
        assert_int_equal(one_wc(p.s[0].cq).status, g->asks);
        if (g->op == IBV_WR_SEND && g->other == IBV_WC_WR_FLUSH_ERR) {
            struct ibv_qp_attr e = {.qp_state = IBV_QPS_ERR};

            no_wc(p.s[1].cq);
            assert_int_equal(ibv_modify_qp(b, &e, IBV_QP_STATE), 0);
        }
        if (g->op == IBV_WR_SEND)
            assert_int_equal(one_wc(p.s[1].cq).status, g->other);
        while (!ibv_get_async_event(p.s[1].ctx, &ev))
            ibv_ack_async_event(&ev);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        assert_int_equal(ibv_destroy_qp(a), 0);
        assert_int_equal(ibv_destroy_qp(b), 0);
        munmap(m, 3 * PAGE);
        close(fd);
        pair_close(&p);
    }
}

/* NULL: the copy came back as one that did not succeed. */
static void *copy_from_nowhere(void *nowhere)
{
    char to[8];

    return guard_copy(to, nowhere, sizeof(to), nowhere) ? nowhere : NULL;
}

/* As programs do that have a thread of their own for signals. */
static void threads_that_block_all_signals_live_on(void **state)
{
    char *m = map(PROT_NONE);
    sigset_t all, before;
    pthread_t t;
    void *rc;

    (void)state;
    rim_fault_init();
    sigfillset(&all);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    assert_int_equal(pthread_create(&t, NULL, copy_from_nowhere, m), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_equal(pthread_join(t, &rc), 0);
    assert_null(rc);
    munmap(m, PAGES * PAGE);
}

/* ---- on-demand regions ---- */

static void write_to(struct pair *p, struct ibv_qp *a, const void *at, uint32_t rkey,
                     enum ibv_wc_status want)
{
    struct ibv_sge s = sge_at(&p->s[0], 0, 3000);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)at, rkey}};

    assert_int_equal(post_send(a, wr), 0);
    pair_run(p, PS_PER_S);
    assert_int_equal(one_wc(p->s[0].cq).status, want);
}

#define ON_DEMAND (LW | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND)

/* Memory comes after it was registered, and an error where it did not come. */
static void on_demand_regions_are_of_memory_that_may_come(void **state)
{
    static const bool implicit[] = {false, true};

    (void)state;
    rim_fault_init();
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_async_event ev;
        char *m = map(PROT_NONE);
        struct ibv_qp *a, *b;
        struct ibv_mr *mr;
        struct pair p;

        open_real(&p);
        rc_pair(&p, &a, &b);
        munmap(m + PAGE, PAGE);
        mr = implicit[i] ? ibv_reg_mr(p.s[1].pd, NULL, SIZE_MAX, ON_DEMAND)
                         : ibv_reg_mr(p.s[1].pd, m, PAGES * PAGE, ON_DEMAND);
        assert_non_null(mr);
        assert_int_equal(mprotect(m, PAGE, PROT_READ | PROT_WRITE), 0);
        fill((uint8_t *)p.s[0].buf, PAGE, 77);
        write_to(&p, a, m + 100, mr->rkey, IBV_WC_SUCCESS);
        assert_memory_equal(m + 100, p.s[0].buf, 3000);
        if (!implicit[i]) { /* it ends where it ends */
            struct ibv_sge g = {(uintptr_t)m + PAGES * PAGE - 1, 2, mr->lkey};

            assert_int_equal(ibv_advise_mr(p.s[1].pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &g, 1),
                             EFAULT);
        }
        write_to(&p, a, implicit[i] ? NULL : m + PAGE - 1000, mr->rkey, IBV_WC_REM_ACCESS_ERR);
        while (!ibv_get_async_event(p.s[1].ctx, &ev))
            ibv_ack_async_event(&ev);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        assert_int_equal(ibv_destroy_qp(a), 0);
        assert_int_equal(ibv_destroy_qp(b), 0);
        munmap(m, PAGES * PAGE);
        pair_close(&p);
    }
}

/* What no memory can be at, some of which (x86-64: not canonical) faults without an address. */
static void addresses_that_cannot_be_end_with_an_error(void **state)
{
    static const uint64_t nowhere[] = {1ul << 47, 0x1234567800000000, 0xffff800000000000,
                                       -(uint64_t)PAGE};
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                             IBV_WR_ATOMIC_FETCH_AND_ADD,
                                             IBV_WR_ATOMIC_CMP_AND_SWP};

    (void)state;
    rim_fault_init();
    for (unsigned i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]) * 2 * 4; i++) {
        enum ibv_wr_opcode op = ops[i % 4];
        bool word = op >= IBV_WR_ATOMIC_CMP_AND_SWP, all = i / 4 % 2;
        uint64_t at = nowhere[i / 8];
        struct ibv_async_event ev;
        struct ibv_send_wr wr = {.num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED};
        struct ibv_qp *a, *b;
        struct ibv_mr *mr;
        struct ibv_sge s;
        struct pair p;

        open_real(&p);
        rc_pair(&p, &a, &b);
        mr = ibv_reg_mr(p.s[1].pd, all ? NULL : (void *)(uintptr_t)at, all ? SIZE_MAX : PAGE - 1,
                        (int)(ON_DEMAND | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
        assert_non_null(mr);
        s = sge_at(&p.s[0], 0, word ? 8 : 3000);
        wr.sg_list = &s;
        if (word)
            wr.wr.atomic.remote_addr = at, wr.wr.atomic.rkey = mr->rkey;
        else
            wr.wr.rdma.remote_addr = at, wr.wr.rdma.rkey = mr->rkey;
        assert_int_equal(post_send(a, wr), 0);
        pair_run(&p, PS_PER_S);
        assert_int_equal(one_wc(p.s[0].cq).status,
                         op == IBV_WR_RDMA_READ ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR);
        while (!ibv_get_async_event(p.s[1].ctx, &ev))
            ibv_ack_async_event(&ev);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        assert_int_equal(ibv_destroy_qp(a), 0);
        assert_int_equal(ibv_destroy_qp(b), 0);
        pair_close(&p);
    }
}

static void on_demand_paging_is_told_and_prefetched(void **state)
{
    char *m = map(PROT_READ | PROT_WRITE);
    struct ibv_device_attr_ex d;
    struct ibv_mr *mr, *pinned, *ro;
    unsigned char vec[PAGES];
    struct ibv_sge g[2];
    struct pair p;

    (void)state;
    open_real(&p);
    assert_int_equal(ibv_query_device_ex(p.s[0].ctx, NULL, &d), 0);
    assert_int_equal(d.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
    assert_int_equal(d.odp_caps.per_transport_caps.rc_odp_caps, 0x3f);
    mr = ibv_reg_mr(p.s[0].pd, m, PAGES * PAGE, ON_DEMAND);
    pinned = ibv_reg_mr(p.s[0].pd, m, PAGES * PAGE, LW);
    ro = ibv_reg_mr(p.s[0].pd, m, PAGES * PAGE, IBV_ACCESS_ON_DEMAND);
    assert_true(mr && pinned && ro);
    g[0] = (struct ibv_sge){(uintptr_t)m + PAGE, 2 * PAGE, mr->lkey};
    g[1] = (struct ibv_sge){(uintptr_t)m + 4 * PAGE + 7, 1, mr->lkey};
    munmap(m + 5 * PAGE, PAGE);
#define ADVISE(advice, flags, n)                                                                   \
    ibv_advise_mr(p.s[0].pd, IBV_ADVISE_MR_ADVICE_##advice, flags, g, n)
    assert_int_equal(ADVISE(PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, 2), 0);
    assert_int_equal(mincore(m, 5 * PAGE, vec), 0);
    assert_int_equal(vec[1] & 1, 0);
    assert_int_equal(ADVISE(PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, 2), 0);
    assert_int_equal(mincore(m, 5 * PAGE, vec), 0);
    assert_int_equal((vec[1] & vec[2] & vec[4] & 1) << 1 | (vec[3] & 1), 2);
    assert_int_equal(ADVISE(PREFETCH, 1u << 5, 2), EINVAL);
    assert_int_equal(ADVISE(PREFETCH, 0, 0), EINVAL);
    g[1].addr = (uintptr_t)m + 5 * PAGE; /* of the region, and not mapped */
    assert_int_equal(ADVISE(PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, 2), EFAULT);
    assert_int_equal(ADVISE(PREFETCH, 0, 2), 0); /* nobody waits for the answer */
    g[1].lkey = pinned->lkey;
    assert_int_equal(ADVISE(PREFETCH, 0, 2), EINVAL);
    g[1].lkey = ro->lkey;
    assert_int_equal(ADVISE(PREFETCH_WRITE, 0, 2), EPERM);
    g[1].lkey = ro->lkey + 1;
    assert_int_equal(ADVISE(PREFETCH, 0, 2), EINVAL);
    assert_int_equal(ibv_advise_mr(p.s[0].pd, (enum ibv_advise_mr_advice)9, 0, g, 1), EOPNOTSUPP);
#undef ADVISE
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dereg_mr(pinned), 0);
    assert_int_equal(ibv_dereg_mr(ro), 0);
    /* all of memory is only for the taking on demand */
    assert_null(ibv_reg_mr(p.s[0].pd, NULL, SIZE_MAX, LW));
    assert_int_equal(errno, EINVAL);
    munmap(m, PAGES * PAGE);
    pair_close(&p);
}

/* ---- faults that are the program's own ---- */

static void leaves(int sig)
{
    (void)sig;
    _exit(42);
}

static void leaves_with_address(int sig, siginfo_t *si, void *context)
{
    (void)context;
    _exit(sig == SIGSEGV && si->si_addr == (void *)8 ? 43 : 1);
}

enum handler { DEFAULT, PLAIN, WITH_ADDRESS, IGNORED };

/* In a child: a fault of its own, or (sent) the signal by somebody else. How it ended. */
static int ends(enum handler h, bool sent)
{
    struct sigaction sa = {.sa_handler = SIG_DFL};
    volatile char *volatile nowhere = (volatile char *)8;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (h == PLAIN)
            sa.sa_handler = leaves;
        else if (h == IGNORED)
            sa.sa_handler = SIG_IGN;
        else if (h == WITH_ADDRESS)
            sa.sa_sigaction = leaves_with_address, sa.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &sa, NULL);
        rim_fault_init();
        if (sent)
            raise(SIGSEGV);
        else
            *nowhere = 1;
        _exit(7);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void faults_of_the_program_are_its_own(void **state)
{
    (void)state;
    assert_true(WIFSIGNALED(ends(DEFAULT, false)) && WTERMSIG(ends(DEFAULT, false)) == SIGSEGV);
    assert_true(WIFSIGNALED(ends(DEFAULT, true)) && WTERMSIG(ends(DEFAULT, true)) == SIGSEGV);
    assert_int_equal(WEXITSTATUS(ends(PLAIN, false)), 42);
    assert_int_equal(WEXITSTATUS(ends(PLAIN, true)), 42);
    assert_int_equal(WEXITSTATUS(ends(WITH_ADDRESS, false)), 43);
    assert_true(WIFSIGNALED(ends(IGNORED, false)));
    assert_int_equal(WEXITSTATUS(ends(IGNORED, true)), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_is_not_there_or_not_for_writing_is_refused),
        cmocka_unit_test(more_rights_need_memory_for_writing),
        cmocka_unit_test(a_dma_buf_for_reading_is_not_written),
        cmocka_unit_test(a_gigabyte_is_not_touched),
        cmocka_unit_test(faults_of_the_program_are_its_own),
        cmocka_unit_test(on_demand_regions_are_of_memory_that_may_come),
        cmocka_unit_test(addresses_that_cannot_be_end_with_an_error),
        cmocka_unit_test(on_demand_paging_is_told_and_prefetched),
        cmocka_unit_test(use_of_memory_that_is_gone_ends_with_an_error),
        cmocka_unit_test(threads_that_block_all_signals_live_on),
    };

    return cmocka_run_group_tests_name("hca/memory", tests, NULL, NULL);
}

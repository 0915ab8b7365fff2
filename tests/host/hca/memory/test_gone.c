/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory that goes away ends requests with an error; other faults are the program's. */
#include "tests/host/hca/memory/pages.h"

#include "roce/guard.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- memory that goes away ---- */

enum way { UNMAP, PROTECT, TRUNCATE };

static const struct gone {
    const char *what;
    enum ibv_wr_opcode op;
    bool local; /* the requester's memory; else the responder's */
    bool recv;  /* of the responder's receive */
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
    process_fault_init();
    for (size_t i = 0; i < sizeof(gones) / sizeof(gones[0]); i++) {
        const struct gone *g = &gones[i];
        int fd = memfd_create("file", MFD_CLOEXEC);
        struct ibv_qp *a, *b;
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
        drop_async_events(&p.s[1]);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        assert_int_equal(ibv_destroy_qp(a), 0);
        assert_int_equal(ibv_destroy_qp(b), 0);
        munmap(m, 3 * PAGE);
        close(fd);
        pair_close(&p);
    }
}

/* Returns NULL if the copy failed instead of faulting. */
static void *copy_from_nowhere(void *nowhere)
{
    char to[8];

    return guard_copy(to, nowhere, sizeof(to), nowhere) ? nowhere : NULL;
}

/* Programs with a thread of their own for signals block all signals elsewhere. */
static void threads_that_block_all_signals_live_on(void **state)
{
    char *m = map_pages(PROT_NONE);
    sigset_t all, before;
    pthread_t t;
    void *rc;

    (void)state;
    process_fault_init();
    sigfillset(&all);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    assert_int_equal(pthread_create(&t, NULL, copy_from_nowhere, m), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_equal(pthread_join(t, &rc), 0);
    assert_null(rc);
    munmap(m, PAGES * PAGE);
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

/* A child with this handler faults, or (sent) receives the signal. Returns its wait status. */
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
        process_fault_init();
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
        cmocka_unit_test(faults_of_the_program_are_its_own),
        cmocka_unit_test(use_of_memory_that_is_gone_ends_with_an_error),
        cmocka_unit_test(threads_that_block_all_signals_live_on),
    };

    return cmocka_run_group_tests_name("hca/gone", tests, NULL, NULL);
}

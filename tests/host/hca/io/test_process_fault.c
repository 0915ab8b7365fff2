/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults: which region one is said to be of, and how a program's own handler is called. */
#include "tests/host/hca/memory/pages.h"
#include "tests/support/captured.h"

#include "roce/guard.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- reports ---- */

/* What is said after a copy from there has failed. */
static const char *said_of(struct hca *h, const char *at)
{
    static struct captured c;
    char to;

    assert_false(guard_copy(&to, at, 1, at));
    captured_begin(&c, stderr);
    process_fault_report(h);
    return captured_end(&c);
}

static const char *names(const char *at, const char *why, const struct ibv_mr *mr)
{
    static char text[512];

    snprintf(
        text, sizeof(text),
        "tributary: trib0: memory at %p is gone (%s), expected what was registered to be there "
        "until ibv_dereg_mr: region of %zu bytes at %p, lkey and rkey 0x%x; the request ends "
        "with an error\n",
        (const void *)at, why, mr->length, mr->addr, mr->lkey);
    return text;
}

static const char unmapped[] = "SIGSEGV: unmapped or protected?",
                  truncated[] = "SIGBUS: its file was truncated?";

/* Of regions that hold an address the smallest is meant. */
static void a_fault_is_said_of_the_smallest_region(void **state)
{
    char *m = map_pages(PROT_READ | PROT_WRITE);
    struct ibv_mr *before, *small, *after;
    struct captured c;
    struct pair p;
    struct hca *h;

    (void)state;
    process_fault_init();
    open_real(&p);
    h = p.s[0].h;
    before = ibv_reg_mr(p.s[0].pd, m, 4 * PAGE, LW);
    small = ibv_reg_mr(p.s[0].pd, m + PAGE, PAGE, LW);
    after = ibv_reg_mr(p.s[0].pd, m, 5 * PAGE, LW);
    assert_true(before && small && after);
    assert_int_equal(munmap(m, 6 * PAGE), 0);
    assert_string_equal(said_of(h, m + PAGE), names(m + PAGE, unmapped, small));
    assert_string_equal(said_of(h, m + 2 * PAGE - 1), names(m + 2 * PAGE - 1, unmapped, small));
    assert_string_equal(said_of(h, m + 2 * PAGE), names(m + 2 * PAGE, unmapped, before));
    assert_string_equal(said_of(h, m), names(m, unmapped, before));
    assert_string_equal(said_of(h, m + 4 * PAGE), names(m + 4 * PAGE, unmapped, after));
    assert_string_equal(said_of(h, m + 5 * PAGE), ""); /* of none */
    assert_int_equal(ibv_dereg_mr(small), 0);
    assert_string_equal(said_of(h, m + PAGE), names(m + PAGE, unmapped, before));
    captured_begin(&c, stderr);
    process_fault_report(h); /* once */
    assert_string_equal(captured_end(&c), "");
    assert_int_equal(ibv_dereg_mr(before) + ibv_dereg_mr(after), 0);
    pair_close(&p);
}

static void a_file_that_was_truncated_is_said(void **state)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    struct ibv_mr *mr;
    struct pair p;
    char *m;

    (void)state;
    process_fault_init();
    open_real(&p);
    assert_int_equal(ftruncate(fd, PAGE), 0);
    m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    mr = ibv_reg_mr(p.s[0].pd, m, PAGE, LW);
    assert_non_null(mr);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_string_equal(said_of(p.s[0].h, m), names(m, truncated, mr));
    assert_int_equal(ibv_dereg_mr(mr), 0);
    munmap(m, PAGE);
    close(fd);
    pair_close(&p);
}

/* No processor's, and so reported without an address. */
static void a_fault_without_an_address_ends_the_copy(void **state)
{
    const char *volatile at = (const char *)(uintptr_t)0x8000000000000000;
    char to;

    (void)state;
    process_fault_init();
    assert_false(guard_copy(&to, (const char *)at, 1, (const char *)at));
}

/* ---- the program's own handlers ---- */

static volatile sig_atomic_t calls, got, masked, with_info;

static void note(int sig)
{
    sigset_t now;

    pthread_sigmask(SIG_SETMASK, NULL, &now);
    calls++;
    got = sig;
    masked =
        sigismember(&now, sig) | sigismember(&now, SIGUSR1) << 1 | sigismember(&now, SIGUSR2) << 2;
}

static void note_with_info(int sig, siginfo_t *si, void *context)
{
    note(sig);
    with_info = si && si->si_signo == sig && context;
}

static void install(int sig, int flags)
{
    struct sigaction sa = {.sa_flags = flags};

    if (flags & SA_SIGINFO)
        sa.sa_sigaction = note_with_info;
    else
        sa.sa_handler = note;
    sigemptyset(&sa.sa_mask);
    sigaddset(&sa.sa_mask, SIGUSR1);
    sigaction(sig, &sa, NULL);
}

/* In a child; 0: all is as it should be, else what is not. */
static int call_of(int sig, int flags)
{
    struct sigaction now;
    sigset_t after;

    install(sig, flags);
    install(sig == SIGSEGV ? SIGBUS : SIGSEGV, SA_NODEFER); /* which is not meant */
    process_fault_init();
    sigaction(sig, NULL, &now);
    if (now.sa_flags & ~(SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART | 0x04000000) ||
        (now.sa_flags & SA_RESTART) != (flags & SA_RESTART) || !(now.sa_flags & SA_NODEFER) ||
        !(now.sa_flags & SA_ONSTACK) || sigismember(&now.sa_mask, SIGUSR1))
        return 1;
    raise(sig);
    if (calls != 1 || got != sig || with_info != !!(flags & SA_SIGINFO))
        return 2;
    if (masked != (flags & SA_NODEFER ? 2 : 3)) /* SIGUSR1, and itself unless that is not wanted */
        return 3;
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    if (sigismember(&after, sig) || sigismember(&after, SIGUSR1))
        return 4;
    raise(sig); /* ends it where the handler was for once */
    return calls == 2 ? 0 : 5;
}

static int status_of(int sig, int flags)
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(call_of(sig, flags));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void handlers_are_called_as_they_were_installed(void **state)
{
    static const int sigs[] = {SIGSEGV, SIGBUS};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(status_of(sigs[i], 0), 0);
        assert_int_equal(status_of(sigs[i], SA_NODEFER), 0);
        assert_int_equal(status_of(sigs[i], SA_SIGINFO), 0);
        assert_int_equal(status_of(sigs[i], SA_RESTART), 0);
        assert_int_equal(WTERMSIG(status_of(sigs[i], SA_RESETHAND)), sigs[i]);
        assert_int_equal(WTERMSIG(status_of(sigs[i], SA_RESETHAND | SA_SIGINFO)), sigs[i]);
    }
}

/* A signal that another process sends is ignored where the program ignores it, though faults end it. */
static int ignores(int sig)
{
    signal(sig, SIG_IGN);
    process_fault_init();
    kill(getpid(), sig);
    raise(sig);
    return 6;
}

static int has_none(int sig)
{
    signal(sig, SIG_DFL);
    process_fault_init();
    kill(getpid(), sig);
    return 7;
}

static int end_of(int (*f)(int), int sig)
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(f(sig));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void signals_that_are_sent_do_what_they_did(void **state)
{
    (void)state;
    assert_int_equal(end_of(ignores, SIGSEGV), 6 << 8);
    assert_int_equal(end_of(ignores, SIGBUS), 6 << 8);
    assert_int_equal(WTERMSIG(end_of(has_none, SIGSEGV)), SIGSEGV);
    assert_int_equal(WTERMSIG(end_of(has_none, SIGBUS)), SIGBUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_are_called_as_they_were_installed),
        cmocka_unit_test(signals_that_are_sent_do_what_they_did),
        cmocka_unit_test(a_fault_is_said_of_the_smallest_region),
        cmocka_unit_test(a_file_that_was_truncated_is_said),
        cmocka_unit_test(a_fault_without_an_address_ends_the_copy),
    };

    return cmocka_run_group_tests_name("hca/io/process_fault", tests, NULL, NULL);
}

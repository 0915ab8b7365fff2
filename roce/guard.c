/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/guard.h"

#include "base/assert.h"

#include <setjmp.h>
#include <signal.h>

/* Where to continue after a fault, and which memory is guarded. */
struct guard {
    uintptr_t from, to;
    sigjmp_buf back;
};

/* The copy in progress in this thread, or NULL. The TLS model suits a preloaded library. */
static _Thread_local struct guard *volatile current __attribute__((tls_model("initial-exec")));

/* Unblocks the signals of faults: a fault whose signal is blocked kills the process, and programs
 * may block all signals in threads that call us. Once per thread, because the system call takes
 * longer than most copies. */
static _Thread_local bool may_fault __attribute__((tls_model("initial-exec")));

static void unblock_faults(void)
{
    sigset_t s;

    sigemptyset(&s);
    sigaddset(&s, SIGSEGV);
    sigaddset(&s, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &s, NULL);
    may_fault = true;
}

/* The jump does not restore the signal mask: handlers are installed with SA_NODEFER. */
#define GUARDED(p, n, work)                                                                        \
    struct guard g = {.from = (uintptr_t)(p), .to = (uintptr_t)(p) + (n)};                         \
                                                                                                   \
    T_ASSERT_HOT(!current, "a guarded copy begins within another one");                            \
    if (!may_fault)                                                                                \
        unblock_faults();                                                                          \
    if (sigsetjmp(g.back, 0)) {                                                                    \
        current = NULL;                                                                            \
        return false;                                                                              \
    }                                                                                              \
    current = &g;                                                                                  \
    __asm__ volatile("" ::: "memory");                                                             \
    work;                                                                                          \
    __asm__ volatile("" ::: "memory");                                                             \
    current = NULL;                                                                                \
    return true

bool guard_copy(void *dst, const void *src, size_t n, const void *user)
{
    GUARDED(user, n, memcpy(dst, src, n));
}

bool guard_crc_copy(uint32_t *crc, void *dst, const void *src, size_t n)
{
    GUARDED(src, n, *crc = roce_crc_copy(*crc, dst, src, n));
}

bool guard_fetch_add(uint64_t *p, uint64_t add, uint64_t *orig)
{
    GUARDED(p, sizeof(*p), *orig = __atomic_fetch_add(p, add, __ATOMIC_SEQ_CST));
}

bool guard_cmp_swap(uint64_t *p, uint64_t compare, uint64_t swap, uint64_t *orig)
{
    *orig = compare;
    GUARDED(p, sizeof(*p),
            __atomic_compare_exchange_n(p, orig, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

bool guard_store(uint64_t *p, uint64_t v)
{
    GUARDED(p, sizeof(*p), __atomic_store_n(p, v, __ATOMIC_SEQ_CST));
}

/* The bits of an address that the kernel reports: Arm ignores the others (TBI). */
#ifdef __aarch64__
#define REPORTED (UINTPTR_MAX >> 8)
#else
#define REPORTED UINTPTR_MAX
#endif

/* The reported address may be the first of its page. */
void guard_take(const void *at)
{
    const uintptr_t page = 4096;
    struct guard *g = current;
    uintptr_t first = g ? g->from & ~(page - 1) : 0;

    if (g && (((uintptr_t)at - first) & REPORTED) < g->to - first)
        siglongjmp(g->back, 1);
}

const void *guard_fault_address(void)
{
    struct guard *g = current;

    return g ? (const void *)g->from : NULL;
}

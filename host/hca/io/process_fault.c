/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory that goes away: unmapped, protected, or beyond the end of a file that was
 * truncated. Adapters pin the pages; this HCA copies as a program does, so the copy faults. Such a
 * fault ends the request with an error (roce/guard.h), and a message names the region. Every other
 * fault is the program's: it goes to the handler that was installed before, or kills the process as
 * it would have.
 *
 * A program that replaces this handler with its own receives the HCA's faults too.
 */
#include "host/hca/io/process_priv.h"

#include "roce/guard.h"

#include <signal.h>
#include <stdio.h>

static struct {
    struct sigaction before[2];
    /* Address and signal of the last fault of a copy, until it is reported. */
    _Atomic uintptr_t at;
    _Atomic int sig;
} fault;

static struct sigaction *process_fault_before(int sig)
{
    return &fault.before[sig == SIGBUS];
}

/* Handles the signal as if this handler were not installed. */
static void pass_on(int sig, siginfo_t *si, void *context)
{
    struct sigaction *old = process_fault_before(sig), dfl = {.sa_handler = SIG_DFL};
    bool plain = !(old->sa_flags & SA_SIGINFO), sent = si->si_code <= 0;
    sigset_t own;

    if (plain && old->sa_handler == SIG_IGN && sent)
        return;
    if (plain && (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN)) {
        sigaction(sig, &dfl, NULL);
        if (sent) /* a process sent the signal, so returning does not repeat it */
            raise(sig);
        return;
    }
    own = old->sa_mask; /* the kernel restores the mask when this handler returns */
    if (!(old->sa_flags & SA_NODEFER))
        sigaddset(&own, sig);
    pthread_sigmask(SIG_BLOCK, &own, NULL);
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(sig, si, context);
    else
        old->sa_handler(sig);
    if (old->sa_flags & (int)SA_RESETHAND)
        sigaction(sig, &dfl, NULL);
}

static void on_fault(int sig, siginfo_t *si, void *context)
{
    if (si->si_code > 0) {
        /* The kernel reports no address if the processor gave none (a non-canonical one on x86). */
        const void *at =
            si->si_code == SI_KERNEL && !si->si_addr ? guard_fault_address() : si->si_addr;

        atomic_store(&fault.sig, sig);
        atomic_store(&fault.at, (uintptr_t)at);
        guard_take(at);
        atomic_store(&fault.at, 0);
    }
    pass_on(sig, si, context);
}

void process_fault_init(void)
{
    static const int sigs[] = {SIGSEGV, SIGBUS};

    for (unsigned i = 0; i < 2; i++) {
        struct sigaction sa = {.sa_sigaction = on_fault};

        sigaction(sigs[i], NULL, process_fault_before(sigs[i]));
        sigemptyset(&sa.sa_mask); /* guard_take() leaves without restoring the mask */
        sa.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER |
                      (process_fault_before(sigs[i])->sa_flags & SA_RESTART);
        sigaction(sigs[i], &sa, NULL);
    }
}

/* Reports the smallest region that holds the address. Larger regions may overlap it, and an
 * implicit one always does. */
static void fault_report(const struct hca *h, uintptr_t at, int sig)
{
    const char *why =
        sig == SIGBUS ? "SIGBUS: its file was truncated?" : "SIGSEGV: unmapped or protected?";
    const struct hca_key *of = NULL;

    for (uint32_t i = 0; i < h->key_cap; i++) {
        const struct hca_key *k = &h->key[i];
        uintptr_t start = (uintptr_t)k->start;

        if (k->mr && at - start < k->length && (!of || k->length < of->length))
            of = k;
    }
    if (!of)
        return;
    fprintf(stderr,
            "tributary: %s: memory at 0x%jx is gone (%s), expected what was registered to be "
            "there until ibv_dereg_mr: region of %ju bytes at 0x%jx, lkey and rkey 0x%x; the "
            "request ends with an error\n",
            h->cfg.name, (uintmax_t)at, why, (uintmax_t)of->length, (uintmax_t)(uintptr_t)of->start,
            (uint32_t)(of - h->key) << 8 | of->tag);
}

/* The caller has held the lock since the copy faulted, so the region still exists. */
void process_fault_report(const struct hca *h)
{
    uintptr_t at;

    if (atomic_load_explicit(&fault.at, memory_order_relaxed) == 0)
        return;
    at = atomic_exchange(&fault.at, 0);
    if (at)
        fault_report(h, at, atomic_load(&fault.sig));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the trunk asks of the C library and of switch processes, answered for the machine of simulated.h whose code runs; what the test itself
 * asks goes to the system. */
#ifndef TRIB_TESTS_IO_TRUNK_ANSWERS_H
#define TRIB_TESTS_IO_TRUNK_ANSWERS_H

#include "simulated.h"

#include <dlfcn.h>
#include <sys/random.h>

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int64_t ns;

    if (sim.at == OUTSIDE)
        return (int)syscall(SYS_clock_gettime, id, ts);
    ns = id == CLOCK_REALTIME ? 1800000000 * S + sim.now + sim.machine[sim.at].day_ns
                              : mono_of_machine(sim.at, sim.now);
    *ts = (struct timespec){.tv_sec = ns / S, .tv_nsec = ns % S};
    return 0;
}

ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
    uint8_t *p = to;

    if (sim.at == OUTSIDE)
        return syscall(SYS_getrandom, to, bytes, flags);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)draw(256);
    return (ssize_t)bytes;
}

static void datagram_on_way(const struct datagram *d, int64_t at)
{
    event_at(at, EVENT_ARRIVAL, d->to)->d = *d;
}

/* From the socket of machine d->from, or by a stranger. */
static void datagram_go(const struct datagram *d)
{
    int64_t way = sim.net.way_ns + (int64_t)draw((uint64_t)sim.net.jitter_ns + 1);

    if (in_thousand(sim.net.held))
        way += (int64_t)draw((uint64_t)sim.net.held_ns + 1);
    datagram_on_way(d, sim.now + way);
}

ssize_t sendto(int fd, const void *m, size_t bytes, int flags, const struct sockaddr *to,
               socklen_t size)
{
    struct datagram d = {.from = (uint8_t)sim.at, .bytes = (uint16_t)bytes};
    struct sockaddr_in in;

    (void)fd, (void)flags;
    assert_true(sim.at < sim.n && bytes <= sizeof(d.m) && size == sizeof(in));
    memcpy(&in, to, sizeof(in));
    while (d.to < sim.n && sim.fab->machines[d.to].ip != ntohl(in.sin_addr.s_addr))
        d.to++;
    assert_true(d.to < sim.n && d.to != d.from);
    memcpy(d.m, m, bytes);
    sim.datagrams++;
    if (sim.now < sim.net.cut_until[d.from][d.to])
        return (ssize_t)bytes;
    sim.history[sim.n_history++ % HISTORY] = d;
    if (in_thousand(sim.net.loss))
        return (ssize_t)bytes;
    datagram_go(&d);
    if (in_thousand(sim.net.twice))
        datagram_go(&d);
    return (ssize_t)bytes;
}

int sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
    for (unsigned i = 0; i < n; i++)
        sendto(fd, m[i].msg_hdr.msg_iov->iov_base, m[i].msg_hdr.msg_iov->iov_len, flags,
               m[i].msg_hdr.msg_name, m[i].msg_hdr.msg_namelen);
    return (int)n;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    if (sim.at == OUTSIDE) {
        int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
            (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))(
                uintptr_t)dlsym(RTLD_NEXT, "pthread_create");

        return real(thread, attr, run, arg); /* DPDK's own */
    }
    assert_true(sim.n_threads < sizeof(sim.thread) / sizeof(*sim.thread));
    *thread = pthread_self();
    sim.thread[sim.n_threads].run = run;
    sim.thread[sim.n_threads++].arg = arg;
    return 0;
}

int pthread_join(pthread_t thread, void **result)
{
    (void)thread, (void)result;
    return 0; /* it has run, or the program ends */
}

int pthread_detach(pthread_t thread)
{
    (void)thread;
    return 0;
}

#define NO_FD (1 << 20)
int telemetry_client_open(const char *dir, const char *proc, unsigned seconds)
{
    (void)dir, (void)proc, (void)seconds;
    return NO_FD;
}

/* What a switch process is asked: that a link has another seed, which is the number of an order. */
struct json_t *telemetry_client_ask(int fd, const char *cmd, const char *params)
{
    unsigned order = 0;

    assert_int_equal(fd, NO_FD);
    assert_string_equal(cmd, "/trib/link");
    assert_int_equal(sscanf(params, "s0-s1,seed=%u", &order), 1);
    assert_true(order < ORDERS);
    sim.machine[sim.at].executed[order]++;
    return NULL;
}

static uint64_t bytes_of(unsigned direction)
{
    return direction * 1000003ull + 7;
}

int link_reader_ask(int fd, const struct fabric *f, uint64_t *sent)
{
    assert_int_equal(fd, NO_FD);
    for (unsigned d = 0; d < 2u * f->n_links; d++)
        if (f->nodes[d & 1 ? f->links[d / 2].b : f->links[d / 2].a].machine == sim.at)
            sent[d] = bytes_of(d);
    return 0;
}

int usleep(useconds_t us)
{
    if (sim.at == OUTSIDE)
        return (int)syscall(SYS_nanosleep, &(struct timespec){us / 1000000, us % 1000000 * 1000},
                            NULL);
    run_until(sim.now + (int64_t)us * US);
    return 0;
}

#endif

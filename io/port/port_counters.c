/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/port/port_counters.h"

#include "base/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct port_totals {
    _Atomic uint32_t users;
    _Atomic int64_t written_ns; /* of the files; the process that sets it writes them */
    _Atomic uint64_t sum[PORT_COUNTERS], written[PORT_COUNTERS];
};

/* One of struct roce_counters, in these units. */
static const struct row {
    const char *file;
    size_t at;
    unsigned unit;
} rows[] = {
#define ROW(file, counter, unit)                                                                   \
    {                                                                                              \
        file, offsetof(struct roce_counters, counter), unit                                        \
    }
    ROW("counters/port_xmit_data", tx_bytes, 4), /* words of 4 bytes */
    ROW("counters/port_rcv_data", rx_bytes, 4),
    ROW("counters/port_xmit_packets", tx_packets, 1),
    ROW("counters/port_rcv_packets", rx_packets, 1),
    ROW("hw_counters/sent_pkts", tx_packets, 1),
    ROW("hw_counters/rcvd_pkts", rx_packets, 1),
    ROW("hw_counters/duplicate_request", duplicates, 1),
    ROW("hw_counters/out_of_sequence", seq_naks_sent, 1),
    ROW("hw_counters/packet_seq_err", seq_naks_received, 1),
    ROW("hw_counters/local_ack_timeout_err", timeouts, 1),
    ROW("hw_counters/out_of_buffer", rnr_naks_sent, 1),
    ROW("hw_counters/rnr_nak_retry_err", rnr_naks_received, 1),
    ROW("hw_counters/rx_icrc_encapsulated", icrc_errors, 1),
    ROW("hw_counters/np_ecn_marked_roce_packets", ce_marks, 1),
    ROW("hw_counters/np_cnp_sent", cnps_sent, 1),
    ROW("hw_counters/rp_cnp_handled", cnps_received, 1),
#undef ROW
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))
_Static_assert(N_ROWS <= PORT_COUNTERS, "all of them have a place");

/* Numbers only grow, so no text is shorter than the one before it. */
static int write_number(const char *dir, const char *file, uint64_t v, bool fresh)
{
    char path[512], text[32];
    int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", v), fd, rc;

    snprintf(path, sizeof(path), "%s/%s", dir, file);
    fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (fresh ? O_CREAT | O_EXCL : 0),
              0644);
    if (fd < 0)
        return errno == EEXIST ? 0 : -errno;
    rc = pwrite(fd, text, (size_t)n, 0) == n ? 0 : -EIO;
    close(fd);
    return rc;
}

void port_counters_dir(char *buf, size_t size, const struct rundir *rd, const char *host,
                       unsigned port)
{
    int n = snprintf(buf, size, "port/%.64s/%u.counters", host, port);

    /* No user of a service's host can write into another one's files. */
    if (n > 0 && (size_t)n < size && own_dir_is_service(rd->path))
        snprintf(buf + n, size - (size_t)n, ".%u", (unsigned)geteuid());
}

static int dir_of(char *buf, size_t size, const struct rundir *rd, const char *host, unsigned port)
{
    char name[128];

    port_counters_dir(name, sizeof(name), rd, host, port);
    return rundir_path(rd, buf, size, "%s", name);
}

int port_counters_make(const struct rundir *rd, const char *host, unsigned port)
{
    static const char *const subs[] = {"counters", "hw_counters"};
    char dir[256], path[300];
    int rc = dir_of(dir, sizeof(dir), rd, host, port), fd;

    port_counters_dir(path, sizeof(path), rd, host, port);
    rc = rc ? rc : rundir_port_dir(rd, host);
    rc = rc ? rc : rundir_own_dir(rd, path);
    for (unsigned i = 0; i < 2 && !rc; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, subs[i]);
        rc = mkdir(path, 0755) && errno != EEXIST ? -errno : 0;
    }
    for (unsigned i = 0; i < N_ROWS && !rc; i++)
        rc = write_number(dir, rows[i].file, 0, true);
    /* In the kernel's format: lifespan of values in milliseconds. */
    rc = rc ? rc : write_number(dir, "hw_counters/lifespan", PORT_COUNTERS_MAX_NS / 1000000, true);
    if (rc)
        return rc;
    port_counters_dir(path, sizeof(path), rd, host, port);
    fd = rundir_file(rd, O_RDWR | O_CREAT, "%s/totals", path);
    if (fd < 0)
        return fd;
    rc = -posix_fallocate(fd, 0, sizeof(struct port_totals));
    close(fd);
    return rc;
}

int port_counters_open(struct port_counters *pc, const struct rundir *rd, const char *host,
                       unsigned port)
{
    int rc = port_counters_make(rd, host, port), fd;
    char name[128];
    void *at;

    *pc = (struct port_counters){.sum = NULL};
    rc = rc ? rc : dir_of(pc->dir, sizeof(pc->dir), rd, host, port);
    if (rc)
        return rc;
    port_counters_dir(name, sizeof(name), rd, host, port);
    fd = rundir_file(rd, O_RDWR, "%s/totals", name);
    if (fd < 0)
        return fd;
    at = mmap(NULL, sizeof(*pc->sum), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    rc = at == MAP_FAILED ? -errno : 0;
    close(fd);
    if (rc)
        return rc;
    pc->sum = at;
    atomic_fetch_add(&pc->sum->users, 1);
    return 0;
}

void port_counters_leave(struct port_counters *pc)
{
    if (pc->sum)
        atomic_fetch_sub(&pc->sum->users, 1);
}

void port_counters_forget(struct port_counters *pc)
{
    if (pc->sum)
        munmap(pc->sum, sizeof(*pc->sum));
    pc->sum = NULL;
}

/* All processes together write as often as one would. (A killed process counts until the fabric
 * goes down: files are then older, at most PORT_COUNTERS_MAX_NS.) */
int64_t port_counters_period_ns(const struct port_counters *pc)
{
    uint32_t users = pc->sum ? atomic_load_explicit(&pc->sum->users, memory_order_relaxed) : 1;
    int64_t ns = (int64_t)users * PORT_COUNTERS_MIN_NS / 2;

    return ns < PORT_COUNTERS_MIN_NS   ? PORT_COUNTERS_MIN_NS
           : ns > PORT_COUNTERS_MAX_NS ? PORT_COUNTERS_MAX_NS
                                       : ns;
}

static bool add(struct port_counters *pc, const struct roce_counters *c)
{
    bool any = false;

    for (unsigned i = 0; i < N_ROWS; i++) {
        uint64_t v =
            __atomic_load_n((const uint64_t *)((const char *)c + rows[i].at), __ATOMIC_RELAXED);

        if (v == pc->added[i])
            continue;
        atomic_fetch_add(&pc->sum->sum[i], v - pc->added[i]);
        pc->added[i] = v;
        any = true;
    }
    return any;
}

static bool is_written(const struct port_totals *s)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (atomic_load(&s->sum[i]) != atomic_load(&s->written[i]))
            return false;
    return true;
}

bool port_counters_add(struct port_counters *pc, const struct roce_counters *c, int64_t now_ns,
                       bool last)
{
    struct port_totals *s = pc->sum;
    int64_t then;
    bool any;

    if (!s)
        return false;
    any = add(pc, c);
    if (is_written(s))
        return any;
    then = atomic_load(&s->written_ns);
    if (!last && (now_ns - then < PORT_COUNTERS_MIN_NS ||
                  !atomic_compare_exchange_strong(&s->written_ns, &then, now_ns)))
        return true;
    for (unsigned i = 0; i < N_ROWS; i++) {
        uint64_t v = atomic_load(&s->sum[i]);

        if (v == atomic_load(&s->written[i]))
            continue;
        atomic_store(&s->written[i], v);
        write_number(pc->dir, rows[i].file, v / rows[i].unit, false);
    }
    return true;
}

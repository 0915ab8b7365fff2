/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/port_counters.h"

#include "system/own_clear.h"
#include "system/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The file `totals`, shared by all processes of the host. Each may write to it, truncate it or keep its
 * lock. So it is never mapped, its values are used for the counters alone, and nobody waits for its lock
 * longer than WAIT_MS. */
struct port_totals {
    uint32_t users, unused;
    int64_t written_ns; /* when the files were last written */
    uint64_t sum[PORT_COUNTERS], written[PORT_COUNTERS];
};
#define WAIT_MS 100

/* A file, the counter in struct roce_counters that it shows, and the file's unit. */
static const struct counter_row {
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

/* Writes to an existing file. A shorter text than before (totals was tampered with) truncates the file. */
static void write_number(int dir, const char *file, uint64_t v)
{
    int fd = own_file_open(dir, file, O_WRONLY), n;
    struct stat st;
    char text[32];

    if (fd < 0)
        return;
    n = snprintf(text, sizeof(text), "%" PRIu64 "\n", v);
    if (pwrite(fd, text, (size_t)n, 0) == n && !fstat(fd, &st) && st.st_size > n &&
        ftruncate(fd, n))
        (void)own_unlink(dir, file); /* it still has digits of both numbers */
    close(fd);
}

/* Creates a file with the value; leaves an existing one as it is. */
static int make_number(int dir, const char *file, uint64_t v)
{
    const char *name = strchr(file, '/') + 1;
    char sub[32], text[32];
    int at, fd, n, rc = 0;

    snprintf(sub, sizeof(sub), "%.*s", (int)(name - 1 - file), file);
    at = own_subdir_open(dir, sub);
    fd = at < 0 ? -1 : openat(at, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        rc = at < 0 ? at : errno == EEXIST ? 0 : -errno;
    n = snprintf(text, sizeof(text), "%" PRIu64 "\n", v);
    if (fd >= 0 && write(fd, text, (size_t)n) != n)
        rc = -EIO;
    if (fd >= 0)
        close(fd);
    if (at >= 0)
        close(at);
    return rc;
}

void port_counters_dir(char *buf, size_t size, const struct rundir *rd, const char *host,
                       unsigned port)
{
    int n = snprintf(buf, size, "port/%.64s/%u.counters", host, port);

    /* Each user of a service's host has files of its own, which no other user can write. */
    if (n > 0 && (size_t)n < size && own_dir_is_service(rd->path))
        snprintf(buf + n, size - (size_t)n, ".%u", (unsigned)geteuid());
}

int port_counters_make(const struct rundir *rd, const char *host, unsigned port)
{
    static const char *const subs[] = {"", "/counters", "/hw_counters"};
    char name[128], sub[160];
    int rc = rundir_port_dir(rd, host), dir;

    port_counters_dir(name, sizeof(name), rd, host, port);
    for (unsigned i = 0; i < 3 && !rc; i++) {
        snprintf(sub, sizeof(sub), "%s%s", name, subs[i]);
        rc = rundir_own_dir(rd, sub);
    }
    dir = rc ? rc : rundir_dir(rd, name);
    if (dir < 0)
        return dir;
    for (unsigned i = 0; i < N_ROWS && !rc; i++)
        rc = make_number(dir, rows[i].file, 0);
    /* As in the kernel: lifespan of values in milliseconds. */
    rc = rc ? rc : make_number(dir, "hw_counters/lifespan", PORT_COUNTERS_MAX_NS / 1000000);
    close(dir);
    return rc;
}

/* ---- what processes share ---- */

static bool lock(int fd, bool wait)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    unsigned n = wait ? WAIT_MS : 0;

    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (!n--)
            return false;
        nanosleep(&ms, NULL);
    }
    return true;
}

/* Opens the directory, locks its totals, and reads them; missing bytes of a truncated file read as zero.
 * A descriptor of the totals, or -errno; -EWOULDBLOCK: another process holds the lock. */
static int totals_open(struct port_counters *pc, int *dir, bool wait, struct port_totals *t)
{
    struct rundir rd = {.sh = NULL};
    int fd, rc = 0;
    ssize_t n;

    snprintf(rd.path, sizeof(rd.path), "%s", pc->run);
    *dir = rundir_dir(&rd, pc->dir);
    fd = *dir < 0 ? *dir : own_file_open(*dir, "totals", O_RDWR | O_CREAT);
    if (fd >= 0 && !lock(fd, wait))
        rc = -EWOULDBLOCK;
    if (fd < 0 || rc) {
        if (fd >= 0)
            close(fd);
        if (*dir >= 0)
            close(*dir);
        return fd < 0 ? fd : rc;
    }
    n = pread(fd, t, sizeof(*t), 0);
    n = n < 0 ? 0 : n;
    memset((char *)t + n, 0, sizeof(*t) - (size_t)n);
    return fd;
}

/* Writes the totals and releases their lock. */
static void totals_close(struct port_counters *pc, int dir, int fd, const struct port_totals *t)
{
    pc->users = t->users;
    if (pwrite(fd, t, sizeof(*t), 0) != sizeof(*t))
        pc->unwritten = true; /* a full disk: tries again next time */
    close(fd);
    close(dir);
}

int port_counters_open(struct port_counters *pc, const struct rundir *rd, const char *host,
                       unsigned port)
{
    int rc = port_counters_make(rd, host, port), dir, fd;
    struct port_totals t;

    *pc = (struct port_counters){.users = 1};
    if (rc)
        return rc;
    snprintf(pc->run, sizeof(pc->run), "%s", rd->path);
    port_counters_dir(pc->dir, sizeof(pc->dir), rd, host, port);
    fd = totals_open(pc, &dir, true, &t);
    if (fd < 0 && fd != -EWOULDBLOCK)
        return fd;
    pc->open = true;
    if (fd < 0)
        return 0;
    t.users++;
    totals_close(pc, dir, fd, &t);
    return 0;
}

void port_counters_leave(struct port_counters *pc)
{
    struct port_totals t;
    int dir, fd = pc->open ? totals_open(pc, &dir, true, &t) : -1;

    if (fd < 0)
        return;
    t.users -= t.users > 0;
    totals_close(pc, dir, fd, &t);
}

void port_counters_forget(struct port_counters *pc)
{
    pc->open = false;
}

/* Interval of writes, so that all processes together write as often as one would. (A killed process
 * counts until the fabric goes down: files may then be older, at most PORT_COUNTERS_MAX_NS.) */
int64_t port_counters_period_ns(const struct port_counters *pc)
{
    int64_t ns = (int64_t)pc->users * PORT_COUNTERS_MIN_NS / 2;

    return ns < PORT_COUNTERS_MIN_NS   ? PORT_COUNTERS_MIN_NS
           : ns > PORT_COUNTERS_MAX_NS ? PORT_COUNTERS_MAX_NS
                                       : ns;
}

static uint64_t counter(const struct roce_counters *c, unsigned i)
{
    return __atomic_load_n((const uint64_t *)((const char *)c + rows[i].at), __ATOMIC_RELAXED);
}

static bool grew(const struct port_counters *pc, const struct roce_counters *c)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (counter(c, i) != pc->added[i])
            return true;
    return false;
}

/* Adds what this process has counted since its last call. */
static void roce_counters_add(struct port_counters *pc, const struct roce_counters *c,
                              struct port_totals *t)
{
    for (unsigned i = 0; i < N_ROWS; i++) {
        uint64_t v = counter(c, i);

        t->sum[i] += v - pc->added[i];
        pc->added[i] = v;
    }
}

static void write_files(int dir, struct port_totals *t)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (t->sum[i] != t->written[i]) {
            t->written[i] = t->sum[i];
            write_number(dir, rows[i].file, t->sum[i] / rows[i].unit);
        }
}

bool port_counters_add(struct port_counters *pc, const struct roce_counters *c, int64_t now_ns,
                       bool last)
{
    bool any = pc->open && grew(pc, c);
    struct port_totals t;
    int dir, fd;

    if (!any && !(pc->open && pc->unwritten))
        return false;
    fd = totals_open(pc, &dir, last, &t);
    if (fd < 0) {
        pc->unwritten = fd == -EWOULDBLOCK; /* otherwise totals is gone or was replaced */
        return true;
    }
    roce_counters_add(pc, c, &t);
    pc->unwritten = !last && now_ns >= t.written_ns && now_ns - t.written_ns < PORT_COUNTERS_MIN_NS;
    if (!pc->unwritten) {
        t.written_ns = now_ns;
        write_files(dir, &t);
    }
    totals_close(pc, dir, fd, &t);
    return true;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that a program's memory can be registered: mapped, readable, and writable where the HCA
 * writes. Adapters pin the pages, and fail with EFAULT if they cannot. This HCA pins nothing: it
 * checks the list of mappings and reads one byte of each.
 *
 * Rejected: MADV_POPULATE_WRITE, which finds out the same but allocates all pages; mincore, which
 * does not report access rights.
 */
#include "host/hca/io/process_priv.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether this process can read the address: the system call copies the signal set before it
 * rejects its first argument, so it fails with EFAULT if not. Pages mapped beyond the end of their
 * file cannot be read, nor can the memory of some devices. */
static bool address_readable(uintptr_t at)
{
    return syscall(SYS_rt_sigprocmask, ~0, at & ~(uintptr_t)7, NULL, 8) == 0 || errno != EFAULT;
}

struct mapping {
    uintptr_t from, to;
    bool r, w;
};

/* struct procmap_query of Linux 6.11, which looks up one address; installed headers may be older.
 */
struct memory_query {
    uint64_t size, flags, addr, from, to, vma_flags, page_size, offset, inode;
    uint32_t major, minor, name_bytes, id_bytes;
    uint64_t name, id;
};
#define MAPS_QUERY _IOWR('f', 17, struct memory_query)
enum { QUERY_NEXT = 0x10, QUERY_R = 1, QUERY_W = 2 };

/* The mapping at or behind `at`. 0; -ENOENT: there is none; other errors: not supported here. */
static int query_mapping(int fd, uintptr_t at, struct mapping *m)
{
    struct memory_query q = {.size = sizeof(q), .flags = QUERY_NEXT, .addr = at};

    if (ioctl(fd, MAPS_QUERY, &q))
        return -errno;
    *m = (struct mapping){q.from, q.to, q.vma_flags & QUERY_R, q.vma_flags & QUERY_W};
    return 0;
}

/* A walk over the mappings of a range, in order of address. */
struct memory_walk {
    uintptr_t at, end; /* [at, end) is still to be checked */
    bool write;
    int rc;
};

/* Checks the part of the range that m covers. Returns whether the walk goes on. */
static bool walk_over(struct memory_walk *k, const struct mapping *m)
{
    uintptr_t to = m->to < k->end ? m->to : k->end;

    if (m->to <= k->at)
        return true;
    if (m->from > k->at || !(m->r || m->w) || (k->write && !m->w) || !address_readable(to - 1))
        k->rc = -EFAULT;
    k->at = to;
    return !k->rc && k->at < k->end;
}

/* Parses each line of /proc/self/maps: from-to rights ... */
static void walk_text(struct memory_walk *k, int fd)
{
    FILE *f = fdopen(fcntl(fd, F_DUPFD_CLOEXEC, 0), "r");
    char line[4096 + 128]; /* the rest of a line is a path */
    struct mapping m = {0};
    char r, w;

    if (!f)
        return;
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %c%c", &m.from, &m.to, &r, &w) != 4)
            continue;
        m.r = r == 'r', m.w = w == 'w';
        if (!walk_over(k, &m))
            break;
    }
    fclose(f);
}

static void walk_maps(struct memory_walk *k, int fd)
{
    struct mapping m = {0};
    int rc;

    do {
        rc = query_mapping(fd, k->at, &m);
    } while (!rc && walk_over(k, &m));
    if (rc && rc != -ENOENT)
        walk_text(k, fd);
    if (!k->rc && k->at < k->end)
        k->rc = -EFAULT; /* a hole at the end */
}

/* Without /proc: checks that all of the range is mapped; access rights are unknown. */
static int walk_blind(uintptr_t at, uintptr_t end)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char vec[8192];

    for (at &= ~(page - 1); at < end;) {
        size_t n = end - at < sizeof(vec) * page ? end - at : sizeof(vec) * page;

        if (mincore((void *)at, n, vec) && errno == ENOMEM)
            return -EFAULT;
        at += n;
    }
    return 0;
}

int process_check_memory(void *ctx, const void *addr, size_t len, bool write)
{
    struct memory_walk k = {.at = (uintptr_t)addr, .end = (uintptr_t)addr + len, .write = write};
    int fd;

    (void)ctx;
    if (!address_readable(k.at) || !address_readable(k.end - 1))
        return -EFAULT;
    fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return walk_blind(k.at, k.end);
    walk_maps(&k, fd);
    close(fd);
    return k.rc;
}

/* Kernels before 5.14 cannot prefetch; pages then come on first use. */
int process_prefetch(void *ctx, void *addr, size_t len, bool write)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = (uintptr_t)addr & ~(page - 1);

    (void)ctx;
    len += (uintptr_t)addr - at;
    if (!madvise((void *)at, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
        return 0;
    return errno == EFAULT || errno == ENOMEM ? -EFAULT : 0;
}

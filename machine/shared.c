/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared pages: makes them, checks those of other processes before it maps them, and lists the ones that
 * this process has mapped.
 */
#include "machine/shared.h"

#include "system/own_path.h"
#include "machine/page_server.h"
#include "machine/silent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define ANSWER_MS  1000 /* timeout of a question to a trib-switch, which may be stopped */

/* ---- memory files ---- */

void *shared_make(const char *name, size_t size, int *fd)
{
    void *at = MAP_FAILED;
    int err;

    *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd >= 0 && !ftruncate(*fd, (off_t)size) && !fcntl(*fd, F_ADD_SEALS, SIZE_SEALS))
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (at != MAP_FAILED)
        return at;
    err = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -err;
    return NULL;
}

int shared_seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) ? -errno : 0;
}

/* Size of a memory file with these seals; -1: it lacks one, or is on huge pages, which may be missing: a
 * SIGBUS at the next access. */
static off_t size_of(int fd, int need)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct statfs fs;
    struct stat st;

    return seals >= 0 && (seals & need) == need && !fstat(fd, &st) && !fstatfs(fd, &fs) &&
                   fs.f_type == TMPFS_MAGIC
               ? st.st_size
               : -1;
}

static void *pages_map(int fd, size_t size, bool write)
{
    void *at = mmap(NULL, size, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* For a read-only mapping requires F_SEAL_FUTURE_WRITE: nobody but the writer may change the page. */
void *shared_map(int fd, size_t size, bool write)
{
    int need = SIZE_SEALS | (write ? 0 : F_SEAL_FUTURE_WRITE);

    return size_of(fd, need) == (off_t)size ? pages_map(fd, size, write) : NULL;
}

bool shared_is_safe(int fd, size_t size)
{
    off_t is = size_of(fd, F_SEAL_SHRINK);

    return is >= 0 && (uint64_t)is >= size;
}

void *shared_map_part(int fd, size_t size)
{
    return shared_is_safe(fd, size) ? pages_map(fd, size, true) : NULL;
}

/* ---- the pages of trib-switch processes ---- */

/* Connects to a socket in proc/ of a process of this user or the service. A descriptor or -errno. */
static int shared_call(const char *dir, const char *file)
{
    struct timeval tv = {.tv_sec = ANSWER_MS / 1000, .tv_usec = ANSWER_MS % 1000 * 1000};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t len = sizeof(peer);
    int fd, rc = 0;

    if (snprintf(un.sun_path, sizeof(un.sun_path), "%s/proc/%s", dir, file) >=
        (int)sizeof(un.sun_path))
        return -ENAMETOOLONG;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
    if (connect(fd, (struct sockaddr *)&un, sizeof(un)) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
        rc = -errno;
    else if (peer.uid != geteuid() && !own_dir_is_of(dir, peer.uid))
        rc = -EPERM;
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

/* Receives the one message of a page server with its descriptors. */
static int take_message(int sock, struct page_offer *offer, int fds[PAGE_FDS])
{
    union {
        char buf[CMSG_SPACE(PAGE_FDS * sizeof(int))];
        struct cmsghdr align;
    } ctl;
    struct iovec iov = {offer, sizeof(*offer)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.buf};
    struct cmsghdr *c;
    size_t n = 0;
    ssize_t len;

    mh.msg_controllen = sizeof(ctl.buf);
    len = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
    if (len < 0)
        return -errno;
    c = CMSG_FIRSTHDR(&mh);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (n)
        memcpy(fds, CMSG_DATA(c), n * sizeof(int));
    if (n == PAGE_FDS && len == sizeof(*offer) && offer->magic == SHARED_MAGIC)
        return 0;
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    return -EPROTO;
}

/* Whether this page is mapped already; if so it is no longer gone. */
static bool shared_known(struct shared *sh, uint64_t inode)
{
    unsigned n = atomic_load_explicit(&sh->n_sw, memory_order_relaxed);

    for (unsigned i = 0; i < n; i++)
        if (sh->sw[i].inode == inode) {
            atomic_store(&sh->sw[i].gone, false);
            return true;
        }
    return false;
}

/* Whether the process of that name has answered and was not forgotten since. */
static bool shared_answered(const struct shared *sh, const char *name)
{
    unsigned n = atomic_load_explicit(&sh->n_sw, memory_order_relaxed);

    for (unsigned i = 0; i < n; i++)
        if (!strcmp(sh->sw[i].name, name) && !sh->sw[i].gone)
            return true;
    return false;
}

/* Marks the mapped pages of that name: their process has ended. */
static void shared_forget_page(struct shared *sh, const char *name)
{
    unsigned n = atomic_load_explicit(&sh->n_sw, memory_order_relaxed);

    for (unsigned i = 0; i < n; i++)
        if (!strcmp(sh->sw[i].name, name) && sh->sw[i].page != sh->own)
            atomic_store(&sh->sw[i].gone, true);
}

void shared_add(struct shared *sh, const char *name, uint64_t inode, const struct switch_page *page,
                struct loop_bell *bell)
{
    unsigned n = atomic_load_explicit(&sh->n_sw, memory_order_relaxed);
    struct switch_view *v = &sh->sw[n];

    if (n == FAB_MAX_PROCS)
        return;
    *v = (struct switch_view){.page = page, .bell = bell, .inode = inode};
    snprintf(v->name, sizeof(v->name), "%s", name);
    atomic_store_explicit(&sh->n_sw, n + 1, memory_order_release);
}

static void map_offer(struct shared *sh, const char *name, const int fds[PAGE_FDS])
{
    const struct switch_page *page;
    struct loop_bell *bell;
    struct stat st;

    if (fstat(fds[PAGE_SWITCH], &st) || shared_known(sh, st.st_ino))
        return;
    page = shared_map(fds[PAGE_SWITCH], sizeof(*page), false);
    bell = shared_map(fds[PAGE_BELL], sizeof(*bell), true);
    if (!sh->clock)
        sh->clock = shared_map(fds[PAGE_CLOCK], sizeof(*sh->clock), false);
    if (page && bell && sh->clock && page->magic == SHARED_MAGIC) {
        shared_forget_page(sh, name);
        shared_add(sh, name, st.st_ino, page, bell);
        return;
    }
    if (page)
        munmap((void *)(uintptr_t)page, sizeof(*page));
    if (bell)
        munmap(bell, sizeof(*bell));
}

struct page_question {
    struct shared *sh;
    const char *dir;
    uint32_t version;      /* another version than ours that a process has; 0: none */
    int *clock_fd;         /* NULL: the caller does not want the clock's descriptor */
    char silent[FAB_NAME]; /* a process that does not answer; "": none */
};

/* Asks the process behind a socket. 0 or -errno; 0 also if the process has ended. */
static int page_question_ask(struct page_question *q, const char *file, const char *name)
{
    int sock = shared_call(q->dir, file), fds[PAGE_FDS], rc;
    struct page_offer offer;

    if (sock == -ECONNREFUSED)
        shared_forget_page(q->sh, name);
    if (sock < 0)
        return sock == -ECONNREFUSED || sock == -ENOENT ? 0 : sock;
    /* Does not wait for a stopped process, which cannot answer. */
    rc = silent_is_stopped(q->dir, name) ? -EAGAIN : take_message(sock, &offer, fds);
    close(sock);
    if (rc == -EAGAIN)
        snprintf(q->silent, sizeof(q->silent), "%s", name);
    if (rc)
        return rc;
    if (offer.version == SHARED_VERSION)
        map_offer(q->sh, name, fds);
    else
        q->version = offer.version;
    if (q->clock_fd && *q->clock_fd < 0 && q->sh->clock)
        *q->clock_fd = fcntl(fds[PAGE_CLOCK], F_DUPFD_CLOEXEC, 0);
    for (unsigned i = 0; i < PAGE_FDS; i++)
        close(fds[i]);
    return 0;
}

static int ask_all(struct page_question *q)
{
    char path[256], name[FAB_NAME];
    struct dirent *e;
    int rc = 0, one;
    DIR *d;

    snprintf(path, sizeof(path), "%s/proc", q->dir);
    d = opendir(path);
    if (!d)
        return -errno;
    while ((e = readdir(d))) {
        size_t len = strlen(e->d_name);

        if (len < 6 || strcmp(e->d_name + len - 5, ".page") != 0 || len - 5 >= sizeof(name))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)len - 5, e->d_name);
        one = shared_answered(q->sh, name) ? 0 : page_question_ask(q, e->d_name, name);
        rc = one ? one : rc;
    }
    closedir(d);
    return q->sh->clock ? 0 : rc ? rc : -ENOENT;
}

void shared_refresh(struct shared *sh, const char *dir)
{
    struct page_question q = {.sh = sh, .dir = dir};

    (void)ask_all(&q);
}

int shared_find(struct shared *sh, const char *dir, int *clock_fd)
{
    struct page_question q = {.sh = sh, .dir = dir, .clock_fd = clock_fd};
    int rc;

    *clock_fd = -1;
    rc = ask_all(&q);
    return !rc && *clock_fd < 0 ? -EMFILE : rc;
}

int shared_join(struct shared **out, const char *dir)
{
    struct shared *sh = calloc(1, sizeof(*sh));
    struct page_question q = {.sh = sh, .dir = dir};
    int rc = sh ? ask_all(&q) : -ENOMEM;
    char why[SILENT_WHY];

    *out = sh;
    if (!rc)
        return 0;
    if (q.version)
        fprintf(stderr, "tributary: %s: found version %u, expected %u\n", dir, q.version,
                SHARED_VERSION);
    else if (q.silent[0]) {
        silent_why(dir, q.silent, rc, why, sizeof(why));
        fprintf(stderr, "tributary: run directory %s: %s\n", dir, why);
    } else
        fprintf(stderr, "tributary: no fabric is up in %s: %s\n", dir, strerror(-rc));
    shared_free(sh);
    *out = NULL;
    return q.version ? -EPROTO : rc;
}

void shared_free(struct shared *sh)
{
    for (unsigned i = 0; sh && i < sh->n_sw; i++) {
        munmap((void *)(uintptr_t)sh->sw[i].page, sizeof(*sh->sw[i].page));
        munmap(sh->sw[i].bell, sizeof(*sh->sw[i].bell));
    }
    if (sh && sh->clock)
        munmap((void *)(uintptr_t)sh->clock, sizeof(*sh->clock));
    free(sh);
}

void shared_forget(struct shared *sh, const struct switch_view *v)
{
    atomic_store(&sh->sw[v - sh->sw].gone, true);
}

const struct switch_view *shared_switch_of(const struct shared *sh, uint16_t node)
{
    unsigned n = atomic_load_explicit(&sh->n_sw, memory_order_acquire);

    for (unsigned i = n; i-- > 0;)
        if (sh->sw[i].page->runs[node] && !atomic_load(&sh->sw[i].gone))
            return &sh->sw[i];
    return NULL;
}

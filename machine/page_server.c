/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process holds the lock on the run directory's file `shared` while it looks for a clock, and if there
 * is none makes and shares one: so only one process makes it.
 */
#include "machine/page_server.h"

#include "system/own_clear.h"
#include "system/own_path.h"

#include "machine/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128
#define WAIT_US 10000

struct page_server {
    pthread_t thread;
    bool runs;
    int listen_fd, fds[PAGE_FDS];
    char socket[108];
};

static void page_server_offer(const struct page_server *s, int fd)
{
    union {
        char buf[CMSG_SPACE(PAGE_FDS * sizeof(int))];
        struct cmsghdr align;
    } ctl = {0};
    struct page_offer msg = {SHARED_MAGIC, SHARED_VERSION};
    struct iovec iov = {&msg, sizeof(msg)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.buf};
    struct cmsghdr *c;

    mh.msg_controllen = sizeof(ctl.buf);
    c = CMSG_FIRSTHDR(&mh);
    c->cmsg_len = CMSG_LEN(sizeof(s->fds));
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(c), s->fds, sizeof(s->fds));
    sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void *page_server_serve(void *arg)
{
    const struct page_server *s = arg;

    pthread_setname_np(pthread_self(), "pages");
    for (;;) {
        struct ucred peer;
        socklen_t len = sizeof(peer);
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 && (errno == EINVAL || errno == EBADF))
            return NULL; /* page_server_stop() has shut the socket down */
        if (fd < 0) {
            usleep(1000); /* no descriptor is free */
            continue;
        }
        /* A service serves all users who can connect: those to whom its conf gives hosts (io/access.h). */
        if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
            (peer.uid == geteuid() || own_dir_is_service(s->socket)))
            page_server_offer(s, fd);
        close(fd);
    }
}

static int start_serving(struct page_server *s, const char *dir, const char *name)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    sigset_t all, old;
    int rc;

    if (snprintf(s->socket, sizeof(s->socket), "%s/proc/%s.page", dir, name) >=
        (int)sizeof(s->socket))
        return -ENAMETOOLONG;
    memcpy(un.sun_path, s->socket, sizeof(s->socket));
    s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    own_socket_clear(s->socket);
    if (s->listen_fd < 0 || bind(s->listen_fd, (struct sockaddr *)&un, sizeof(un)) ||
        listen(s->listen_fd, BACKLOG))
        return -errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&s->thread, NULL, page_server_serve, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    s->runs = !rc;
    return -rc;
}

void page_server_stop(struct page_server *s)
{
    if (!s)
        return;
    if (s->runs) {
        shutdown(s->listen_fd, SHUT_RD);
        pthread_join(s->thread, NULL);
        own_socket_clear(s->socket);
    }
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    for (unsigned i = 0; i < PAGE_FDS; i++)
        if (s->fds[i] >= 0)
            close(s->fds[i]);
    free(s);
}

/* ---- pages ---- */

static int make_clock(struct shared *sh, struct page_server *s, const struct page_server_cfg *cfg)
{
    int *fd = &s->fds[PAGE_CLOCK], rc;
    struct clock_page *c = shared_make("clock", sizeof(*c), fd);

    if (!c)
        return *fd;
    c->magic = SHARED_MAGIC;
    c->version = SHARED_VERSION;
    if (cfg->clock)
        clock_start_at(c, cfg->clock);
    else
        clock_set_dilation(c, cfg->dilation);
    rc = shared_seal(*fd);
    sh->clock = sh->own_clock = c;
    return rc;
}

static int make_pages(struct shared *sh, struct page_server *s, const struct page_server_cfg *cfg)
{
    struct switch_page *page = shared_make("switch", sizeof(*page), &s->fds[PAGE_SWITCH]);
    struct loop_bell *bell = shared_make("bell", sizeof(*bell), &s->fds[PAGE_BELL]);
    struct stat st;
    int rc;

    if (!page || !bell)
        return !page ? s->fds[PAGE_SWITCH] : s->fds[PAGE_BELL];
    page->magic = SHARED_MAGIC;
    page->version = SHARED_VERSION;
    page->proc = cfg->proc;
    for (uint16_t i = 0; i < cfg->fab->n_nodes; i++)
        page->runs[i] = !cfg->mine || cfg->mine[i];
    rc = shared_seal(s->fds[PAGE_SWITCH]);
    if (!rc && fstat(s->fds[PAGE_SWITCH], &st))
        rc = -errno;
    sh->own = page;
    sh->own_bell = bell;
    if (!rc)
        shared_add(sh, cfg->name, st.st_ino, page, bell);
    return rc;
}

static int start_locked(struct shared *sh, struct page_server *s, const struct page_server_cfg *cfg)
{
    int rc = shared_find(sh, cfg->dir, &s->fds[PAGE_CLOCK]);

    if (rc == -ENOENT && !cfg->joins)
        rc = make_clock(sh, s, cfg);
    rc = rc ? rc : make_pages(sh, s, cfg);
    return rc ? rc : start_serving(s, cfg->dir, cfg->name);
}

int page_server_start(struct page_server **ps, struct shared **out,
                      const struct page_server_cfg *cfg)
{
    struct page_server *s = calloc(1, sizeof(*s));
    struct shared *sh = calloc(1, sizeof(*sh));
    struct rundir rd = {.sh = NULL};
    int lock = -1, rc = -ENOMEM;

    snprintf(rd.path, sizeof(rd.path), "%s", cfg->dir);

    *ps = s;
    *out = sh;
    if (s && sh) {
        s->listen_fd = s->fds[PAGE_CLOCK] = s->fds[PAGE_SWITCH] = s->fds[PAGE_BELL] = -1;
        lock = rundir_file(&rd, O_CREAT | O_RDWR, "shared");
        rc = lock < 0 ? lock : 0;
    }
    while (!rc) {
        rc = flock(lock, LOCK_EX) ? -errno : start_locked(sh, s, cfg);
        flock(lock, LOCK_UN);
        if (rc != -ENOENT || !cfg->joins || *cfg->joins)
            break;
        usleep(WAIT_US);
        rc = 0;
    }
    if (rc)
        fprintf(stderr, "tributary: cannot share memory in %s: %s%s\n", cfg->dir, strerror(-rc),
                rc == -EINVAL ? " (expected Linux 5.1 or later)" : "");
    if (lock >= 0)
        close(lock);
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that count events and are readable while the count is not zero. They need the only
 * system calls of the objects, in virtual time too: a program that polls the descriptor of a
 * channel or context needs a real one.
 *
 * They are in the program's table, so the program may have closed one (closefrom, daemon) and
 * reused its number. So each is checked before it is written to or closed. The check takes another
 * eventfd of the program's for one of these, but no other file.
 */
#include "host/hca/hca_priv.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The inode of eventfds: the kernel has one for all of them. */
static _Atomic uint64_t eventfd_dev, eventfd_ino;

static bool is_ours(int fd)
{
    struct stat st;
    int e = errno;
    bool yes = fd >= 0 && !fstat(fd, &st) && st.st_dev == atomic_load(&eventfd_dev) &&
               st.st_ino == atomic_load(&eventfd_ino);

    errno = e;
    return yes;
}

int notify_open(void)
{
    int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return -errno;
    if (!fstat(fd, &st)) {
        atomic_store(&eventfd_dev, st.st_dev);
        atomic_store(&eventfd_ino, st.st_ino);
    }
    return fd;
}

void notify_close(int fd)
{
    if (is_ours(fd))
        close(fd);
}

void notify_post(int fd)
{
    uint64_t one = 1;
    int e = errno;

    if (!is_ours(fd))
        return;
    /* The count is full only after 2^64 - 2 posts. */
    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    errno = e;
}

int notify_wait(int fd)
{
    uint64_t v;

    if (!is_ours(fd))
        return -EBADF;
    return read(fd, &v, sizeof(v)) == (ssize_t)sizeof(v) ? 0 : -errno;
}

/* Another thread may have taken the count; it then finds the queue empty and waits again. */
void notify_cancel(int fd)
{
    uint64_t v;
    struct iovec iov = {&v, sizeof(v)};
    int e = errno;
    ssize_t n = is_ours(fd) ? preadv2(fd, &iov, 1, -1, RWF_NOWAIT) : 0;

    (void)n;
    errno = e;
}

void notify_detach(int fd)
{
    int own = is_ours(fd) ? eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC) : -1;

    if (own < 0)
        return;
    dup3(own, fd, O_CLOEXEC);
    close(own);
}

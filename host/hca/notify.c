/*
 * Descriptors that count events: readable while there is one. The only system calls behind the
 * objects; a program that polls a channel's or a context's descriptor needs a real one in virtual
 * time too.
 */
#include "host/hca/hca_priv.h"

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

int notify_open(void)
{
    int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

void notify_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

void notify_post(int fd)
{
    uint64_t one = 1;
    int e = errno;

    if (fd < 0)
        return;

    /* Full after 2^64 - 2 posts only. */
    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    errno = e;
}

int notify_wait(int fd)
{
    uint64_t v;

    return read(fd, &v, sizeof(v)) == (ssize_t)sizeof(v) ? 0 : -errno;
}

/* Another thread may take the count first; it finds the queue empty then and waits again. */
void notify_cancel(int fd)
{
    uint64_t v;
    struct iovec iov = {&v, sizeof(v)};
    int e = errno;
    ssize_t n = fd < 0 ? 0 : preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

    (void)n;
    errno = e;
}

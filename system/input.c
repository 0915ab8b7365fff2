/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_ROOM 65536

struct input {
    int fd;
    mode_t kind; /* file type: st_mode & S_IFMT */
    char *text;
    size_t n, room, most;
};

/* Opens any file. O_NONBLOCK: open() waits neither for the other end of a FIFO nor for a device. */
static int any_open(const char *path, struct stat *st)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int rc = fd < 0 || fstat(fd, st) ? -errno : 0;

    if (!rc)
        return fd;
    if (fd >= 0)
        close(fd);
    return rc;
}

int input_open(const char *path)
{
    struct stat st;
    int fd = any_open(path, &st);

    if (fd < 0 || S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
}

FILE *input_stream(const char *path)
{
    int fd = input_open(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

    if (fd < 0)
        errno = -fd;
    else if (!f)
        close(fd);
    return f;
}

/* Makes room for the next read and for the 0 at the end. */
static int input_grow(struct input *in)
{
    size_t room = in->room ? 2 * in->room : FIRST_ROOM;
    char *more;

    if (in->n + 1 < in->room)
        return 0;
    room = room < in->most + 2 ? room : in->most + 2;
    more = realloc(in->text, room);
    if (!more)
        return -ENOMEM;
    in->text = more;
    in->room = room;
    return 0;
}

/* Waits until there is something to read: INPUT_SILENT_S at most, without limit at a terminal. */
static int input_wait(const struct input *in, char *why)
{
    struct pollfd p = {.fd = in->fd, .events = POLLIN};
    int limit = S_ISCHR(in->kind) && isatty(in->fd) ? -1 : INPUT_SILENT_S * 1000;

    if (poll(&p, 1, limit) != 0)
        return 0;
    snprintf(why, INPUT_WHY, "nothing within %d s from who writes to it", INPUT_SILENT_S);
    return -ETIMEDOUT;
}

static int input_read(struct input *in, char *why)
{
    for (int rc = 0; !rc;) {
        ssize_t k;

        rc = input_grow(in);
        k = rc ? 0 : read(in->fd, in->text + in->n, in->room - in->n - 1);
        if (rc)
            break;
        if (k > 0)
            in->n += (size_t)k;
        else if (!k)
            return 0;
        else if (errno == EAGAIN)
            rc = input_wait(in, why);
        else if (errno != EINTR)
            return -errno;
        if (rc)
            return rc;
        if (in->n > in->most)
            return -EFBIG;
    }
    return -ENOMEM;
}

static char *input_all(const char *path, bool plain, size_t most, size_t *len, char *why)
{
    struct stat st = {0};
    struct input in = {.fd = any_open(path, &st), .most = most};
    int rc = in.fd < 0 ? in.fd : 0;

    *why = 0;
    in.kind = st.st_mode & S_IFMT;
    if (!rc && plain && !S_ISREG(in.kind)) {
        snprintf(why, INPUT_WHY, "no plain file");
        rc = -EINVAL;
    }
    if (!rc)
        rc = input_read(&in, why);
    if (!rc && !in.n && S_ISFIFO(in.kind)) {
        snprintf(why, INPUT_WHY, "a FIFO to which nobody writes");
        rc = -EINVAL;
    }
    if (in.fd >= 0)
        close(in.fd);
    if (rc == -EFBIG)
        snprintf(why, INPUT_WHY, "more than %zu bytes", most);
    if (rc) {
        if (!*why)
            snprintf(why, INPUT_WHY, "%s", strerror(-rc));
        free(in.text);
        errno = -rc;
        return NULL;
    }
    in.text[in.n] = 0;
    *len = in.n;
    return in.text;
}

char *input_text(const char *path, size_t most, size_t *len, char *why)
{
    return input_all(path, false, most, len, why);
}

char *input_file(const char *path, size_t most, size_t *len, char *why)
{
    return input_all(path, true, most, len, why);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/check/board.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int64_t board_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int board_make(struct board **b)
{
    int fd = memfd_create("trib-check-nccl-plugin", MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, sizeof(**b)) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return -errno;
    *b = board_join(fd);
    return *b ? fd : -ENOMEM;
}

struct board *board_join(int fd)
{
    void *at = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

void board_start(struct board *b, unsigned first)
{
    b->first = first;
    b->arrived = b->round = 0;
    b->errors = b->dying = b->failed = 0;
    b->row = 0;
    b->began_ms = board_ms();
    memset(b->rank, 0, sizeof(b->rank));
}

bool board_fail(struct board *b, unsigned row, const char *format, va_list ap)
{
    int none = 0;

    if (!atomic_compare_exchange_strong(&b->failed, &none, 1))
        return false;
    vsnprintf(b->at[row].text, BOARD_TEXT, format, ap);
    b->at[row].state = ROW_FAILED;
    b->failed = 2;
    return true;
}

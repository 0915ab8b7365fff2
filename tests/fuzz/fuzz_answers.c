/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary answers of a process to the telemetry client: to a list and its entries, to one command,
 * and to what the launcher asks about links. Each client asks a bounded number of times.
 *
 * Input: who asks, then answers, each behind its length.
 */
#include "machine/link_reader.h"
#include "machine/telemetry_client.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINKS   200u
#define ANSWERS 64u

static struct fabric fab = {.n_links = LINKS};
static uint64_t sent[2 * LINKS];

static void ask(uint8_t who, int fd)
{
    static const char *const cmds[] = {"/trib/ports", "/trib/links", "/trib/totals",
                                       "/trib/link,x"};
    json_t *out;
    char *text;

    if (who % 5 == 4) {
        (void)link_reader_ask(fd, &fab, sent);
        return;
    }
    out = json_object();
    telemetry_client_proc(out, fd, "proc", cmds[who % 5]);
    text = json_dumps(out, JSON_INDENT(1) | JSON_SORT_KEYS);
    free(text);
    json_decref(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t who = size ? *data : 0;
    int fd[2];

    if (size < 2 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd))
        return 0;
    data++, size--;
    for (unsigned i = 0; i < ANSWERS && size > 2; i++) {
        size_t n = data[0] | (size_t)data[1] << 8;

        n = n < size - 2 ? n : size - 2;
        if (n && send(fd[1], data + 2, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
        data += 2 + n, size -= 2 + n;
    }
    shutdown(fd[1], SHUT_WR); /* no more answers */
    ask(who, fd[0]);
    close(fd[0]);
    close(fd[1]);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/run/run.h"

#include "trib/run/die.h"
#include "trib/run/signals.h"
#include "trib/run/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Becomes the program; ends the process if there is none. */
static void process_become(const struct words *command)
{
    signals_hand_on();
    execv(command->at[0], (char *const *)(uintptr_t)command->at);
    fprintf(stderr, "trib: cannot run %s: %s\n", command->at[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

void run_become(const struct words *command)
{
    fflush(NULL);
    process_become(command);
    abort(); /* process_become() ends the process */
}

static void null_to(int fd, int flags)
{
    int null = open("/dev/null", flags | O_CLOEXEC);

    if (null >= 0)
        dup2(null, fd);
}

/* Starts a program. out: its standard output; -1: this command's. */
static pid_t child_start(const struct words *command, int out, bool quiet, bool beside)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid < 0)
        die("cannot run %s: %s", command->at[0], strerror(errno));
    if (pid)
        return pid;
    signals_child();
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    if (quiet)
        null_to(STDERR_FILENO, O_WRONLY);
    if (beside) {
        null_to(STDIN_FILENO, O_RDONLY);
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
    }
    process_become(command);
    return -1;
}

pid_t run_beside(const struct words *command)
{
    return child_start(command, -1, false, true);
}

int run_whole(const struct words *command, bool quiet)
{
    return signals_wait(child_start(command, -1, quiet, false));
}

/* Reads all text from a descriptor. */
static char *text_from(int fd)
{
    size_t n = 0, size = 4096;
    char *all = text_room(size, 1), *more;
    ssize_t got;

    while ((got = read(fd, all + n, size - n - 1)) > 0 || (got < 0 && errno == EINTR)) {
        n += got > 0 ? (size_t)got : 0;
        if (size - n > 1)
            continue;
        more = text_room(2 * size, 1);
        memcpy(more, all, n);
        all = more;
        size *= 2;
    }
    all[n] = 0;
    text_chop(all);
    return all;
}

int run_output(const struct words *command, bool quiet, char **text)
{
    int p[2];
    pid_t pid;

    if (pipe2(p, O_CLOEXEC))
        die("cannot run %s: %s", command->at[0], strerror(errno));
    pid = child_start(command, p[1], quiet, false);
    close(p[1]);
    *text = text_from(p[0]);
    close(p[0]);
    return signals_wait(pid);
}

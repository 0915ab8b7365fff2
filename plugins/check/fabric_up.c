/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/check/fabric_up.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs trib. Returns its exit status; 127: it cannot be run. quiet: discard its output. */
static int trib_run(const char *const argv[], bool quiet)
{
    int status = 127 << 8, null;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (!pid) {
        setpgid(0, 0); /* only the caller gets the terminal's signals; it takes the fabric down */
        null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        if (quiet)
            dup2(null, STDERR_FILENO);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int fabric_up(const char *trib, const char *conf, unsigned dilation, bool *mine)
{
    char number[16];
    const char *look[] = {trib, "telemetry", conf, "/", NULL};
    const char *up[] = {trib, "up", conf, "--dilation", number, NULL};
    int rc;

    *mine = false;
    if (!trib_run(look, true))
        return 0;
    snprintf(number, sizeof(number), "%u", dilation);
    rc = trib_run(up, false);
    *mine = !rc;
    return rc;
}

void fabric_down(const char *trib, const char *conf)
{
    const char *down[] = {trib, "down", conf, NULL};

    trib_run(down, true);
}

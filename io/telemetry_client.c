/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client of DPDK's telemetry sockets (SOCK_SEQPACKET: a greeting, then one answer per question).
 */
#include "io/telemetry_client.h"

#include "io/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER   65536
#define QUESTION 1024 /* longest request that DPDK reads */
#define ANSWER_S 10

int telemetry_client_open(const char *dir, const char *proc, unsigned seconds)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct timeval tv = {.tv_sec = seconds};
    static char greeting[ANSWER];
    int fd;

    if (snprintf(un.sun_path, sizeof(un.sun_path), "%s/dpdk/%s/dpdk_telemetry.v2", dir, proc) >=
        (int)sizeof(un.sun_path))
        return -ENAMETOOLONG;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    if (connect(fd, (struct sockaddr *)&un, sizeof(un)) ||
        recv(fd, greeting, sizeof(greeting), 0) <= 0) {
        int err = errno ? errno : ECONNRESET;

        close(fd);
        return -err;
    }
    return fd;
}

json_t *telemetry_client_ask(int fd, const char *cmd, const char *params)
{
    static char answer[ANSWER];
    char question[QUESTION];
    json_t *all, *value = NULL;
    ssize_t n;
    void *it;

    snprintf(question, sizeof(question), "%s%s%s", cmd, params ? "," : "", params ? params : "");
    if (send(fd, question, strlen(question), MSG_NOSIGNAL) < 0)
        return NULL;
    n = recv(fd, answer, sizeof(answer), 0);
    all = n > 0 ? json_loadb(answer, (size_t)n, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    it = all ? json_object_iter(all) : NULL;
    if (it)
        value = json_incref(json_object_iter_value(it));
    json_decref(all);
    return value;
}

static bool is_list(const char *cmd)
{
    return !strcmp(cmd, "/trib/ports") || !strcmp(cmd, "/trib/links") || !strcmp(cmd, "/trib/an");
}

void telemetry_client_proc(json_t *out, int fd, const char *proc, const char *cmd)
{
    json_t *v = telemetry_client_ask(fd, cmd, NULL), *e;
    size_t i;

    if (!is_list(cmd) || !json_is_array(v)) {
        json_object_set_new(out, proc, v ? v : json_null());
        return;
    }
    json_array_foreach(v, i, e)
    {
        json_t *one = telemetry_client_ask(fd, cmd, json_string_value(e));

        json_object_set_new(out, json_string_value(e), one ? one : json_null());
    }
    json_decref(v);
}

/* No process did it: every answer is an error, empty, or refers to another process. */
static bool all_failed(const json_t *out)
{
    const char *key;
    json_t *v;

    if (!json_object_size(out))
        return false;
    json_object_foreach((json_t *)out, key, v) if (!json_is_null(v) &&
                                                   !json_object_get(v, "error") &&
                                                   !json_object_get(v, "elsewhere")) return false;
    return true;
}

bool telemetry_client_names(const char *file, char *name, size_t size)
{
    size_t len = strlen(file);

    if (len < 7 || len - 6 >= size || strcmp(file + len - 6, ".ready") != 0)
        return false;
    snprintf(name, size, "%.*s", (int)len - 6, file);
    return true;
}

/* Queries the process of this .ready file; false: not such a file, or not the requested process. */
static bool query_file(json_t *out, const char *program, const char *dir, const char *proc,
                       const char *file, const char *cmd)
{
    char name[256];
    int fd;

    if (!telemetry_client_names(file, name, sizeof(name)) || (proc && strcmp(proc, name) != 0))
        return false;
    fd = telemetry_client_open(dir, name, ANSWER_S);
    if (fd < 0) {
        fprintf(stderr, "%s: %s does not answer: %s\n", program, name, strerror(-fd));
        return true;
    }
    telemetry_client_proc(out, fd, name, cmd);
    close(fd);
    return true;
}

int telemetry_client_query(const char *program, const char *dir, const char *proc, const char *cmd)
{
    json_t *out = json_object();
    char path[RUN_PATH + 16];
    unsigned asked = 0;
    struct dirent *e;
    int rc;
    DIR *d;

    if (strlen(cmd) >= QUESTION) {
        fprintf(stderr, "%s: found a command of %zu characters, expected at most %d\n", program,
                strlen(cmd), QUESTION - 1);
        return 1;
    }
    snprintf(path, sizeof(path), "%s/proc", dir);
    d = opendir(path);
    while (d && (e = readdir(d)))
        asked += query_file(out, program, dir, proc, e->d_name, cmd);
    if (d)
        closedir(d);
    if (!asked)
        fprintf(stderr, "%s: found no running process%s%s in %s\n", program, proc ? " " : "",
                proc ? proc : "", dir);
    json_dumpf(out, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
    putchar('\n');
    rc = !asked || all_failed(out);
    json_decref(out);
    return rc;
}

/* The process that has the clock changes it; -ENOENT: that is another one. */
static int set_dilation_at(const char *dir, const char *proc, unsigned n)
{
    int fd = telemetry_client_open(dir, proc, ANSWER_S), rc = -EIO;
    char text[16];
    json_t *v;

    if (fd < 0)
        return fd;
    snprintf(text, sizeof(text), "%u", n);
    v = telemetry_client_ask(fd, "/trib/dilation", text);
    if (json_integer_value(json_object_get(v, "dilation")) == (json_int_t)n)
        rc = 0;
    else if (json_object_get(v, "elsewhere"))
        rc = -ENOENT;
    json_decref(v);
    close(fd);
    return rc;
}

int telemetry_client_set_dilation(const char *program, const char *dir, unsigned n)
{
    char path[RUN_PATH + 16], name[256];
    int rc = -ENOENT;
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof(path), "%s/proc", dir);
    d = opendir(path);
    while (rc && d && (e = readdir(d)))
        if (telemetry_client_names(e->d_name, name, sizeof(name)))
            rc = set_dilation_at(dir, name, n);
    if (d)
        closedir(d);
    if (rc)
        fprintf(stderr, "%s: no process of %s sets dilation %u: %s\n", program, dir, n,
                rc == -ENOENT ? "the one that had the clock has ended" : strerror(-rc));
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A host of two ports in a run directory of its own, and all that is below a directory as one text. */
#ifndef TESTS_SANDBOX_LISTING_H
#define TESTS_SANDBOX_LISTING_H

#include "host/sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Slow and fast, and addresses that differ in each byte. */
static uint32_t listed_ips[3] = {0x0a0b0c0d, 0xc1d2e3f4, 0x01020304};
static struct fab_port listed_ports[3] = {
    {.rate_bps = 400000000000}, {.rate_bps = 800000000000}, {.rate_bps = 1600000000000}};

static inline struct fab_node listed_host(unsigned ports)
{
    struct fab_node h = {.name = "h7",
                         .kind = FAB_HOST,
                         .n_ports = (fab_id)ports,
                         .ports = listed_ports,
                         .ip = listed_ips[0],
                         .ip_of_port = listed_ips};

    return h;
}

static inline void listed_run(struct rundir *rd)
{
    char port[RUN_PATH + 8];

    *rd = (struct rundir){.path = "/tmp/tribbox.XXXXXX"};
    umask(022);
    if (!mkdtemp(rd->path))
        abort();
    snprintf(port, sizeof(port), "%s/port", rd->path);
    if (mkdir(port, 0700))
        abort();
}

static inline int listed_unlink(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void listed_remove(const char *dir)
{
    if (nftw(dir, listed_unlink, 8, FTW_DEPTH | FTW_PHYS))
        abort();
}

/* A text with RUN in place of the run directory. */
static inline void listed_text(FILE *out, const char *text, const char *run)
{
    const char *at = run ? strstr(text, run) : NULL;

    if (at)
        fprintf(out, "%.*sRUN%s", (int)(at - text), text, at + strlen(run));
    else
        fputs(text, out);
}

static inline void listed_file(FILE *out, const char *path, const char *name, const char *run)
{
    char text[512] = "";
    struct stat st;
    FILE *f;
    size_t n;

    if (lstat(path, &st))
        abort();
    if (S_ISLNK(st.st_mode)) {
        if (readlink(path, text, sizeof(text) - 1) < 0)
            abort();
        fprintf(out, "%s -> ", name);
        listed_text(out, text, run);
        fputc('\n', out);
    } else if (S_ISDIR(st.st_mode)) {
        fprintf(out, "%s/ %o\n", name, (unsigned)st.st_mode & 07777);
    } else if (S_ISREG(st.st_mode)) {
        f = fopen(path, "r");
        n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
        text[n] = 0;
        if (f)
            fclose(f);
        if (n && text[n - 1] == '\n')
            text[n - 1] = 0;
        else
            strcat(text, "<no newline>");
        fprintf(out, "%s %o: %s\n", name, (unsigned)st.st_mode & 07777, text);
    } else {
        fprintf(out, "%s is a device %x\n", name, (unsigned)st.st_rdev);
    }
}

/* Below dir, in order of names, a line each. */
static inline void listed_dir(FILE *out, const char *dir, const char *prefix, const char *run)
{
    struct dirent **e;
    int n = scandir(dir, &e, NULL, alphasort);

    if (n < 0)
        fprintf(out, "%s: %s\n", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        char path[1024], name[1024];
        struct stat st;

        snprintf(path, sizeof(path), "%s/%s", dir, e[i]->d_name);
        snprintf(name, sizeof(name), "%s%s", prefix, e[i]->d_name);
        if (strcmp(e[i]->d_name, ".") != 0 && strcmp(e[i]->d_name, "..") != 0) {
            listed_file(out, path, name, run);
            if (!lstat(path, &st) && S_ISDIR(st.st_mode)) {
                strcat(name, "/");
                listed_dir(out, path, name, run);
            }
        }
        free(e[i]);
    }
    if (n >= 0)
        free(e);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/perf_protocols.h"

#include "system/input.h"
#include "system/provenance.h"
#include "fabric/fabric.h"
#include "protocols/host/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Whether the conf has the word "protocol": loading a large fabric takes long, and few confs have
 * it. */
static bool mentions_protocol(const char *path)
{
    FILE *in = input_stream(path);
    char *line = NULL;
    size_t size = 0;
    bool found = false;

    while (in && !found && getline(&line, &size, in) >= 0)
        found = strstr(line, "protocol") != NULL;
    free(line);
    if (in)
        fclose(in);
    return found;
}

static bool is_file(const char *arg)
{
    struct stat st;

    return *arg != '-' && !stat(arg, &st) && S_ISREG(st.st_mode);
}

static bool is_conf(const char *arg)
{
    size_t n = strlen(arg);

    return n > 5 && !strcmp(arg + n - 5, ".conf");
}

/* Reports mistakes in the conf. Such a conf provides no protocols, so this comes before errors
 * about options that name one. */
static int show_mistakes(const char *conf)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));

    if (errs)
        fabric_free(fabric_load(conf, errs));
    if (errs)
        fab_errors_print(errs, stderr);
    free(errs);
    return -EINVAL;
}

int perf_load_protocols(int argc, char **argv)
{
    char err[PROTO_CONF_TEXT];
    int rc = 0;

    for (int i = 1; i < argc && !rc; i++) {
        bool mine = is_file(argv[i]) && mentions_protocol(argv[i]);
        struct fabric *f = mine ? fabric_load(argv[i], NULL) : NULL;

        if (mine && !f && *argv[i - 1] != '-' && is_conf(argv[i]))
            return show_mistakes(argv[i]);
        if (f)
            rc = proto_setup(f, err);
        fabric_free(f);
    }
    if (rc)
        fprintf(stderr, "%s\n", err);
    return rc;
}

void perf_protocol_files(struct provenance *p)
{
    for (unsigned seat = 0; seat < PROTO_SEATS; seat++)
        provenance_file(p, proto_object(seat));
}

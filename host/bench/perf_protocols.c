/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/perf_protocols.h"

#include "fabric/fabric.h"
#include "protocols/host/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Large fabrics take a while to load; hardly any conf has the word. */
static bool mentions_protocol(const char *path)
{
    FILE *in = fopen(path, "re");
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

int perf_load_protocols(int argc, char **argv)
{
    char err[PROTO_CONF_TEXT];
    int rc = 0;

    for (int i = 1; i < argc && !rc; i++) {
        struct fabric *f =
            is_file(argv[i]) && mentions_protocol(argv[i]) ? fabric_load(argv[i], NULL) : NULL;

        if (f)
            rc = proto_setup(f, err);
        fabric_free(f);
    }
    if (rc)
        fprintf(stderr, "%s\n", err);
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/telemetry_client.h"
#include "trib/commands.h"
#include "trib/conf_file.h"
#include "trib/fabric_of.h"
#include "trib/find.h"
#include "trib/run/die.h"
#include "trib/run/run.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <dirent.h>
#include <string.h>

/* The processes that are ready, by the files that say so. */
static char *ready_names(const char *dir)
{
    struct words names = {0};
    struct dirent *e;
    char name[256];
    DIR *d = opendir(text_of("%s/proc", dir));

    while (d && (e = readdir(d)))
        if (*e->d_name != '.' && telemetry_client_names(e->d_name, name, sizeof(name)))
            words_append(&names, text_of("%s", name));
    if (d)
        closedir(d);
    words_sort(&names);
    return words_join(names.n, names.at, " ");
}

/* COMMAND is the last word and begins with a slash; a CONF by its path that does so ends with .conf. */
int command_telemetry(int n, char **words)
{
    const char *question = "/", *process;
    struct words command = {0};
    struct fabric_of f;
    bool taken;

    words_append(&command, find_program("trib-telemetry"));
    if (n > 3)
        die("found '%s', expected: trib telemetry [CONF] [PROCESS] [COMMAND]",
            words_said(n, words));
    if (n && *words[n - 1] == '/' && !text_ends(words[n - 1], ".conf"))
        question = words[--n];
    f = fabric_of_words(n && conf_file_is_conf(words[0]), n, words, &taken);
    n -= taken;
    words += taken;
    if (n > 1)
        die("found '%s', expected: trib telemetry [CONF] [PROCESS] [COMMAND], and a COMMAND such "
            "as /trib/ports",
            words_said(n, words));
    process = n ? words[0] : "";
    if (*process && !where_is_there(text_of("%s/proc/%s.ready", f.dir, process)))
        die("found process '%s', expected one of fabric %s: %s", process, fabric_of_name(f.dir),
            ready_names(f.dir));
    if (*process)
        words_append_all(&command, "--proc", process);
    words_append_all(&command, f.dir, question);
    run_become(&command);
}

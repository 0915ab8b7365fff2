/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/conf_file.h"
#include "trib/run/die.h"
#include "trib/find.h"
#include "trib/measure.h"
#include "trib/run/run.h"
#include "trib/run/text.h"

#include <stdlib.h>
#include <string.h>

/* Whether a word is in a list with blanks or semicolons between. */
static bool is_listed(char *list, const char *word)
{
    char *one;

    while ((one = strsep(&list, "; ")) != NULL)
        if (!strcmp(one, word))
            return true;
    return false;
}

bool measure_is_collective(const char *word)
{
    const char *sim = find_program_quietly("trib-sim");
    struct words command = {0};
    char *rows, *row;

    if (!sim)
        return false;
    words_append_all(&command, sim, "--help=complete");
    run_output(&command, false, &rows);
    while ((row = strsep(&rows, "\n")) != NULL) {
        for (unsigned i = 0; row && i < 3; i++) /* name, short name, value */
            strsep(&row, "\t");
        if (row && is_listed(strsep(&row, "\t"), word))
            return true;
    }
    return false;
}

bool measure_names_conf(int n, char **words)
{
    return n && *words[0] != '-' && conf_file_is_conf(words[0]);
}

void measure_refuse_word(const char *command, int n, char **words)
{
    const char *file;

    if (!n || *words[0] == '-')
        die("found %s, expected: trib %s CONF [COLLECTIVE] [OPTION...]",
            n ? text_of("'%s'", words[0]) : "nothing", command);
    if (measure_is_collective(words[0])) {
        if (measure_names_conf(n - 1, words + 1))
            die("found the collective '%s' before the conf '%s', expected: trib %s %s %s", words[0],
                words[1], command, words[1], words[0]);
        die("found the collective '%s' and no CONF, expected: trib %s CONF %s [OPTION...]",
            words[0], command, words[0]);
    }
    file = conf_file_or_die(words[0], NULL, 1);
    die("found '%s' (%s), expected the conf of a fabric: this is a file beside it, as for --faults "
        "or --jobs",
        words[0], file);
}

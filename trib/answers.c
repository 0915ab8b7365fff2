/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/answers.h"

#include "trib/run/text.h"

#include <stdio.h>

static json_t *kept; /* all answers */

static json_t *answers_gather(const char *program, const char *dir, const char *command,
                              const struct telemetry_whom *whom, bool *ok)
{
    static const struct telemetry_whom all = {.proc = NULL};
    json_t *answers;

    fflush(stdout);
    *ok = !telemetry_client_gather(program, dir, command, whom ? whom : &all, &answers);
    if (!kept)
        kept = json_array();
    json_array_append_new(kept, answers);
    return answers;
}

json_t *answers_ask(const char *dir, const char *command, const struct telemetry_whom *whom,
                    bool *ok)
{
    return answers_gather("trib-telemetry", dir, command, whom, ok);
}

json_t *answers_ask_quietly(const char *dir, const char *command, const struct telemetry_whom *whom)
{
    bool ok;

    return answers_gather(NULL, dir, command, whom, &ok);
}

/* Names of the processes that were asked, sorted. */
static struct words process_names(const json_t *answers)
{
    struct words names = {0};
    const char *name;
    json_t *answer;

    json_object_foreach((json_t *)answers, name, answer)
    {
        words_append(&names, name);
    }
    words_sort(&names);
    return names;
}

char *answers_why(const json_t *answers)
{
    struct words errors = {0};
    const char *name, *text;
    json_t *answer;

    json_object_foreach((json_t *)answers, name, answer)
    {
        text = json_string_value(json_object_get(answer, "error"));
        if (text)
            words_append(&errors, text);
    }
    words_sort_once(&errors);
    return errors.n ? words_join(errors.n, errors.at, "\n")
                    : text_of("a process that would know it does not answer");
}

struct words answers_lines(const json_t *answers)
{
    struct words names = process_names(answers), lines = {0};

    for (unsigned i = 0; i < names.n; i++) {
        json_t *line;
        size_t at;

        json_array_foreach(json_object_get(answers, names.at[i]), at,
                           line) if (json_is_string(line))
            words_append(&lines, json_string_value(line));
    }
    return lines;
}

json_int_t answers_sum(const json_t *answers, const char *name)
{
    const char *process;
    json_int_t sum = 0;
    json_t *answer;

    json_object_foreach((json_t *)answers, process, answer) sum +=
        json_integer_value(json_object_get(answer, name));
    return sum;
}

json_int_t answers_dilation(const json_t *answers)
{
    struct words names = process_names(answers);

    for (unsigned i = 0; i < names.n; i++) {
        json_t *n = json_object_get(json_object_get(answers, names.at[i]), "dilation");

        if (json_is_integer(n))
            return json_integer_value(n);
    }
    return 0;
}

void answers_print_lines(struct words lines, const char *none)
{
    words_sort_once(&lines);
    for (unsigned i = 0; i < lines.n; i++)
        puts(lines.at[i]);
    if (!lines.n)
        puts(none);
}

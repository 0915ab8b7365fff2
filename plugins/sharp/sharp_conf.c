/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/sharp/sharp_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "SHARP_COLL_"

static const struct var {
    const char *name;
    int usual, most;
    const char *doc;
} var[SHARP_VARS] = {
    [SHARP_VAR_LOG_LEVEL] = {"LOG_LEVEL", SHARP_LOG_WARN, 5,
                             "0 fatal, 1 errors, 2 warnings, 3 information, 4 and 5 debugging"},
    [SHARP_VAR_ENABLE_SAT] = {"ENABLE_SAT", 1, 1, "reduce-scatter and all-gather; 0: refused"},
    [SHARP_VAR_ENABLE_MCAST] = {"ENABLE_MCAST", 0, 1, "all-gather even where ENABLE_SAT is 0"},
    [SHARP_VAR_OSTS_PER_GROUP] = {"OSTS_PER_GROUP", 0, 65535,
                                  "slots to ask of aggregation nodes; 0: their choice"},
    [SHARP_VAR_STATS_DUMP_MODE] = {"STATS_DUMP_MODE", 0, 2,
                                   "1, 2: each process prints its operations when it finalizes"},
};

extern char **environ;

static bool var_read(const struct var *v, const char *text, int *value)
{
    static const char *const no[] = {"n", "no", "off"}, *const yes[] = {"y", "yes", "on"};
    char *end;
    long n;

    for (unsigned i = 0; v->most == 1 && i < 3; i++)
        if (!strcasecmp(text, no[i]) || !strcasecmp(text, yes[i])) {
            *value = !strcasecmp(text, yes[i]);
            return true;
        }
    errno = 0;
    n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < 0 || n > v->most)
        return false;
    *value = (int)n;
    return true;
}

int sharp_conf_read(struct sharp_conf *conf, char *why)
{
    char name[64];

    for (unsigned i = 0; i < SHARP_VARS; i++)
        conf->value[i] = var[i].usual;
    for (unsigned i = 0; i < SHARP_VARS; i++) {
        const char *text;

        snprintf(name, sizeof(name), PREFIX "%s", var[i].name);
        text = getenv(name);
        if (text && *text && !var_read(&var[i], text, &conf->value[i])) {
            snprintf(why, SHARP_TEXT, "%s: found '%.40s', expected 0 to %d", name, text,
                     var[i].most);
            return SHARP_COLL_EINVAL;
        }
    }
    return SHARP_COLL_SUCCESS;
}

bool sharp_conf_said(unsigned which)
{
    const char *text;
    char name[64];

    snprintf(name, sizeof(name), PREFIX "%s", var[which].name);
    text = getenv(name);
    return text && *text;
}

void sharp_conf_unknown(char *names, size_t bytes)
{
    size_t used = 0;

    *names = 0;
    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "=");
        bool known = strncmp(*e, PREFIX, strlen(PREFIX)) != 0;

        for (unsigned i = 0; !known && i < SHARP_VARS; i++)
            known = n == strlen(PREFIX) + strlen(var[i].name) &&
                    !strncmp(*e + strlen(PREFIX), var[i].name, strlen(var[i].name));
        if (known || used + n + 3 > bytes)
            continue;
        used +=
            (size_t)snprintf(names + used, bytes - used, "%s%.*s", used ? ", " : "", (int)n, *e);
    }
}

int sharp_coll_print_config(FILE *stream, enum config_print_flags flags, const char *exec_name)
{
    struct sharp_conf conf;
    char why[SHARP_TEXT];
    int rc;

    if (!stream || (unsigned)flags > 15)
        return sharp_refuse(SHARP_COLL_EINVAL, "print_config: found no stream, or flags 0x%x",
                            (unsigned)flags);
    rc = sharp_conf_read(&conf, why);
    if (rc)
        return sharp_refuse(rc, "%s", why);
    if (flags & SHARP_COLL_CONFIG_PRINT_HEADER)
        fprintf(stream, "# %s: variables of SHARP's interface %s on Tributary\n",
                exec_name ? exec_name : "sharp_coll", SHARP_VERNO_STRING);
    for (unsigned i = 0; i < SHARP_VARS; i++) {
        if (flags & SHARP_COLL_CONFIG_PRINT_DOC)
            fprintf(stream, "# 0 to %d; %s (%d)\n", var[i].most, var[i].doc, var[i].usual);
        if (flags & (SHARP_COLL_CONFIG_PRINT_CONFIG | SHARP_COLL_CONFIG_PRINT_DOC))
            fprintf(stream, PREFIX "%s=%d\n", var[i].name, conf.value[i]);
    }
    return SHARP_COLL_SUCCESS;
}

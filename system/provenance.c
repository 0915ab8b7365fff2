/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/provenance.h"

#include "system/input.h"
#include "base/secret.h"
#include "base/version.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sha2.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The commit that was built; only programs that write results define it. */
extern const char trib_commit[] __attribute__((weak));

#define TEXT_MAX (4u << 20) /* most bytes of text that are kept */

/* Text as a JSON string; if it is not UTF-8, bytes above 127 become '?'. */
static json_t *text_json(const char *s)
{
    json_t *j = json_string(s);
    char *copy;

    if (j)
        return j;
    copy = strdup(s);
    for (char *c = copy; c && *c; c++)
        if (*c & 0x80)
            *c = '?';
    j = copy ? json_string(copy) : NULL;
    free(copy);
    return j;
}

/* Counts the words that name an output file: "-J", "F"; "-JF"; "--json=F"; "--csv", "F". Long names may be
 * abbreviated. */
static int names_output(const char *word)
{
    static const struct {
        const char *name;
        size_t least; /* least characters of a unique abbreviation */
    } names[] = {{"--output_file", 4}, {"--json", 3}, {"--csv", 4}, {"--timeline", 10}};
    size_t len = strcspn(word, "=");

    if (!strncmp(word, "-J", 2))
        return word[2] ? 1 : 2;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (len >= names[i].least && !strncmp(word, names[i].name, len))
            return word[len] ? 1 : 2;
    return 0;
}

void provenance_begin(struct provenance *p, int argc, const char *const *argv)
{
    *p = (struct provenance){.command = json_array(), .files = json_array()};
    for (int i = 0; i < argc;) {
        int skip = i ? names_output(argv[i]) : 0;
        const char *slash = i ? NULL : strrchr(argv[i], '/');

        if (!skip)
            json_array_append_new(p->command, text_json(slash ? slash + 1 : argv[i]));
        i += skip ? skip : 1;
    }
}

static json_t *hash_json(const void *data, size_t len)
{
    char hash[SHA256_DIGEST_STRING_LENGTH];

    return json_string(SHA256Data(data, len, hash));
}

/* Results are shown to others: neither a file's secrets nor a hash of them, by which they could be
 * guessed. */
static void add_text(json_t *j, const char *data, size_t len)
{
    bool secret = secret_named(data);
    char *shown = strlen(data) == len ? secret_hide(data) : NULL;

    if (shown && secret)
        json_object_set_new(j, "sha256", hash_json(shown, strlen(shown)));
    else if (!secret)
        json_object_set_new(j, "sha256", hash_json(data, len));
    if (secret)
        json_object_set_new(j, "secrets", json_string("hidden"));
    if (shown && strlen(shown) > TEXT_MAX)
        shown[TEXT_MAX] = 0;
    if (shown)
        json_object_set_new(j, "text", text_json(shown));
    free(shown);
}

static json_t *file_json(const char *path)
{
    json_t *j = json_pack("{s:o}", "path", text_json(path));
    char why[INPUT_WHY], *data;
    size_t len;

    data = input_file(path, INPUT_MOST, &len, why);
    if (data && j)
        add_text(j, data, len);
    free(data);
    return j;
}

void provenance_file(struct provenance *p, const char *path)
{
    if (path && *path)
        json_array_append_new(p->files, file_json(path));
}

/* The CPU's name as Linux has it; "": not known. */
static void cpu_name(char *name, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256], *at;

    *name = 0;
    while (f && !*name && fgets(line, sizeof(line), f)) {
        at = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !at)
            continue;
        at += strspn(at, ": \t");
        at[strcspn(at, "\n")] = 0;
        snprintf(name, size, "%s", at);
    }
    if (f)
        fclose(f);
}

static void add_machine(json_t *run)
{
    time_t now = time(NULL);
    struct utsname u;
    struct tm utc;
    char date[32], cpu[128], system[160];

    if (gmtime_r(&now, &utc) && strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc))
        json_object_set_new(run, "date", json_string(date));
    cpu_name(cpu, sizeof(cpu));
    if (uname(&u))
        return;
    snprintf(system, sizeof(system), "%.64s %.64s", u.sysname, u.release);
    json_object_set_new(run, "machine",
                        json_pack("{s:o, s:o, s:s, s:I}", "system", text_json(system), "cpu",
                                  text_json(cpu), "architecture", u.machine, "cpus",
                                  (json_int_t)sysconf(_SC_NPROCESSORS_ONLN)));
}

void provenance_add(struct provenance *p, json_t *top, bool real)
{
    const char *algo = getenv("TRIB_ALGO");
    json_t *run;

    json_object_set_new(top, "schema", json_integer(RESULT_SCHEMA));
    if (!p)
        return;
    run =
        json_pack("{s:O, s:{}, s:s, s:s, s:O}", "command", p->command, "environment", "version",
                  TRIB_VERSION, "commit", trib_commit ? trib_commit : "unknown", "files", p->files);
    if (!run)
        return;
    if (algo && *algo)
        json_object_set_new(json_object_get(run, "environment"), "TRIB_ALGO", text_json(algo));
    if (real)
        add_machine(run);
    json_object_set_new(top, "run", run);
}

void provenance_end(struct provenance *p)
{
    json_decref(p->command);
    json_decref(p->files);
    *p = (struct provenance){0};
}

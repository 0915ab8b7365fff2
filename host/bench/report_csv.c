/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows as CSV (RFC 4180): a line for each, a column for each key of the JSON that is no list. */
#include "system/atomic_output.h"
#include "host/bench/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME 64

/* Adds the values of an object under their names, those of objects in it as "outer.inner". */
static void flatten(json_t *out, const char *outer, json_t *object)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        char name[NAME];

        snprintf(name, sizeof(name), "%s%s%s", outer, *outer ? "." : "", key);
        if (json_is_object(value))
            flatten(out, name, value);
        else if (!json_is_array(value))
            json_object_set(out, name, value);
    }
}

static void text_cell(FILE *out, const char *s)
{
    if (!s[strcspn(s, ",\"\r\n")]) {
        fputs(s, out);
        return;
    }
    fputc('"', out);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', out);
        fputc(*s, out);
    }
    fputc('"', out);
}

/* Writes a cell. null, and a key that the row lacks, give an empty cell. */
static void cell(FILE *out, const json_t *v)
{
    if (json_is_string(v))
        text_cell(out, json_string_value(v));
    else if (json_is_boolean(v))
        fputs(json_is_true(v) ? "true" : "false", out);
    else if (json_is_integer(v))
        fprintf(out, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        fprintf(out, "%.9g", json_real_value(v));
}

static void report_csv_print(FILE *out, json_t *rows)
{
    json_t *columns = json_object(), *row, *v;
    const char *key, *between = "";
    size_t i;

    for (i = 0; i < json_array_size(rows); i++)
        json_object_update(columns, json_array_get(rows, i));
    json_object_foreach(columns, key, v)
    {
        fputs(between, out);
        text_cell(out, key);
        between = ",";
    }
    fputs("\r\n", out);
    json_array_foreach(rows, i, row)
    {
        between = "";
        json_object_foreach(columns, key, v)
        {
            fputs(between, out);
            cell(out, json_object_get(row, key));
            between = ",";
        }
        fputs("\r\n", out);
    }
    json_decref(columns);
}

int report_csv(const char *path, const struct row *rows, unsigned n)
{
    json_t *all = report_rows(rows, n), *flat = json_array(), *row;
    char *text = NULL;
    size_t i, size;
    FILE *out = open_memstream(&text, &size);
    int rc = -ENOMEM;

    json_array_foreach(all, i, row)
    {
        json_t *one = json_object();

        flatten(one, "", row);
        json_array_append_new(flat, one);
    }
    if (out && flat)
        report_csv_print(out, flat);
    if (out && !fclose(out) && text)
        rc = atomic_output_text(path, text);
    free(text);
    json_decref(flat);
    json_decref(all);
    return rc;
}

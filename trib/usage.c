/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/usage.h"

#include "base/version.h"
#include "trib/command_table.h"
#include "trib/conf_file.h"
#include "trib/run/die.h"
#include "trib/find.h"
#include "trib/run/run.h"
#include "trib/run/text.h"

#include <string.h>

#define TEXT_COLUMN 51
#define WIDTH       119

static const char confs_text[] =
    "CONF is a path, the name of a conf that comes with Tributary (leaf-spine-8), or the name of a "
    "fabric that is up. Without it the fabric\n"
    "that is up is meant.\n";

/* Prints `left`, and the text as a block from TEXT_COLUMN on. */
static void lines_print(const char *left, const char *text, FILE *out)
{
    int column = fprintf(out, "%-*s", TEXT_COLUMN, left);

    if (column > TEXT_COLUMN)
        column = fprintf(out, "\n%*s", TEXT_COLUMN, "") - 1;
    while (*text) {
        int n = (int)strcspn(text, " ");

        if (column + n > WIDTH)
            column = fprintf(out, "\n%*s", TEXT_COLUMN, "") - 1;
        column += fprintf(out, " %.*s", n, text);
        text += n + (text[n] == ' ');
    }
    fputc('\n', out);
}

/* Prints the usage of all commands, or of one, in lines of 120 characters at most, each text
 * indented as a block. */
static void usage_lines(const char *command, FILE *out)
{
    const struct command_row *row;
    bool first = true;

    for (unsigned i = 0; (row = command_table_row(i)) != NULL; i++) {
        if (command && strcmp(command, row->name) != 0)
            continue;
        lines_print(text_of("%strib %s%s%s", first ? "usage: " : "       ", row->name,
                            *row->args ? " " : "", row->args),
                    row->text, out);
        first = false;
    }
}

void usage_all(FILE *out)
{
    usage_lines(NULL, out);
    fputs(confs_text, out);
    fputs("`trib help COMMAND` has the options of a command, and so has its manual page, such as "
          "trib-perf(1).\n",
          out);
}

int usage_of(const char *command)
{
    const struct command_row *row = command_table_find(command);
    struct words program = {0};

    if (row->program) {
        words_append_all(&program, find_program(row->program), "--help");
        run_become(&program);
    }
    usage_lines(command, stdout);
    fputs(confs_text, stdout);
    return 0;
}

void usage_unknown(const char *word)
{
    struct words names = command_table_names();

    die_with(EXIT_WRONG, "found '%s', expected a command: %s%s", word,
             words_join(names.n, names.at, " "), conf_file_hint(word, &names));
}

void usage_version(void)
{
    puts("trib (Tributary) " TRIB_VERSION);
}

void usage_complete(void)
{
    const struct command_row *row;

    for (unsigned i = 0; (row = command_table_row(i)) != NULL; i++)
        printf("%s|%s|%s|%s\n", row->name, row->args, row->options, row->text);
}

/* ---- the manual page ---- */

/* Prints text with backslashes, dashes and leading dots escaped for roff. */
static void roff_print(const char *text)
{
    bool begins = true;

    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '.' && begins)
            fputs("\\&.", stdout);
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

static void man_head(void)
{
    fputs(".TH TRIB 1 \"\" \"Tributary " TRIB_VERSION "\" \"Tributary manual\"\n"
          ".SH NAME\ntrib \\- emulate a switch fabric and run programs on its hosts\n"
          ".SH SYNOPSIS\n\\fBtrib\\fR \\fICOMMAND\\fR [\\fIARG\\fR...]\n.SH DESCRIPTION\n"
          "Starts and stops emulated fabrics, runs verbs programs on their hosts, measures and "
          "simulates "
          "collectives.\n.PP\n",
          stdout);
    roff_print(confs_text);
}

static void man_commands(void)
{
    const struct command_row *row;

    fputs(".SH COMMANDS\n", stdout);
    for (unsigned i = 0; (row = command_table_row(i)) != NULL; i++) {
        fputs(".TP\n\\fBtrib ", stdout);
        roff_print(row->name);
        fputs("\\fR", stdout);
        if (*row->args)
            putchar(' ');
        roff_print(row->args);
        putchar('\n');
        roff_print(row->text);
        fputs(".\n", stdout);
    }
}

static void man_exits(void)
{
    fputs(
        ".SH EXIT STATUS\n.TP\n\\fB0\\fR\nFine.\n.TP\n\\fB1\\fR\nIt cannot be done; the reason is "
        "on stderr.\n"
        ".TP\n\\fB2\\fR\nThe command line is wrong.\n.PP\n"
        "Those of perf, sim, model, calibrate, explain, report, import, plan, nccl, check-protocol "
        "and "
        "check-nccl-plugin are in their manual pages; exec has that of the program that it runs.\n",
        stdout);
}

static void man_environment(void)
{
    static const struct {
        const char *name, *text;
    } variables[] = {
        {"TRIB_RUN", "The run directory to use instead of $XDG_RUNTIME_DIR/tributary\\-UID/NAME"},
        {"TRIB_HOST", "The host of trib exec, where none is named"},
        {"TRIB_BUILD", "Where the programs are"},
        {"TRIB_LIB", "Where libtribverbs.so is"},
        {"TRIB_RSH", "How other machines of a fabric are reached: ssh, mpirun, srun, or a command "
                     "as --rsh of trib perf"},
        {"TRIB_LOG", "Log lines by room and level, such as switch:debug,hca:info"},
    };

    fputs(".SH ENVIRONMENT\n", stdout);
    for (unsigned i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        printf(".TP\n\\fB%s\\fR\n%s.\n", variables[i].name, variables[i].text);
}

void usage_man(void)
{
    static const char *const pages[] = {"perf",   "sim",       "plan",           "model",
                                        "switch", "telemetry", "status",         "metrics",
                                        "top",    "calibrate", "explain",        "report",
                                        "import", "sweep",     "check-protocol", "nccl"};
    const unsigned n = sizeof(pages) / sizeof(pages[0]);

    man_head();
    man_commands();
    man_exits();
    man_environment();
    fputs(".SH SEE ALSO\n", stdout);
    for (unsigned i = 0; i < n; i++) {
        roff_print(text_of("trib-%s(1)", pages[i]));
        fputs(i + 1 < n ? ", " : "\n", stdout);
    }
}

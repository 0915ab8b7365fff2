/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of a program, described by tables. Parsing, messages, --help, --version, the
 * manual page and the lists for shell completion all come from the same rows.
 *
 * The spelling is that of getopt_long(3): -n5, -n 5, --iters 5, --iters=5, several flags as -vq, long
 * names abbreviated as long as they are unique, -- before arguments that begin with a dash. Options
 * and arguments may be mixed. Every program also has -h, --help and --version.
 *
 * Nothing is allocated: texts point into argv, and a message has room for OPTIONS_ERR bytes.
 */
#ifndef TRIB_BASE_OPTIONS_H
#define TRIB_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTIONS_ERR  512 /* bytes of a message */
#define OPTIONS_ROWS 128 /* options of a program at most */

/* How a value is read, and the type of the member that stores it. */
enum option_type {
    OPTION_FLAG,        /* no value; bool */
    OPTION_UINT,        /* whole number from min to max; unsigned */
    OPTION_U64,         /* the same; uint64_t */
    OPTION_SIZE,        /* options_size(), from min to max bytes; uint64_t */
    OPTION_TIME,        /* a number with ps, ns, us, ms or s; int64_t in ps */
    OPTION_SECONDS,     /* seconds, or a time with its unit; double, min and max in microseconds */
    OPTION_RATE,        /* 400Gb/s, 50GB/s; uint64_t in bits per second */
    OPTION_PROBABILITY, /* a probability, 0 to 1, or up to 100%; double */
    OPTION_TEXT,        /* the text, not empty; const char * into argv */
    OPTION_CHOICE,      /* one name of the list; unsigned, its index */
    OPTION_SET,         /* names separated by commas, or all; unsigned, a bit for each */
    OPTION_CALL,        /* take() reads it */
};

enum {
    OPTION_REQUIRED = 1, /* this argument is mandatory */
    OPTION_REST = 2,     /* the last argument: the program reads this word and all behind it */
    OPTION_HIDDEN = 4,   /* for scripts: neither in --help nor in completion */
};

/* The names of an OPTION_SET in the order of the command line, each once; empty for "all". */
#define OPTION_SET_MAX 32
struct option_order {
    unsigned n;
    uint8_t at[OPTION_SET_MAX];
};

struct option_row;

/*
 * Reads a value of type OPTION_CALL.
 *   into   the structure that the program gave to options_parse()
 *   label  the option as the user spelled it, for messages
 *   err    OPTIONS_ERR bytes: on failure what was found and what is expected
 * Returns 0 or -EINVAL.
 */
typedef int option_take(void *into, const struct option_row *r, const char *label,
                        const char *value, char *err);

/* An option or, if it has no name, an argument. Members that a table leaves out are 0. */
struct option_row {
    char c;           /* short name; 0: none */
    const char *name; /* long name, without dashes */
    const char *also; /* a synonym, listed in --help */
    const char *old;  /* a long name of the last release: accepted with a warning */
    const char *arg;  /* the value in the help text, such as "SIZE"; NULL: OPTION_FLAG */
    enum option_type type;
    unsigned how;                    /* OPTION_REQUIRED, ... */
    size_t offset;                   /* of the member that stores the value */
    size_t order;                    /* OPTION_SET: offset of a struct option_order; 0: none */
    uint64_t min, max;               /* max 0: the type's maximum */
    const char *(*list)(unsigned i); /* OPTION_CHOICE, OPTION_SET: name i; NULL behind the
                                        last; "": there is no name i */
    int (*find)(const char *name);   /* the index for another spelling of a name, or -errno */
    option_take *take;
    const char *initial; /* default value, read before the command line */
    const char *shown;   /* text in --help for a default that the program computes */
    const char *instead; /* a deprecated option: what to use, for the warning */
    const char *help;    /* without a full stop */
};

/* Rows under a heading. An array of groups ends with one without rows. */
struct option_group {
    const char *heading;
    const struct option_row *rows;
    unsigned n;
};

/* A name and its description, for exit codes and the environment. An array ends with {NULL,
 * NULL}. */
struct option_note {
    const char *what, *means;
};

/* Overrides the default of a row of `base`. An array ends with {NULL}. */
struct option_default {
    const char *name, *initial;
    bool hidden; /* not supported here: left out of --help */
};

struct option_program {
    const char *name;               /* "trib-perf" */
    const char *summary;            /* one line, as of a manual page: no full stop */
    const char *synopsis;           /* the synopsis behind the name; a line for each form */
    const char *text;               /* paragraphs, separated by empty lines */
    const struct option_row *words; /* arguments in order; NULL: those of base */
    unsigned n_words;
    bool words_end_options; /* behind the first argument, words are not options */
    const struct option_group *groups;
    const struct option_program *base;     /* a program whose options are accepted too; NULL:
                                              none */
    const struct option_default *defaults; /* overrides of base's defaults; NULL: none */
    const struct option_note *exits, *environment;
    const char *see; /* "trib(1), trib-sim(1)" */
};

enum option_action { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_MAN, OPTIONS_COMPLETE };

struct option_result {
    enum option_action action;
    int rest;                          /* index in argv of the first argument of OPTION_REST */
    unsigned n_words;                  /* arguments read before it */
    uint64_t given[OPTIONS_ROWS / 64]; /* by number of the row, see options_given() */
    char err[OPTIONS_ERR];             /* the mistake: what was found and what is expected */
    char warning[160];                 /* "": none */
};

/*
 * Reads the defaults, then argv[1..argc-1].
 *   into  the structure for the program's rows; behind it, if the program has a base, that for the base's
 * Returns 0, or -EINVAL with a sentence in r->err. --help or --version ends the reading.
 * Not thread-safe for one `into`.
 */
int options_parse(const struct option_program *p, void *const *into, int argc, char **argv,
                  struct option_result *r);

/*
 * Calls options_parse(), reports a mistake on stderr, and prints the texts of --help and --version.
 * Returns true if the program is to run. Otherwise the program must exit with *code: 0, 1 (standard output
 * failed) or 2 (a mistake).
 */
bool options_begin(const struct option_program *p, void *const *into, int argc, char **argv,
                   struct option_result *r, int *code);

/* Reports a mistake that the program found itself, in the form of options_begin(). Returns 2. */
int options_wrong(const struct option_program *p, const char *err);

/* Whether the option with this long name was on the command line. */
bool options_given(const struct option_program *p, const struct option_result *r, const char *name);

/* The first option that was given, in order of the tables, whose long name is not in `names` (which ends
 * with NULL). NULL: there is none. */
const struct option_row *options_given_other(const struct option_program *p,
                                             const struct option_result *r,
                                             const char *const *names);

/* Reads one value of a row into a structure. 0, or -EINVAL with a sentence in err. */
int options_take(void *into, const struct option_row *r, const char *label, const char *value,
                 char *err);

/* Lists the members of a set: first those in the order of the command line, then the others by number.
 * list has room for OPTION_SET_MAX. Returns how many. */
unsigned options_ordered(const struct option_order *o, unsigned set, uint8_t *list);

/* "4K" "64KiB" "1.5M" "4MB" "123": K, M, G, T and their iB forms are binary; kB or KB, MB, GB, TB
 * decimal. 0 or -EINVAL. */
int options_size(const char *s, uint64_t *bytes);

/* Prints the text of --help; the manual page in man(7); and for completion a line for each option and
 * argument: name, short name, value, possible values, help, separated by tabs. */
void options_help(const struct option_program *p, FILE *out);
void options_man(const struct option_program *p, FILE *out);
void options_complete(const struct option_program *p, FILE *out);

#endif

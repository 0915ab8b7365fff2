/* SPDX-License-Identifier: BSD-3-Clause */
/* Each key takes its least value and its largest, and refuses what is below and above by name. */
#include "fabric/build.h"
#include "tests/fabric/load.h"

#define SWITCH    "single_switch = { hosts = 2; };\n"
#define DEFAULTS  "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; "
#define TIME      ", with its unit, as \"300ns\" or \"1.5us\""
#define SIZE      ": bytes, or with a unit, as \"64KiB\""
#define RATE      ", with its unit, as \"400Gb/s\" or \"50GB/s\""
#define PROB      "a probability from 0.0 to 1.0, or as \"0.1%\""
#define SHARE     "a share from 0.0 to 1.0, or as \"0.1%\""
#define LINK_RATE "a rate from 1Mb/s to 100Tb/s" RATE

/* A conf with a key's value between before and behind; values separated by blanks. */
static const struct {
    const char *before, *key, *behind;
    const char *good, *bad;
    const char *expected;
} rows[] = {
    {LINKS SWITCH, "slots_per_host", ";", "1 250", "0 251", "an integer from 1 to 250"},
    {LINKS SWITCH, "multicast_per_host", ";", "1 1024", "0 1025", "an integer from 1 to 1024"},
    {LINKS SWITCH, "mtu", ";", "256 512 1024 2048 4096", "128 255 257 300 8192 0 true",
     "256, 512, 1024, 2048 or 4096"},
    {LINKS SWITCH, "dilation", ";", "\"auto\" 1 1000000000 1000000000L",
     "0 -1 1000000001 \"Auto\" 1.5 true", "\"auto\" or an integer from 1 to 1000000000"},
    {LINKS SWITCH, "ecmp", ";", "\"hash\" \"balanced\"", "\"\" \"Hash\" 0",
     "\"hash\" or \"balanced\""},
    {SWITCH "link_defaults = { latency = \"1us\";", "rate", "; };",
     "\"1Mb/s\" \"100Tb/s\" \"12.5TB/s\"", "\"999999b/s\" \"100000000000001b/s\" \"1\" 1",
     LINK_RATE},
    {SWITCH "link_defaults = { rate = \"1Gb/s\";", "latency", "; };", "\"0ns\" \"1ps\" \"1s\"",
     "\"1000000000001ps\" \"1\" 1", "a time up to 1s" TIME},
    {SWITCH DEFAULTS, "buffer", "; };",
     "\"9216B\" \"9216\" 9216 \"16GiB\" 17179869184L \"17179869184\"",
     "\"9215B\" 9215 -1 17179869185L \"17179869185\" \"1e9\" \"\" true",
     "a size from 9216B to 16GiB" SIZE},
    {SWITCH DEFAULTS, "buffer_frames", "; };", "2 16777216", "1 16777217 -2 2.0",
     "an integer from 2 to 16777216"},
    {SWITCH DEFAULTS "buffer = \"16GiB\";", "ecn", "; };", "\"1B\" 1 \"16GiB\"",
     "0 \"0B\" 17179869185L", "a size from 1B to 16GiB" SIZE},
    {SWITCH DEFAULTS "buffer = \"16GiB\"; ecn = 1;", "ecn_max", "; };", "1 \"16GiB\"",
     "0 17179869185L", "a size from 1B to 16GiB" SIZE},
    {SWITCH DEFAULTS "ecn = 1;", "ecn_prob", "; };", "0 1 0.0 1.0 \"100%\"",
     "-0.1 1.1 2 \"101%\" -1 true", PROB},
    {SWITCH DEFAULTS, "pfc", "; };", "true false", "0 1 \"true\"", "true or false"},
    {SWITCH DEFAULTS, "loss", "; };", "0 1", "1.5", PROB},
    {SWITCH DEFAULTS, "dup", "; };", "0 1", "1.5", PROB},
    {SWITCH DEFAULTS, "reorder", "; };", "0 1", "1.5", PROB},
    {SWITCH DEFAULTS, "corrupt", "; };", "0 1", "1.5", PROB},
    {SWITCH DEFAULTS, "jitter", "; };", "\"0ps\" \"1s\"", "\"1000000000001ps\"",
     "a time up to 1s" TIME},
    {SWITCH DEFAULTS, "efficiency", "; };", "0.01 1", "1.5 -1", SHARE},
    {SWITCH DEFAULTS, "cables", "; };", "1 20", "0 1025", "an integer from 1 to 1024"},
    {SWITCH "link_defaults = { rate = \"1Gb/s\"; latency = \"300ns\"; ecn = 1; };\ndcqcn = { ",
     "min_time_between_cnps", "; };", "\"0us\" \"1s\"", "\"1000000000001ps\"",
     "a time up to 1s" TIME},
    {SWITCH "link_defaults = { rate = \"1Gb/s\"; latency = \"300ns\"; ecn = 1; };\ndcqcn = { ",
     "rate_reduce_monitor_period", "; };", "\"0us\" \"1s\"", "\"1000000000001ps\"",
     "a time up to 1s" TIME},
    {SWITCH "link_defaults = { rate = \"1Gb/s\"; latency = \"300ns\"; ecn = 1; };\ndcqcn = { ",
     "dce_tcp_rtt", "; };", "\"100ns\" \"1s\"", "\"99999ps\" \"1000000000001ps\"",
     "a time from 1e-07s to 1s" TIME},
    {SWITCH "link_defaults = { rate = \"1Gb/s\"; latency = \"300ns\"; ecn = 1; };\ndcqcn = { ",
     "dce_tcp_g", "; };", "1 1023", "0 1024", "an integer from 1 to 1023"},
    {SWITCH "link_defaults = { rate = \"1Gb/s\"; latency = \"300ns\"; ecn = 1; };\ndcqcn = { ",
     "rpg_time_reset", "; };", "\"1us\" \"1s\"", "\"999999ps\" \"1000000000001ps\"",
     "a time from 1e-06s to 1s" TIME},
    {SWITCH "link_defaults = { rate = \"1Gb/s\"; latency = \"300ns\"; ecn = 1; };\ndcqcn = { ",
     "rpg_byte_reset", "; };", "64 \"1024GiB\"", "63 1099511627777L",
     "a size from 64B to 1024GiB" SIZE},
    {SWITCH "link_defaults = { rate = \"1Gb/s\"; latency = \"300ns\"; ecn = 1; };\ndcqcn = { ",
     "rpg_threshold", "; };", "1 31", "0 32", "an integer from 1 to 31"},
    {SWITCH "link_defaults = { rate = \"1Gb/s\"; latency = \"300ns\"; ecn = 1; };\ndcqcn = { ",
     "rpg_ai_rate", "; };", "\"1Mb/s\" \"100Tb/s\"", "\"999999b/s\" \"100000000000001b/s\"",
     LINK_RATE},
    {SWITCH "link_defaults = { rate = \"1Gb/s\"; latency = \"300ns\"; ecn = 1; };\ndcqcn = { ",
     "rpg_hai_rate", "; };", "\"1Mb/s\" \"100Tb/s\"", "\"999999b/s\" \"100000000000001b/s\"",
     LINK_RATE},
    {LINKS SWITCH, "pfc_watchdog", ";", "\"1us\" \"60s\"",
     "\"999999ps\" \"60000000000001ps\" \"1\" 1 true",
     "a time from 1us to 60s, with its unit, as \"200ms\""},
    {LINKS SWITCH "reduce = { ", "seed", "; };", "0 4294967295L", "-1 4294967296L",
     "an integer from 0 to 4294967295"},
    {LINKS SWITCH "reduce = { ", "groups", "; };", "1 65535", "0 65536",
     "an integer from 1 to 65535"},
    {LINKS SWITCH "reduce = { window = 1; ", "slots", "; };", "1 16777216", "0 16777217",
     "an integer from 1 to 16777216"},
    {LINKS SWITCH "reduce = { slots = 65535; ", "window", "; };", "1 65535", "0 65536",
     "an integer from 1 to 65535"},
    {LINKS SWITCH "reduce = { ", "host_share", "; };", "0 1", "1.5", SHARE},
    {LINKS SWITCH "reduce = { ", "join_timeout", "; };", "\"1ms\" \"3600s\"",
     "\"999999999ps\" \"3600000000000001ps\"", "a time from 0.001s to 3600s" TIME},
    {LINKS SWITCH "reduce = { ", "memory", "; };", "1024 1073741824", "1023 1073741825",
     "an integer from 1024 to 1073741824"},
    {LINKS SWITCH "reduce = { ", "rounding", "; };",
     "\"nearest\" \"zero\" \"up\" \"down\" \"stochastic\"", "\"even\" 0",
     "\"nearest\", \"zero\", \"up\", \"down\" or \"stochastic\""},
    {LINKS SWITCH "reduce = { ", "order", "; };", "\"child\" \"arrival\"", "\"any\" true",
     "\"child\" or \"arrival\""},
    {LINKS SWITCH "reduce = { ", "protocol", "; };", "\"x\" \"./x.so\"", "\"\" 5",
     "the name of a protocol, or the path of a shared object with a /"},
    {LINKS SWITCH "transport = { ", "window", "; };", "1 1048576", "0 1048577",
     "an integer from 1 to 1048576"},
    {LINKS SWITCH "transport = { ", "ack_timeout", "; };", "\"8192ns\" \"8796093022208ns\"",
     "\"8191999ps\" \"8796093022208001ps\"", "a time from 8.192e-06s to 8796.09s" TIME},
    {LINKS SWITCH "transport = { ", "retry_count", "; };", "0 7", "-1 8", "an integer from 0 to 7"},
    {LINKS SWITCH "transport = { ", "early_slots", "; };", "true false", "0", "true or false"},
    {LINKS SWITCH "costs = { ", "gpu", "; };", "\"0ns\" \"1s\"", "\"1000000000001ps\"",
     "a time up to 1s" TIME},
    {LINKS SWITCH "costs = { ", "hca", "; };", "\"0ns\" \"1s\"", "\"1000000000001ps\"",
     "a time up to 1s" TIME},
    {LINKS SWITCH "costs = { ", "switch", "; };", "\"0ns\" \"1s\"", "\"1000000000001ps\"",
     "a time up to 1s" TIME},
    {LINKS SWITCH "costs = { network = { ", "launch", "; }; };", "\"0ns\" \"1s\"",
     "\"1000000000001ps\"", "a time up to 1s" TIME},
    {LINKS SWITCH "costs = { nvlink = { ", "step", "; }; };", "\"0ns\" \"1s\"",
     "\"1000000000001ps\"", "a time up to 1s" TIME},
    {LINKS SWITCH "costs = { network = { step = \"1us\"; ll = { rate = \"1Gb/s\"; ", "step",
     "; }; }; };", "\"0ns\" \"1s\"", "\"1000000000001ps\"", "a time up to 1s" TIME},
    {LINKS SWITCH "costs = { network = { step = \"1us\"; ll128 = { step = \"1us\"; ", "rate",
     "; }; }; };", "\"1Mb/s\" \"100Tb/s\"", "\"999999b/s\" \"100000000000001b/s\"", LINK_RATE},
    {LINKS SWITCH "costs = { multimem = { ", "launch", "; }; };", "\"0ns\" \"1s\"",
     "\"1000000000001ps\"", "a time up to 1s" TIME},
    {LINKS SWITCH "costs = { multimem = { ", "load", "; }; };", "0.01 1 1.0", "0.0099 0",
     "a share of the link's rate from 0.01 to 1"},
    {LINKS SWITCH "costs = { aggregate = { bytes = 1; ", "time", "; }; };", "\"0ns\" \"1s\"",
     "\"1000000000001ps\"", "a time up to 1s" TIME},
    {LINKS SWITCH "costs = { aggregate = { time = \"1us\"; ", "bytes", "; }; };", "1 1048576",
     "0 1048577", "an integer from 1 to 1048576"},
    {LINKS SWITCH "costs = { aggregate = { time = \"1us\"; bytes = 1; ", "until", "; }; };",
     "1 \"1024GiB\"", "0 1099511627777L", "a size from 1B to 1024GiB" SIZE},
};

/* The last word of a key: "single_switch = { hosts" is one of a group. */
static const char *last_word(const char *key)
{
    const char *blank = strrchr(key, ' ');

    return blank ? blank + 1 : key;
}

/* As messages show a value. */
static void as_found(const char *value, char *out, size_t size)
{
    size_t n = strlen(value);
    double v;

    if (*value != '"' && strchr(value, '.') && sscanf(value, "%lf", &v) == 1)
        snprintf(out, size, "%g", v);
    else
        snprintf(out, size, "%.*s", (int)(value[n - 1] == 'L' ? n - 1 : n), value);
}

static void ends_are_taken_and_what_is_beyond_is_refused(void **state)
{
    static struct fab_errors errs;

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++)
        for (unsigned bad = 0; bad < 2; bad++) {
            char values[200], *save = NULL;

            snprintf(values, sizeof(values), "%s", bad ? rows[i].bad : rows[i].good);
            for (char *v = strtok_r(values, " ", &save); v; v = strtok_r(NULL, " ", &save)) {
                char text[1024], want[300], found[60];
                struct fabric *f;

                snprintf(text, sizeof(text), "%s%s = %s%s", rows[i].before, rows[i].key, v,
                         rows[i].behind);
                as_found(v, found, sizeof(found));
                snprintf(want, sizeof(want), "%s: found %s, expected %s", last_word(rows[i].key),
                         found, rows[i].expected);
                f = fabric_load_string(text, "keys.conf", &errs);
                if (bad ? f || errs.total != 1 || strcmp(errs.e[0].text, want) != 0 : !f) {
                    fab_errors_print(&errs, stderr);
                    fail_msg("%s\nexpected %s", text, bad ? want : "no mistake");
                }
                fabric_free(f);
            }
        }
}

/* The text of the only mistake of a conf. */
static const char *mistake(const char *text)
{
    static struct fab_errors errs;

    assert_null(fabric_load_string(text, "keys.conf", &errs));
    if (errs.total != 1)
        fab_errors_print(&errs, stderr);
    assert_int_equal(errs.total, 1);
    return errs.e[0].text;
}

static void what_was_found_is_shown_by_its_kind(void **state)
{
    static const struct {
        const char *value, *found;
    } kinds[] = {{"-7", "-7"},
                 {"5000000000L", "5000000000"},
                 {"1.5", "1.5"},
                 {"true", "true"},
                 {"\"x\"", "\"x\""},
                 {"{ a = 1; }", "a group { }"},
                 {"[ 1 ]", "an array [ ]"},
                 {"( 1 )", "a list ( )"},
                 {"\"123456789 123456789 123456789 123456789 123456789 123456789 123\"",
                  "\"123456789 123456789 123456789 123456789 123456789 123456789 \""}};

    (void)state;
    for (unsigned i = 0; i < LEN(kinds); i++) {
        char text[300], want[300];

        snprintf(text, sizeof(text), LINKS SWITCH "ecmp = %s;", kinds[i].value);
        snprintf(want, sizeof(want), "ecmp: found %s, expected \"hash\" or \"balanced\"",
                 kinds[i].found);
        assert_string_equal(mistake(text), want);
    }
}

static void names_are_letters_digits_and_three_signs(void **state)
{
    static const char *const good[] = {"a", "0", "a_b.c-d", "Z9",
                                       "1234567890123456789012345678901"};
    static const char *const bad[] = {
        "", "_a", ".a", "-a", "a b", "a/b", "a:0", "a@b", "12345678901234567890123456789012"};

    (void)state;
    for (unsigned i = 0; i < LEN(good); i++) {
        char text[300];
        struct fabric *f;

        snprintf(text, sizeof(text), LINKS SWITCH "name = \"%s\";", good[i]);
        f = load_text(text);
        assert_string_equal(f->name, good[i]);
        fabric_free(f);
    }
    for (unsigned i = 0; i < LEN(bad); i++) {
        char text[300], want[300];

        snprintf(text, sizeof(text), LINKS SWITCH "name = \"%s\";", bad[i]);
        snprintf(want, sizeof(want), "name: found \"%s\", expected a name of 1 to 31 letters",
                 bad[i]);
        assert_memory_equal(mistake(text), want, strlen(want));
    }
}

/* Without a name of its own a fabric has that of its file. */
static void the_files_stem_is_the_default_name(void **state)
{
    static const struct {
        const char *path, *name;
    } stems[] = {{"a/b.conf", "b"},
                 {"b", "b"},
                 {"/x.y/z", "z"},
                 {"x.y.conf", "x.y"},
                 {".conf", "fconf"},
                 {"a b&c.conf", "a-b-c"},
                 {"-x.conf", "fx"},
                 {"", "fabric"},
                 {"a/", "fabric"},
                 {"12345678901234567890123456789012.conf", "1234567890123456789012345678901"}};

    (void)state;
    for (unsigned i = 0; i < LEN(stems); i++) {
        static struct fab_errors errs;
        struct fabric *f = checked(fabric_load_string(LINKS SWITCH, stems[i].path, &errs), &errs);

        assert_string_equal(f->name, stems[i].name);
        fabric_free(f);
    }
}

static void an_unknown_key_is_named_with_those_there_are(void **state)
{
    (void)state;
    assert_string_equal(mistake(LINKS SWITCH "costs = { xyz = 1; };"),
                        "found unknown key \"xyz\", expected one of: gpu, hca, switch, nvlink, "
                        "multimem, network, aggregate");
    assert_string_equal(mistake(LINKS SWITCH "costs = { Switch_ = 1; };"),
                        "found unknown key \"Switch_\", expected \"switch\"?");
}

struct defaults {
    uint64_t rate, size;
    int64_t time;
    uint32_t count, choice, left;
    bool flag;
    double share;
};

/* By every type; what has no default, or one that its reader takes, is left as it is. */
static void defaults_are_read_as_a_file_has_them(void **state)
{
#define D(field) offsetof(struct defaults, field)
    static const char *const names[] = {"a", "b", "c", NULL};
    static const struct key keys[] = {
        RANGE_KEY("rate", KEY_RATE, D(rate), 1, 1ull << 40, "400Gb/s"),
        RANGE_KEY("size", KEY_SIZE, D(size), 1, 1 << 20, "64KiB"),
        RANGE_KEY("time", KEY_TIME, D(time), 0, 1000000, "1.5ns"),
        RANGE_KEY("count", KEY_UINT, D(count), 1, 4096, "4096"),
        CHOICE_KEY("choice", D(choice), names, "c"),
        PLAIN_KEY("flag", KEY_BOOL, D(flag), "true"),
        PLAIN_KEY("share", KEY_SHARE, D(share), "75%"),
        RANGE_KEY("left", KEY_UINT, D(left), 1, 9, NULL),
        OWN_KEY_FROM("own", "auto"),
    };
#undef D
    struct defaults d = {.left = 7};

    (void)state;
    keys_initial(keys, LEN(keys), &d);
    assert_int_equal(d.rate, 400000000000);
    assert_int_equal(d.size, 65536);
    assert_int_equal(d.time, 1500);
    assert_int_equal(d.count, 4096);
    assert_int_equal(d.choice, 2);
    assert_true(d.flag);
    assert_true(d.share == 0.75);
    assert_int_equal(d.left, 7);
    assert_string_equal(keys_initial_of(keys, LEN(keys), "own"), "auto");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_taken_and_what_is_beyond_is_refused),
        cmocka_unit_test(what_was_found_is_shown_by_its_kind),
        cmocka_unit_test(names_are_letters_digits_and_three_signs),
        cmocka_unit_test(the_files_stem_is_the_default_name),
        cmocka_unit_test(an_unknown_key_is_named_with_those_there_are),
        cmocka_unit_test(defaults_are_read_as_a_file_has_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

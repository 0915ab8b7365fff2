/* SPDX-License-Identifier: BSD-3-Clause */
/* Protocols in shared objects: what loads, what a conf may name, and in which words the rest is
 * refused. The object is the example's (examples/protocol/tally.c), as bytes in this program. */
#include "protocols/host/load.h"
#include "tests/fabric/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern const char tally_begin[] __asm__("_binary_tally_so_start"), tally_end[] __asm__(
                                                                       "_binary_tally_so_end");

static char dir[] = "/tmp/test_load.XXXXXX", err[PROTO_CONF_TEXT], expected[PROTO_CONF_TEXT];

/* Valid until the call after the next. */
static const char *in_dir(const char *name)
{
    static char path[2][128];
    static unsigned n;

    n = !n;
    snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
    return path[n];
}

static void put_file(const char *name, const char *bytes, size_t n)
{
    FILE *f = fopen(in_dir(name), "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    assert_int_equal(chmod(in_dir(name), 0600), 0);
}

static int make_dir(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    put_file("tally.so", tally_begin, (size_t)(tally_end - tally_begin));
    put_file("another.so", tally_begin, (size_t)(tally_end - tally_begin));
    put_file("text.so", "no object at all", 16);
    return 0;
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"tally.so", "another.so", "text.so"};

    (void)state;
    for (unsigned i = 0; i < LEN(names); i++)
        unlink(in_dir(names[i]));
    return rmdir(dir);
}

static void assert_refused(const char *path, const char *says)
{
    err[0] = '\0';
    assert_int_equal(proto_load(path, err), -ENOENT);
    assert_string_equal(err, says);
}

static void what_is_no_protocol_is_not_loaded(void **state)
{
    (void)state;
    assert_refused("/nowhere/x.so",
                   "/nowhere/x.so: cannot open shared object file: No such file or directory");
    snprintf(expected, sizeof(expected),
             "%s: found a file that is no ELF object, expected a "
             "shared object",
             in_dir("text.so"));
    assert_refused(in_dir("text.so"), expected);
    assert_refused("libjansson.so.4", "libjansson.so.4: found no symbol trib_protocol in it");
    assert_refused("libnowhere.so.9", "libnowhere.so.9: cannot open shared object file: No such "
                                      "file or directory");
}

/* ---- what a conf names: before anything is loaded, the objects' seats are free ---- */

/* The line of `reduce` is the second. */
static struct fabric *fabric_of(const char *conf, const char *protocol, const char *keys)
{
    static struct fab_errors errs;
    char text[512];

    snprintf(text, sizeof(text),
             LINKS "reduce = { protocol = \"%s\";\n%s };\nsingle_switch = { hosts = 2; };",
             protocol, keys);
    return checked(fabric_load_string(text, conf, &errs), &errs);
}

static int setup(const char *conf, const char *protocol, const char *keys)
{
    struct fabric *f = fabric_of(conf, protocol, keys);
    const struct fab_protocol *p = f->nodes[f->switches[0]].reduce.protocol;
    int rc;

    assert_int_equal(p->seat, -1);
    err[0] = '\0';
    rc = proto_setup(f, err);
    rc = rc ? rc : p->seat;
    assert_int_equal(p->seat, rc < 0 ? -1 : rc);
    fabric_free(f);
    return rc;
}

static void assert_mistake(const char *protocol, const char *keys, const char *says)
{
    assert_int_equal(setup("x.conf", protocol, keys), -EINVAL);
    assert_string_equal(err, says);
}

static void protocols_of_the_program_have_seats(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 1, 1, "");

    (void)state;
    assert_int_equal(proto_setup(f, err), 0); /* none is named */
    fabric_free(f);
    assert_int_equal(setup("x.conf", "switchml", ""), 0);
    assert_int_equal(setup("x.conf", "ps", ""), 1);
    assert_int_equal(setup("x.conf", "atp", ""), 2);
    assert_string_equal(err, "");
    assert_mistake("tally", "",
                   "x.conf:2: protocol: found \"tally\", expected switchml, ps, atp, or the path "
                   "of a shared object with a /");
}

static void objects_that_do_not_load_are_mistakes_of_the_line(void **state)
{
    (void)state;
    assert_mistake("./nowhere.so", "",
                   "x.conf:2: protocol: ./nowhere.so: cannot open shared object file: No such "
                   "file or directory");
    snprintf(expected, sizeof(expected),
             "x.conf:2: protocol: %s: found a file that is no ELF object, expected a shared object",
             in_dir("text.so"));
    assert_mistake(in_dir("text.so"), "", expected);
}

static void what_others_can_write_is_not_run(void **state)
{
    (void)state;
    assert_int_equal(chmod(in_dir("tally.so"), 0622), 0);
    assert_int_equal(setup("x.conf", in_dir("tally.so"), ""), -EINVAL);
    snprintf(expected, sizeof(expected), "x.conf:2: protocol: %s: found a file of user %u with ",
             in_dir("tally.so"), (unsigned)geteuid());
    assert_true(strstr(err, expected) == err);
    assert_int_equal(chmod(in_dir("tally.so"), 0600), 0);
    for (unsigned i = 0; i < PROTO_SEATS; i++)
        assert_null(proto_object(i));
}

/* ---- the example ---- */

static void an_object_has_a_seat_and_its_file(void **state)
{
    const char *path = in_dir("tally.so");

    (void)state;
    /* Beside the conf, wherever this runs; the path that is loaded is told. */
    assert_int_equal(setup(in_dir("x.conf"), "./tally.so", ""), 3);
    assert_string_equal(err, "");
    assert_string_equal(proto_object(3), in_dir("./tally.so"));
    assert_int_equal(proto_load(path, err), 3);
    assert_string_equal(proto_object(3), path);
    assert_int_equal(setup("x.conf", path, ""), 3);
    assert_int_equal(setup("nowhere/x.conf", path, ""), 3);
    assert_int_equal(setup("x.conf", "tally", ""), 3); /* it has a name now */
    for (unsigned i = 0; i < PROTO_SEATS; i++)
        assert_true(i == 3 || !proto_object(i));
    assert_null(proto_object(PROTO_SEATS));
    assert_null(proto_object(~0u));
}

static void a_relative_path_is_found_from_here_too(void **state)
{
    char here[256];

    (void)state;
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(setup("/nowhere/x.conf", "./tally.so", ""), 3);
    assert_string_equal(proto_object(3), "./tally.so");
    assert_int_equal(chdir(here), 0);
}

static void a_second_of_the_name_is_refused(void **state)
{
    (void)state;
    assert_int_equal(proto_load(in_dir("another.so"), err), -EEXIST);
    snprintf(expected, sizeof(expected), "%s: there is another protocol \"tally\"",
             in_dir("another.so"));
    assert_string_equal(err, expected);
    snprintf(expected, sizeof(expected),
             "x.conf:2: protocol: %s: there is another protocol \"tally\"", in_dir("another.so"));
    assert_mistake(in_dir("another.so"), "", expected);
    assert_string_equal(proto_object(3), "./tally.so");
}

/* tally has slots of 1 to 1024, which is a key of `reduce`, too, as is groups. */
static void keys_are_checked_line_by_line(void **state)
{
    (void)state;
    assert_int_equal(setup("x.conf", "tally", "slots = 1; window = 1;"), 3);
    assert_int_equal(setup("x.conf", "tally", "slots = 1024;"), 3);
    assert_int_equal(setup("x.conf", "tally", "groups = 9; memory = 2000;"), 3);
    assert_mistake("tally", "slots = 1025;", "x.conf:3: slots: found 1025, expected 1 to 1024");
    assert_mistake("tally", "\nslots = 1025;\nlots = 3;",
                   "x.conf:4: slots: found 1025, expected 1 to 1024"); /* the first */
    assert_mistake("tally", "lots = 3;",
                   "x.conf:3: found unknown key \"lots\", expected one of protocol tally's: slots");
    assert_mistake("tally", "slots = 2; window = 1;\nlots = 3;",
                   "x.conf:4: found unknown key \"lots\", expected one of protocol tally's: slots");
    assert_mistake("ps", "lots = 3;",
                   "x.conf:3: found unknown key \"lots\", expected one of protocol ps's: servers, "
                   "window, packet, timeout_us, patience_ms");
}

/* Every switch that names one is asked. */
static void each_switch_may_name_its_own(void **state)
{
    static const char *const text =
        LINKS "nodes = ( { name = \"s0\"; role = \"spine\"; reduce = { protocol = \"%s\"; }; },\n"
              "  { name = \"s1\"; role = \"leaf\"; reduce = false; }, { name = \"s2\"; role = "
              "\"leaf\"; reduce = { protocol = "
              "\"%s\"; }; },\n"
              "  { name = \"a\"; kind = \"host\"; } );\n"
              "links = ( { a = \"a\"; b = \"s1\"; }, { a = (\"s1\", \"s2\"); b = \"s0\"; } );";
    char conf[1024];
    struct fabric *f;

    (void)state;
    snprintf(conf, sizeof(conf), text, "ps", "tally");
    f = load_text(conf);
    assert_int_equal(proto_setup(f, err), 0);
    assert_int_equal(fabric_node(f, "s0")->reduce.protocol->seat, 1);
    assert_int_equal(fabric_node(f, "s2")->reduce.protocol->seat, 3);
    fabric_free(f);
    snprintf(conf, sizeof(conf), text, "wrong", "worse");
    f = load_text(conf);
    assert_int_equal(proto_setup(f, err), -EINVAL);
    assert_non_null(strstr(err, "test.conf:2: protocol: found \"wrong\", expected switchml, ps, "
                                "atp, tally, or the path"));
    fabric_free(f);
}

int main(void)
{
    /* In this order: what is loaded stays. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_protocol_is_not_loaded),
        cmocka_unit_test(protocols_of_the_program_have_seats),
        cmocka_unit_test(objects_that_do_not_load_are_mistakes_of_the_line),
        cmocka_unit_test(what_others_can_write_is_not_run),
        cmocka_unit_test(an_object_has_a_seat_and_its_file),
        cmocka_unit_test(a_relative_path_is_found_from_here_too),
        cmocka_unit_test(a_second_of_the_name_is_refused),
        cmocka_unit_test(keys_are_checked_line_by_line),
        cmocka_unit_test(each_switch_may_name_its_own),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

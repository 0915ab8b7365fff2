/* SPDX-License-Identifier: BSD-3-Clause */
/* What is set for NCCL on a host, and for an isolated program that asks for the secret of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/sandbox/enter_secret.h"
#include "host/sandbox/nccl_env.h"
#include "tests/host/sandbox/listing.h"

static const char *const names[] = {"TRIB_NCCL_HOSTID",  "NCCL_HOSTID",           "NCCL_IB_HCA",
                                    "NCCL_IB_GID_INDEX", "NCCL_SOCKET_IFNAME",    "NCCL_GIN_TYPE",
                                    "TRIB_STORE_SECRET", "TRIB_STORE_SECRET_FILE"};

static int clear(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    return 0;
}

static void assert_env(const char *name, const char *value)
{
    const char *found = getenv(name);

    if (strcmp(found ? found : "(none)", value ? value : "(none)") != 0)
        fail_msg("found %s=%s, expected %s", name, found ? found : "(none)",
                 value ? value : "none");
}

static struct fabric fabric(const char *name)
{
    struct fabric f = {.n_machines = 0};

    snprintf(f.name, sizeof(f.name), "%s", name);
    return f;
}

static void what_nccl_needs_is_set(void **state)
{
    struct fabric f = fabric("rim");

    (void)state;
    assert_int_equal(nccl_env_set(&f, "h3"), 0);
    assert_env("NCCL_HOSTID", "h3.rim");
    assert_env("TRIB_NCCL_HOSTID", "h3.rim");
    assert_env("NCCL_IB_HCA", "trib");
    assert_env("NCCL_IB_GID_INDEX", "0");
    assert_env("NCCL_SOCKET_IFNAME", "lo");
    assert_env("NCCL_GIN_TYPE", "2");
}

/* Their ranks are not at this one's loopback. */
static void of_several_machines_the_interface_is_free(void **state)
{
    struct fabric f = fabric("rim");

    (void)state;
    f.n_machines = 1;
    assert_int_equal(nccl_env_set(&f, "h3"), 0);
    assert_env("NCCL_SOCKET_IFNAME", NULL);
    assert_env("NCCL_GIN_TYPE", "2");
}

static void what_a_user_has_set_stays(void **state)
{
    struct fabric f = fabric("rim");

    (void)state;
    for (unsigned i = 1; i < 6; i++)
        setenv(names[i], i & 1 ? "mine" : "", 1);
    assert_int_equal(nccl_env_set(&f, "h3"), 0);
    for (unsigned i = 1; i < 6; i++)
        assert_env(names[i], i & 1 ? "mine" : "");
    assert_env("TRIB_NCCL_HOSTID", NULL);
}

/* A value that trib exec has set for the outer host is replaced by the inner host's; a user's own
 * value is not. */
static void the_outer_host_is_no_choice_of_the_user(void **state)
{
    struct fabric f = fabric("rim");

    (void)state;
    assert_int_equal(nccl_env_set(&f, "h3"), 0);
    assert_int_equal(nccl_env_set(&f, "h4"), 0);
    assert_env("NCCL_HOSTID", "h4.rim");
    assert_env("TRIB_NCCL_HOSTID", "h4.rim");
    setenv("NCCL_HOSTID", "mine", 1);
    assert_int_equal(nccl_env_set(&f, "h5"), 0);
    assert_env("NCCL_HOSTID", "mine");
    assert_env("TRIB_NCCL_HOSTID", "h4.rim");
    unsetenv("NCCL_HOSTID");
    assert_int_equal(nccl_env_set(&f, "h5"), 0);
    assert_env("NCCL_HOSTID", "h5.rim");
}

/* 64 bytes hold host, dot, fabric and the end. */
static void a_name_that_does_not_fit_is_refused(void **state)
{
    struct fabric f = fabric("0123456789012345678901234567890");
    char host[] = "01234567890123456789012345678901";

    (void)state;
    assert_int_equal(nccl_env_set(&f, host), -ENAMETOOLONG);
    assert_env("NCCL_HOSTID", NULL);
    assert_env("NCCL_IB_HCA", NULL);
    host[31] = 0;
    assert_int_equal(nccl_env_set(&f, host), 0);
    assert_env("NCCL_HOSTID", "0123456789012345678901234567890.0123456789012345678901234567890");
}

/* ---- the secret ---- */

static void the_users_own_secret_is_handed_over(void **state)
{
    struct fabric f = fabric("rim");
    struct rundir rd;
    char path[RUN_PATH + 64], text[80] = "", was[80];
    FILE *file;

    (void)state;
    listed_run(&rd);
    setenv("XDG_RUNTIME_DIR", rd.path, 1);
    snprintf(path, sizeof(path), "%s/tributary-%u/store.secret", rd.path, (unsigned)geteuid());
    snprintf(f.trunk_key, sizeof(f.trunk_key),
             "of several machines"); /* who reads it in the conf */
    enter_secret(&f);
    assert_env("TRIB_STORE_SECRET", NULL);
    assert_int_equal(access(path, F_OK), -1);
    f.trunk_key[0] = 0;
    enter_secret(&f);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    text[strcspn(text, "\n")] = 0;
    assert_int_equal(strlen(text), 64);
    assert_env("TRIB_STORE_SECRET", text);
    /* One that is set stays, and is that of a file. */
    snprintf(was, sizeof(was), "%s", "0123456789abcdef, of the user");
    setenv("TRIB_STORE_SECRET", was, 1);
    enter_secret(&f);
    assert_env("TRIB_STORE_SECRET", was);
    unsetenv("TRIB_STORE_SECRET");
    setenv("TRIB_STORE_SECRET_FILE", path, 1);
    snprintf(f.trunk_key, sizeof(f.trunk_key), "of several machines");
    enter_secret(&f);
    assert_env("TRIB_STORE_SECRET", text);
    /* What is wrong is left for the program to say. */
    f.trunk_key[0] = 0;
    unsetenv("TRIB_STORE_SECRET");
    setenv("TRIB_STORE_SECRET_FILE", "/proc/nowhere", 1);
    enter_secret(&f);
    assert_env("TRIB_STORE_SECRET", NULL);
    setenv("TRIB_STORE_SECRET", "short", 1);
    enter_secret(&f);
    assert_env("TRIB_STORE_SECRET", "short");
    unsetenv("XDG_RUNTIME_DIR");
    listed_remove(rd.path);
}

static void a_path_without_room_is_no_secret(void **state)
{
    struct fabric f = fabric("rim");
    char path[RUN_PATH + 8];

    (void)state;
    memset(path, 'x', sizeof(path));
    path[0] = '/', path[sizeof(path) - 1] = 0;
    setenv("XDG_RUNTIME_DIR", path, 1);
    enter_secret(&f);
    assert_env("TRIB_STORE_SECRET", NULL);
    unsetenv("XDG_RUNTIME_DIR");
}

/* Where a relative path that is wrong would end. */
static struct rundir here;

static int enter_own(void **state)
{
    (void)state;
    listed_run(&here);
    return chdir(here.path);
}

static int leave_own(void **state)
{
    (void)state;
    listed_remove(here.path);
    return chdir("/");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, clear, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_nccl_needs_is_set),
        TEST(of_several_machines_the_interface_is_free),
        TEST(what_a_user_has_set_stays),
        TEST(the_outer_host_is_no_choice_of_the_user),
        TEST(a_name_that_does_not_fit_is_refused),
        TEST(the_users_own_secret_is_handed_over),
        TEST(a_path_without_room_is_no_secret),
    };

    return cmocka_run_group_tests(tests, enter_own, leave_own);
}

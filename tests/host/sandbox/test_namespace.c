/* SPDX-License-Identifier: BSD-3-Clause */
/* The mounts that make a machine an emulated host, on a small machine of known names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/world.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#define BOOT_ID "01234567-89ab-cdef-0123-456789abcdef"

static void list(const struct world *w, const char *dir)
{
    fprintf(w->out, "%s:\n", dir);
    listed_dir(w->out, dir, "", w->rd.path);
}

/* As the host of the world, with the library there. */
static void show(struct world *w, unsigned pid)
{
    const char *what = "";
    int rc = show_host(&w->rd, &w->host, w->lib, pid, &what);

    fprintf(w->out, "%d %s\n", rc, what);
}

static void say_file(const struct world *w, const char *path)
{
    listed_file(w->out, path, path, w->rd.path);
}

static void say_names(const struct world *w, const char *dir)
{
    struct dirent **e;
    int n = scandir(dir, &e, NULL, alphasort);

    fprintf(w->out, "%s:", dir);
    for (int i = 0; i < n; i++)
        fprintf(w->out, " %s", e[i]->d_name);
    fputc('\n', w->out);
}

static void say_cover(const struct world *w, const char *dir)
{
    struct statvfs st;

    world_need(statvfs(dir, &st), dir);
    fprintf(w->out, "%s has %lu KiB, %s\n", dir, (unsigned long)(st.f_blocks * st.f_frsize / 1024),
            st.f_flag & ST_NOSUID ? "nosuid" : "suid");
}

/* The driver that says what is missing, by each version of the interface. */
static void say_hints(const struct world *w)
{
    static const char dir[] = "/etc/libibverbs.d/trib.driver.d";
    char path[300], to[300] = "", hint[300];
    struct dirent **e;
    int n, good = 0;

    snprintf(hint, sizeof(hint), "%s/lib/libtribhint.so", w->rd.path);
    say_names(w, "/etc/libibverbs.d");
    n = scandir(dir, &e, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, e[i]->d_name);
        memset(to, 0, sizeof(to));
        good += readlink(path, to, sizeof(to) - 1) > 0 && !strcmp(to, hint);
    }
    if (n < 0)
        return;
    fprintf(w->out, "%d of %d: %s to %s\n", good, n, e[2]->d_name, e[n - 1]->d_name);
    say_file(w, "/etc/libibverbs.d/mlx5.driver");
    say_file(w, "/etc/libibverbs.d/trib.driver");
}

/* ---- all of it ---- */

static void show_all(struct world *w)
{
    world_boot_id(w, BOOT_ID "\n");
    show(w, 0);
    say_names(w, "/sys/class");
    say_names(w, "/sys/class/infiniband");
    say_names(w, "/sys/class/infiniband_verbs");
    list(w, "/sys/class/block");
    say_file(w, "/sys/class/version");
    say_names(w, "/sys/class/net");
    say_file(w, "/sys/class/net/eth0");
    say_file(w, "/sys/class/net/trib0/device");
    say_names(w, "/sys/class/net/trib1");
    list(w, "/sys/class/pci_bus");
    say_names(w, "/sys/devices");
    list(w, "/sys/devices/mounted");
    list(w, "/sys/devices/pci0000:00");
    list(w, "/dev");
    say_hints(w);
    say_file(w, "/proc/sys/kernel/random/boot_id");
    say_cover(w, "/sys/class");
    say_cover(w, "/dev");
}

static void a_machine_without_hcas_gets_them(void **state)
{
    (void)state;
    ASSERT_WORLD(
        show_all, 2,
        "0 /proc/sys/kernel/random/boot_id\n"
        "/sys/class: . .. block infiniband infiniband_verbs net pci_bus version\n"
        "/sys/class/infiniband: . .. trib0 trib1\n"
        "/sys/class/infiniband_verbs: . .. abi_version trib0 trib1\n"
        "/sys/class/block:\n"
        "size 644: 17\n"
        "/sys/class/version 644: 1\n"
        "/sys/class/net: . .. eth0 lo trib0 trib1\n"
        "/sys/class/net/eth0 -> ../../devices/eth0\n"
        "/sys/class/net/trib0/device -> /sys/class/infiniband/trib0/device\n"
        "/sys/class/net/trib1: . .. addr_len address carrier dev_id dev_port device ifindex mtu "
        "operstate speed type\n"
        "/sys/class/pci_bus:\n"
        "0000:00 -> ../../devices/pci0000:00\n"
        "7472:01 -> /sys/devices/pci7472:00/7472:00:00.0/pci_bus/7472:01\n"
        "7472:02 -> /sys/devices/pci7472:00/7472:00:01.0/pci_bus/7472:02\n"
        "/sys/devices: . .. mounted pci0000:00 pci7472:00 system\n"
        "/sys/devices/mounted:\n"
        "inner 644: x\n"
        "/sys/devices/pci0000:00:\n"
        "class 644: 0x030000\n"
        "/dev:\n"
        "fd -> /proc/self/fd\n"
        "infiniband/ 755\n"
        "infiniband/.boot_id 444: 01234567-89ab-cdef-0000-00000a0b0c0d\n"
        "infiniband/trib0 is a device 103\n"
        "infiniband/trib1 is a device 103\n"
        "null is a device 103\n"
        "pts/ 755\n"
        "shm/ 755\n"
        "/etc/libibverbs.d: . .. mlx5.driver trib.driver trib.driver.d\n"
        "84 of 86: hint-rdmav16.so to hint-rdmav99.so\n"
        "/etc/libibverbs.d/mlx5.driver 644: driver mlx5\n"
        "/etc/libibverbs.d/trib.driver 444: driver /etc/libibverbs.d/trib.driver.d/hint\n"
        "/proc/sys/kernel/random/boot_id 444: 01234567-89ab-cdef-0000-00000a0b0c0d\n"
        "/sys/class has 4096 KiB, nosuid\n"
        "/dev has 4096 KiB, nosuid\n");
}

/* ---- machines that have some of it ---- */

static void show_beside_others(struct world *w)
{
    world_boot_id(w, BOOT_ID "\n");
    world_dir("/sys/class/infiniband");
    world_dir("/sys/class/infiniband/mlx5_0");
    world_dir("/sys/class/infiniband_verbs");
    world_dir("/sys/class/infiniband_verbs/uverbs0");
    world_dir("/dev/infiniband");
    world_text("/dev/infiniband/uverbs0", "");
    world_dir("/sys/class/net/trib0");
    world_dir("/sys/class/net/trib0/old");
    world_dir("/etc/libibverbs.d/trib.driver.d");
    world_dir("/etc/libibverbs.d/trib.driver.d/old");
    show(w, 0x12345678);
    say_names(w, "/sys/class/infiniband");
    say_names(w, "/sys/class/infiniband_verbs");
    say_names(w, "/sys/class/net/trib0");
    list(w, "/dev/infiniband");
    say_hints(w);
    say_cover(w, "/sys/class/infiniband");
    say_cover(w, "/sys/class/infiniband_verbs");
    say_cover(w, "/dev/infiniband");
    say_cover(w, "/sys/class"); /* which is not covered */
}

static void the_hcas_of_a_machine_are_covered(void **state)
{
    (void)state;
    ASSERT_WORLD(
        show_beside_others, 1,
        "0 /proc/sys/kernel/random/boot_id\n"
        "/sys/class/infiniband: . .. trib0\n"
        "/sys/class/infiniband_verbs: . .. abi_version trib0\n"
        "/sys/class/net/trib0: . .. addr_len address carrier dev_id dev_port device ifindex mtu "
        "operstate speed type\n"
        "/dev/infiniband:\n"
        ".boot_id 444: 01234567-89ab-cdef-1234-56780a0b0c0d\n"
        "trib0 is a device 103\n"
        "/etc/libibverbs.d: . .. mlx5.driver trib.driver trib.driver.d\n"
        "84 of 86: hint-rdmav16.so to hint-rdmav99.so\n"
        "/etc/libibverbs.d/mlx5.driver 644: driver mlx5\n"
        "/etc/libibverbs.d/trib.driver 444: driver /etc/libibverbs.d/trib.driver.d/hint\n"
        "/sys/class/infiniband has 4096 KiB, nosuid\n"
        "/sys/class/infiniband_verbs has 4096 KiB, nosuid\n"
        "/dev/infiniband has 4096 KiB, nosuid\n"
        "/sys/class has 1024 KiB, suid\n");
}

static void show_beside_one(struct world *w)
{
    world_dir("/sys/class/infiniband_verbs");
    world_dir("/sys/class/infiniband_verbs/uverbs0");
    world_need(rmdir("/sys/class/net/lo") || unlink("/sys/class/net/eth0") ||
                   rmdir("/sys/class/net") || unlink("/sys/class/pci_bus/0000:00") ||
                   rmdir("/sys/class/pci_bus"),
               "rmdir");
    world_text("/sys/class/net", "");                    /* no folder: nothing is shown there */
    snprintf(w->lib, sizeof(w->lib), "libtribverbs.so"); /* without a path there is no hint */
    show(w, 0);
    say_names(w, "/sys/class");
    say_names(w, "/sys/class/infiniband");
    say_names(w, "/sys/class/infiniband_verbs");
    say_hints(w);
}

static void what_a_machine_lacks_is_left_out(void **state)
{
    (void)state;
    ASSERT_WORLD(show_beside_one, 1,
                 "0 /proc/sys/kernel/random/boot_id\n"
                 "/sys/class: . .. block infiniband infiniband_verbs net version\n"
                 "/sys/class/infiniband: . .. trib0\n"
                 "/sys/class/infiniband_verbs: . .. abi_version trib0\n"
                 "/etc/libibverbs.d: . .. mlx5.driver\n");
}

static void show_without_hint(struct world *w)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/lib/libtribhint.so", w->rd.path);
    world_need(unlink(path), path);
    show(w, 0);
    say_names(w, "/etc/libibverbs.d");
}

static void show_without_drivers(struct world *w)
{
    world_tmpfs("/etc");
    show(w, 0);
    say_names(w, "/etc");
}

static void a_missing_hint_is_no_mistake(void **state)
{
    (void)state;
    ASSERT_WORLD(show_without_hint, 1,
                 "0 /proc/sys/kernel/random/boot_id\n"
                 "/etc/libibverbs.d: . .. mlx5.driver\n");
    ASSERT_WORLD(show_without_drivers, 1,
                 "0 /proc/sys/kernel/random/boot_id\n"
                 "/etc: . ..\n");
}

/* ---- mistakes ---- */

static void show_a_strange_boot_id(struct world *w)
{
    world_boot_id(w, "01234567-89ab-cdef-0123-456789abcde\n"); /* one short */
    show(w, 0);
    say_names(w, "/dev/infiniband");
}

static void show_an_empty_boot_id(struct world *w)
{
    world_boot_id(w, "");
    show(w, 0);
}

/* A kernel without it. */
static void show_without_boot_id(struct world *w)
{
    world_tmpfs("/proc/sys/kernel/random");
    show(w, 0);
    say_names(w, "/dev/infiniband");
}

static void show_a_boot_id_that_is_a_loop(struct world *w)
{
    world_tmpfs("/proc/sys/kernel/random");
    world_link("boot_id", "/proc/sys/kernel/random/boot_id");
    show(w, 0);
}

static void show_without_pci_devices(struct world *w)
{
    world_need(umount2("/sys/devices/mounted", MNT_DETACH), "umount");
    listed_remove("/sys/devices");
    show(w, 0);
}

static void show_without_class(struct world *w)
{
    listed_remove("/sys/class");
    show(w, 0);
}

static void show_without_dev(struct world *w)
{
    world_need(umount2("/dev", MNT_DETACH), "umount");
    world_tmpfs("/dev"); /* without null */
    show(w, 0);
}

/* A name of the run directory that the files of a port are to have. */
static void show_without_ports(struct world *w)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/port", w->rd.path);
    listed_remove(path);
    world_text(path, "");
    show(w, 0);
}

static void what_is_refused_is_named(void **state)
{
    (void)state;
    ASSERT_WORLD(show_a_strange_boot_id, 1,
                 "-22 /proc/sys/kernel/random/boot_id\n/dev/infiniband: . .. trib0\n");
    ASSERT_WORLD(show_an_empty_boot_id, 1, "-22 /proc/sys/kernel/random/boot_id\n");
    ASSERT_WORLD(show_without_boot_id, 1,
                 "0 /proc/sys/kernel/random/boot_id\n/dev/infiniband: . .. trib0\n");
    ASSERT_WORLD(show_a_boot_id_that_is_a_loop, 1, "-40 /proc/sys/kernel/random/boot_id\n");
    ASSERT_WORLD(show_without_pci_devices, 1, "-2 /sys/devices\n");
    ASSERT_WORLD(show_without_class, 1, "-2 /sys/class/infiniband\n");
    ASSERT_WORLD(show_without_dev, 1, "-2 /dev/infiniband\n");
    ASSERT_WORLD(show_without_ports, 1, "-1 /sys/class/infiniband\n");
}

/* ---- a process that enters ---- */

static void enter(struct world *w)
{
    const char *what = "";
    int rc = enter_host(&w->rd, &w->host, w->lib, &what);

    fprintf(w->out, "%d %s\n", rc, what);
}

static void enter_it(struct world *w)
{
    world_boot_id(w, BOOT_ID "\n");
    world_need(chdir("/sys/class"), "chdir");
    enter(w);
    say_names(w, "."); /* the new one */
    say_names(w, "/sys/class/infiniband");
    say_file(w, "/dev/infiniband/trib0");
    say_file(w, "/proc/sys/kernel/random/boot_id");
}

/* In a child, whose mounts the world does not see, as no machine does. */
static void enter_in_a_child(struct world *w)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        enter_it(w);
        fflush(w->out);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    fseek(w->out, 0, SEEK_END);
    say_names(w, "/sys/class");
    say_names(w, "/dev");
    say_file(w, "/proc/sys/kernel/random/boot_id");
}

static void a_process_enters_and_the_machine_stays(void **state)
{
    (void)state;
    ASSERT_WORLD(enter_in_a_child, 1,
                 "0 /proc/sys/kernel/random/boot_id\n"
                 ".: . .. block infiniband infiniband_verbs net pci_bus version\n"
                 "/sys/class/infiniband: . .. trib0\n"
                 "/dev/infiniband/trib0 is a device 103\n"
                 "/proc/sys/kernel/random/boot_id 444: 01234567-89ab-cdef-0000-00000a0b0c0d\n"
                 "/sys/class: . .. block net pci_bus version\n"
                 "/dev: . .. fd null pts shm\n"
                 "/proc/sys/kernel/random/boot_id 644: " BOOT_ID "\n");
}

/* The child that tries finds it out. */
static void enter_and_fail(struct world *w)
{
    world_need(umount2("/sys/devices/mounted", MNT_DETACH), "umount");
    listed_remove("/sys/devices");
    enter(w);
    say_names(w, "/sys/class");
    say_names(w, "/dev");
}

static void who_cannot_enter_is_unchanged(void **state)
{
    (void)state;
    ASSERT_WORLD(enter_and_fail, 1,
                 "-2 /sys/devices\n"
                 "/sys/class: . .. block net pci_bus version\n"
                 "/dev: . .. fd null pts shm\n");
}

/* Without a descriptor there is no child to try. */
static void enter_without_descriptors(struct world *w)
{
    int fd = open("/dev/null", O_RDONLY);

    close(fd);
    for (unsigned more = 0; more < 2; more++) {
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)fd + more, 4096});
        enter(w);
    }
}

static void who_cannot_try_is_unchanged(void **state)
{
    (void)state;
    ASSERT_WORLD(enter_without_descriptors, 1, "-24 a child process\n-24 a child process\n");
}

/* A user who may make no mounts gets a user namespace, which the boot id tells apart by the pid. */
static void enter_as_a_user(struct world *w)
{
    char path[300], expected[64];
    FILE *f;

    world_boot_id(w, BOOT_ID "\n");
    snprintf(path, sizeof(path), "%s/port", w->rd.path);
    world_need(chown(w->rd.path, 4321, 4321) || chown(path, 4321, 4321), "chown");
    world_need(setgid(4321) || setuid(4321), "setuid");
    prctl(PR_SET_DUMPABLE, 1); /* as after an exec */
    enter(w);
    say_names(w, "/sys/class/infiniband");
    fprintf(w->out, "%u %u\n", getuid(), getgid());
    f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!f || !fgets(path, sizeof(path), f))
        return;
    snprintf(expected, sizeof(expected), "01234567-89ab-cdef-%04x-%04x0a0b0c0d\n",
             (unsigned)getpid() >> 16, (unsigned)getpid() & 0xffff);
    fprintf(w->out, "%s\n", strcmp(path, expected) != 0 ? path : "its pid is in it");
    fclose(f);
}

static void a_user_enters_by_a_user_namespace(void **state)
{
    (void)state;
    if (geteuid())
        skip();
    ASSERT_WORLD(enter_as_a_user, 1,
                 "0 /proc/sys/kernel/random/boot_id\n"
                 "/sys/class/infiniband: . .. trib0\n"
                 "4321 4321\n"
                 "its pid is in it\n");
}

/* Where the machine forbids user namespaces. */
static void enter_where_it_is_forbidden(struct world *w)
{
    world_need(isolated_user_namespace(CLONE_NEWNS), "user namespace");
    world_text("/proc/sys/user/max_mnt_namespaces", "0");
    world_text("/proc/sys/user/max_user_namespaces", "0");
    enter(w);
    say_names(w, "/sys/class");
}

static void what_the_machine_forbids_is_named(void **state)
{
    (void)state;
    ASSERT_WORLD(enter_where_it_is_forbidden, 1,
                 "-28 a user namespace\n/sys/class: . .. block net pci_bus version\n");
}

#define TEST(t) cmocka_unit_test(t)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_machine_without_hcas_gets_them),  TEST(the_hcas_of_a_machine_are_covered),
        TEST(what_a_machine_lacks_is_left_out),  TEST(a_missing_hint_is_no_mistake),
        TEST(what_is_refused_is_named),          TEST(a_process_enters_and_the_machine_stays),
        TEST(who_cannot_enter_is_unchanged),     TEST(who_cannot_try_is_unchanged),
        TEST(a_user_enters_by_a_user_namespace), TEST(what_the_machine_forbids_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

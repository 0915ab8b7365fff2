/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page SECONDS [rings]: a hostile process of a host (trib exec HOST -- page 3). It opens the emulated
 * HCA, so that everything is mapped that a verbs program has of the fabric, and then, with a quarter
 * of a core, writes every word of it that it can: extreme and random values, in mappings that are
 * writable, that can be made so, or that can be made anew from any descriptor of the process. It
 * truncates and grows what it can. rings: the memory of frames and rings too, which may end the
 * process itself.
 */
#include <dirent.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_AREAS 256
#define MOST      (64u << 20) /* of an area */

static struct area {
    volatile uint32_t *at;
    size_t words;
} area[MAX_AREAS];
static unsigned n_areas, n_read_only, n_resized;

static uint32_t any(void)
{
    static uint64_t x = 88172645463325252ull;
    static const uint32_t odd[] = {0,          1,          2,          0xffffffff, 0x7fffffff,
                                   0x80000000, 1000000000, 0xc4653600, 0x10001,    0x20003,
                                   0xffff,     64,         63,         250};

    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x % 3 ? odd[(x >> 8) % (sizeof(odd) / sizeof(odd[0]))] : (uint32_t)(x >> 16);
}

static void add(void *at, size_t bytes)
{
    if (n_areas < MAX_AREAS && bytes >= 4)
        area[n_areas++] = (struct area){at, (bytes < MOST ? bytes : MOST) / 4};
}

/* The secret of the own host. Whoever overwrites it shuts out this host's next processes alone. */
static bool is_token(const char *name)
{
    return strstr(name, "/host.token");
}

static bool is_ring(const char *name)
{
    return strstr(name, "memfd:memif") || strstr(name, "memfd:frames");
}

static void take_mappings(bool rings)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512], perms[8];
    unsigned long from, to;

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, perms) != 3 || perms[3] != 's' ||
            !(strstr(line, "memfd:") || strstr(line, "tributary")) || (is_ring(line) && !rings))
            continue;
        if (perms[1] == 'w' || !mprotect((void *)from, to - from, PROT_READ | PROT_WRITE))
            add((void *)from, to - from);
        else
            n_read_only++;
    }
    if (f)
        fclose(f);
}

/* A descriptor of any thread, opened again for writing. */
static void take_file(const char *path, bool rings)
{
    char name[512] = "";
    struct stat st;
    void *at;
    int fd;

    if (readlink(path, name, sizeof(name) - 1) < 0 ||
        !(strstr(name, "memfd:") || strstr(name, "tributary")) || (is_ring(name) && !rings) ||
        is_token(name))
        return;
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
        return;
    at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        add(at, (size_t)st.st_size);
    else
        n_read_only++;
    if (ftruncate(fd, st.st_size + (1 << 20)))
        return;
    n_resized += !strstr(name, "nohuge") && !strstr(name, "/port/");
    (void)!ftruncate(fd, st.st_size);
}

static void take_descriptors(bool rings)
{
    char path[600], fds[300];
    struct dirent *t, *e;
    DIR *tasks = opendir("/proc/self/task"), *d;

    while (tasks && (t = readdir(tasks))) {
        if (*t->d_name == '.')
            continue;
        snprintf(fds, sizeof(fds), "/proc/self/task/%s/fd", t->d_name);
        d = opendir(fds);
        while (d && (e = readdir(d))) {
            snprintf(path, sizeof(path), "%s/%s", fds, e->d_name);
            if (*e->d_name != '.')
                take_file(path, rings);
        }
        if (d)
            closedir(d);
    }
    if (tasks)
        closedir(tasks);
}

static void scribble(double seconds)
{
    struct timespec now, end, nap = {0, 3000000};
    unsigned a = 0;
    size_t w = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)seconds;
    do {
        for (unsigned i = 0; i < 500000 && n_areas; i++) {
            area[a].at[w] = any();
            if (++w >= area[a].words)
                w = 0, a = (a + 1) % n_areas;
        }
        /* The smallest pages have the words that are looked at most. */
        for (unsigned i = 0; i < 200000 && n_areas; i++) {
            const struct area *s = &area[i % n_areas];

            if (s->words <= 1024)
                s->at[any() % s->words] = any();
        }
        nanosleep(&nap, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec);
}

int main(int argc, char **argv)
{
    bool rings = argc > 2 && !strcmp(argv[2], "rings");
    struct ibv_device **l = ibv_get_device_list(NULL);

    if (argc < 2 || !l || !*l || !ibv_open_device(*l))
        return 2;
    take_mappings(rings);
    take_descriptors(rings);
    printf("%u areas can be written, %u cannot, %u can be resized\n", n_areas, n_read_only,
           n_resized);
    fflush(stdout);
    scribble(atof(argv[1]));
    return 0;
}

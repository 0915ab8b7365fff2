/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of a libibverbs that is newer than anything known, on an emulated device. Compiled with
 * FUTURE_LIBRARY as a shared object, this is such a library: its functions end in slots of a driver's
 * private table, by a call or, as most of libibverbs' do, by a jump. Without it, the program that calls
 * them: verbs_future LIBRARY. Prints what is wrong; exit code 1.
 */
#include <infiniband/verbs.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef FUTURE_LIBRARY
#define SLOT(type, c, slot) (((type(**)(struct ibv_context *))(void *)verbs_get_ctx(c)->priv)[slot])
#define JUMPS(type, name, slot)                                                                    \
    type name(struct ibv_context *c);                                                              \
    type name(struct ibv_context *c)                                                               \
    {                                                                                              \
        return SLOT(type, c, slot)(c);                                                             \
    }
#define CALLS(type, name, slot)                                                                    \
    type name(struct ibv_context *c);                                                              \
    type name(struct ibv_context *c)                                                               \
    {                                                                                              \
        type r = SLOT(type, c, slot)(c);                                                           \
                                                                                                   \
        __asm__ volatile("" : "+r"(r));                                                            \
        return r;                                                                                  \
    }

JUMPS(int, ibv_query_future, 300)
JUMPS(void *, ibv_create_future, 301)
JUMPS(int, ibv_future_export_fd, 302)
JUMPS(int, ibv_modify_future, 9)
JUMPS(void *, ibv_alloc_future, 10)
CALLS(int, ibv_attach_future, 303)
CALLS(void *, ibv_import_future, 304)
JUMPS(int, ibv_one_future, 305) /* the next one has the same slot: either may have been called */
JUMPS(int, ibv_other_future, 305)
#else

static const struct {
    const char *name;
    bool object;
    long fails;
} calls[] = {{"ibv_query_future", false, EOPNOTSUPP}, {"ibv_create_future", true, 0},
             {"ibv_future_export_fd", false, -1},     {"ibv_modify_future", false, EOPNOTSUPP},
             {"ibv_alloc_future", true, 0},           {"ibv_attach_future", false, EOPNOTSUPP},
             {"ibv_import_future", true, 0},          {"ibv_one_future", false, EOPNOTSUPP},
             {"ibv_other_future", false, EOPNOTSUPP}};

int main(int argc, char **argv)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;
    void *lib = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int bad = 0;

    if (!c || !lib) {
        printf("no device, or no library: %s\n", lib ? "" : dlerror());
        return 2;
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        void *fn = dlsym(lib, calls[i].name);
        long r;

        errno = 0;
        if (!fn)
            r = -2;
        else if (calls[i].object)
            r = (long)(intptr_t)((void *(*)(struct ibv_context *))fn)(c);
        else
            r = ((int (*)(struct ibv_context *))fn)(c);
        if (r == calls[i].fails && errno == EOPNOTSUPP)
            continue;
        printf("%s: found %ld and errno %d, expected %ld and %d\n", calls[i].name, r, errno,
               calls[i].fails, EOPNOTSUPP);
        bad = 1;
    }
    ibv_close_device(c);
    ibv_free_device_list(list);
    return bad;
}
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of future versions of libibverbs. Such a call jumps through a driver's private table. In
 * our contexts every entry of that table prints a message with the call's name and returns an
 * error, instead of a fault.
 *
 * The name tells the kind of error: ibv_alloc_*, ibv_create_* and the like return NULL, all others
 * an errno (calls that end in _fd: -1). The name is that of the function to which the entry
 * returns. Most of libibverbs' functions make a tail call, so that their caller is found instead:
 * then it is the name of the only exported function whose code jumps through or calls this entry.
 * If no name is found, the call returns an errno, because most calls do and 0 would mean success.
 */
#include "host/hca/hca_priv.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SLOTS 512

/* ---- an entry point for each place of the table, with its index as argument ---- */

__attribute__((used, visibility("hidden"))) void *newer_unknown(unsigned slot);

#if defined(__x86_64__)
#define ENTRY      "endbr64; mov $slot_, %edi; jmp newer_unknown;"
#define ENTRY_SIZE 16
#elif defined(__aarch64__)
#define ENTRY      "hint #34; mov w0, #slot_; b newer_unknown;"
#define ENTRY_SIZE 16
#endif

#ifdef ENTRY
__asm__(".pushsection .text; .p2align 4; newer_entries: .set slot_, 0; .rept 512; .p2align 4;" ENTRY
        ".set slot_, slot_ + 1; .endr; .popsection");
extern const char newer_entries[] __attribute__((visibility("hidden")));
#else
static void *no_slot(void)
{
    return newer_unknown(SLOTS);
}
#endif

/* ---- which call it is ---- */

/* Whether the instruction at p calls, jumps to or loads the pointer at this offset of a table. */
#if defined(__x86_64__)
static bool has_place(const uint8_t *p, size_t left, uint32_t place)
{
    unsigned mod, kind;
    size_t at = 2;
    int32_t wide;

    if (left < 3 || *p != 0xff)
        return false;
    mod = p[1] >> 6;
    kind = p[1] >> 3 & 7;
    at += (p[1] & 7) == 4; /* a SIB byte follows */
    if (kind != 2 && kind != 4)
        return false;
    if (mod == 1)
        return at < left && (int8_t)p[at] == (int32_t)place;
    if (mod != 2 || at + sizeof(wide) > left)
        return false;
    memcpy(&wide, p + at, sizeof(wide));
    return wide == (int32_t)place;
}
#elif defined(__aarch64__)
static bool has_place(const uint8_t *p, size_t left, uint32_t place)
{
    uint32_t w; /* ldr xN, [xM, #place] */

    if (left < 4 || (uintptr_t)p % 4)
        return false;
    memcpy(&w, p, sizeof(w));
    return (w & 0xffc00000) == 0xf9400000 && (w >> 10 & 0xfff) * 8 == place;
}
#else
static bool has_place(const uint8_t *p, size_t left, uint32_t place)
{
    (void)p, (void)left, (void)place;
    return false;
}
#endif

struct word_search {
    uint32_t place;
    const char *name;
    unsigned found;
};

static unsigned symbols_of(const uint32_t *gnu_hash)
{
    const uint32_t n = gnu_hash[0], first = gnu_hash[1];
    const uint32_t *bucket = gnu_hash + 4 + gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + n;
    uint32_t last = 0;

    for (uint32_t i = 0; i < n; i++)
        last = bucket[i] > last ? bucket[i] : last;
    if (last < first)
        return 0;
    while (!(chain[last - first] & 1))
        last++;
    return last + 1;
}

/* Whether programs call our definition of the name instead of libibverbs'. */
static bool is_ours(const char *name, const void *theirs)
{
    const void *used = dlsym(RTLD_DEFAULT, name);

    return used && used != theirs;
}

static void search_symbols(struct word_search *s, uintptr_t base, const ElfW(Sym) * sym, unsigned n,
                           const char *names)
{
    for (unsigned i = 0; i < n; i++) {
        const char *name = names + sym[i].st_name;
        const uint8_t *code = (const uint8_t *)(base + sym[i].st_value);
        bool has = false;

        if (ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC || sym[i].st_shndx == SHN_UNDEF ||
            strncmp(name, "ibv_", 4) != 0 || !strncmp(name, "ibv_cmd_", 8))
            continue;
        for (size_t at = 0; at < sym[i].st_size && !has; at++)
            has = has_place(code + at, sym[i].st_size - at, s->place);
        if (!has || is_ours(name, code) || (s->name && !strcmp(s->name, name)))
            continue;
        s->name = name;
        s->found++;
    }
}

static int search_object(struct dl_phdr_info *o, size_t size, void *ctx)
{
    const ElfW(Dyn) *dyn = NULL;
    const ElfW(Sym) *sym = NULL;
    const uint32_t *hash = NULL;
    const char *names = NULL;

    (void)size;
    if (!o->dlpi_name || !strstr(o->dlpi_name, "libibverbs"))
        return 0;
    for (unsigned i = 0; i < o->dlpi_phnum; i++)
        if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dyn = (const ElfW(Dyn) *)(uintptr_t)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
    for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
        sym = dyn->d_tag == DT_SYMTAB ? (const ElfW(Sym) *)dyn->d_un.d_ptr : sym;
        names = dyn->d_tag == DT_STRTAB ? (const char *)dyn->d_un.d_ptr : names;
        hash = dyn->d_tag == DT_GNU_HASH ? (const uint32_t *)dyn->d_un.d_ptr : hash;
    }
    if (sym && names && hash)
        search_symbols(ctx, o->dlpi_addr, sym, symbols_of(hash), names);
    return 0;
}

/* Name of the call whose entry returns to `back`. NULL: no function fits, or several do. */
static const char *name_of(unsigned slot, const void *back)
{
    struct word_search s = {.place = slot * (uint32_t)sizeof(void *)};
    Dl_info at = {0};

    if (dladdr(back, &at) && at.dli_sname && at.dli_fname && strstr(at.dli_fname, "libibverbs") &&
        !strncmp(at.dli_sname, "ibv_", 4))
        return at.dli_sname;
    if (slot < SLOTS)
        dl_iterate_phdr(search_object, &s);
    return s.found == 1 ? s.name : NULL;
}

/* ---- what it returns ---- */

static void *failure_of(const char *call)
{
    static const char *const makers[] = {"alloc", "create", "reg_", "open", "import"};
    size_t len = strlen(call);

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
        if (!strncmp(call + 4, makers[i], strlen(makers[i])))
            return NULL;
    if (len > 3 && !strcmp(call + len - 3, "_fd"))
        return (void *)(intptr_t)-1;
    return (void *)(intptr_t)EOPNOTSUPP;
}

void *newer_unknown(unsigned slot)
{
    static _Atomic(const char *) said;
    const char *name = name_of(slot, __builtin_return_address(0));
    const char *call = name ? name : "a call of libibverbs";

    if (atomic_exchange(&said, call) != call) /* once: a program may call in a loop */
        fprintf(stderr,
                "tributary: %s: not supported by the emulated HCA: libibverbs is newer than "
                "libtribverbs\n",
                call);
    errno = EOPNOTSUPP;
    return name ? failure_of(name) : (void *)(intptr_t)EOPNOTSUPP;
}

void newer_fill(struct verbs_context *v)
{
    static const void *table[SLOTS];

    if (!table[0])
        for (unsigned i = SLOTS; i-- > 0;) /* table[0] last: if it is set, all are */
#ifdef ENTRY
            table[i] = newer_entries + (size_t)i * ENTRY_SIZE;
#else
            table[i] = (const void *)(uintptr_t)no_slot;
#endif
    v->priv = (struct verbs_ex_private *)(uintptr_t)table;
}

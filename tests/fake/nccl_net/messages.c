/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender copies into a free slot of the wire, the receiver out of it, in the order of sends. */
#include "mock.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- links ---- */

int link_new(enum kind kind, struct wire *wire, struct shared where, struct link **link)
{
    struct link *l = calloc(1, sizeof(*l));

    if (!l)
        return NCCL_SYSTEM_ERROR;
    *l = (struct link){.kind = kind, .wire = wire, .where = where};
    for (unsigned i = 0; i < SLOTS; i++)
        l->request[i].link = l;
    l->handle = object_new(kind, l);
    *link = l;
    return NCCL_SUCCESS;
}

static void request_end(struct request *r)
{
    object_end(r->handle);
    r->handle = NULL;
}

void link_free(struct link *l)
{
    bool busy = false;

    for (unsigned i = 0; i < SLOTS; i++) {
        busy |= l->request[i].handle != NULL;
        if (l->request[i].handle)
            request_end(&l->request[i]);
    }
    if (busy && planted("close-crash"))
        raise(SIGSEGV);
    if (l->kind == KIND_SEND)
        l->wire->sender_left = 1;
    else
        l->wire->receiver_left = 1;
    if (l->where.fd >= 0)
        close(l->where.fd);
    munmap(l->wire, sizeof(*l->wire));
    object_end(l->handle);
    free(l);
}

static struct request *request_new(struct link *l, unsigned most)
{
    static struct request *last;

    if (planted("request-reused") && last && last->handle && last->link == l)
        return last;
    for (unsigned i = 0; i < most; i++) {
        struct request *r = &l->request[i];

        if (r->handle)
            continue;
        *r = (struct request){.link = l, .handle = object_new(KIND_REQUEST, r)};
        return last = r;
    }
    return NULL;
}

/* Of the other end. */
static bool peer_gone(const struct link *l)
{
    const struct wire *w = l->wire;
    pid_t pid = l->kind == KIND_SEND ? w->receiver : w->sender;

    if (planted("killed-unnoticed"))
        return false;
    return (l->kind == KIND_SEND ? w->receiver_left : w->sender_left) || is_dead(pid);
}

/* ---- sending ---- */

static void slot_fill(struct request *r)
{
    struct slot *s = &r->link->wire->slot[r->slot];

    if (r->from)
        memcpy(r->link->wire->data[r->slot], r->from, s->size);
    r->from = NULL;
    s->state = SLOT_FULL;
}

/* Of "send-late": a send that is done, and whose data nobody has read yet. */
static struct request late;

static void late_end(void)
{
    if (late.from)
        slot_fill(&late);
}

static unsigned slot_free(struct link *l)
{
    unsigned i = 0;

    while (i < SLOTS && l->wire->slot[i].state != SLOT_FREE)
        i++;
    return i;
}

static int send_start(struct link *l, void *data, size_t size, int tag, void **req)
{
    unsigned at = slot_free(l);
    struct request *r;

    if (at == SLOTS || l->calls++ % 3 == 1) /* it would block */
        return peer_gone(l) ? refuse(NCCL_REMOTE_ERROR, "the receiver is gone") : NCCL_SUCCESS;
    while (planted("isend-blocks-first") && !l->wire->receives)
        sched_yield();
    r = request_new(l, planted("in-flight-16") ? 16 : SLOTS);
    if (!r)
        return NCCL_SUCCESS;
    l->wire->slot[at].number = l->next++;
    l->wire->slot[at].tag = tag;
    l->wire->slot[at].size = size;
    r->n = 1;
    r->slot = at;
    r->from = data;
    r->size[0] = (int)size;
    if (planted("send-late"))
        l->wire->slot[at].state = -1; /* it is not filled yet */
    else
        slot_fill(r);
    *req = r->handle;
    return NCCL_SUCCESS;
}

int mock_isend(void *comm, void *data, size_t size, int tag, void *mh, void **req)
{
    int rc = NCCL_SUCCESS;
    struct link *l = object_find(comm, KIND_SEND, &rc);

    if (!l)
        return object_kind(comm) == KIND_RECV && planted("wrong-end-accepted") ? NCCL_SUCCESS : rc;
    late_end();
    if (!planted("isend-unset"))
        *req = NULL;
    rc = memory_check(mh, data, size);
    if (!rc && size > BLOCK)
        rc = refuse(NCCL_INVALID_ARGUMENT, "too large a message");
    if (!rc && planted("sizes-512k") && size > BLOCK / 2)
        rc = refuse(NCCL_INVALID_ARGUMENT, "more than 512 KiB");
    return rc ? rc : send_start(l, data, size, tag, req);
}

/* ---- receiving ---- */

/* The oldest receive that has not all its messages; wrong ones may take others. */
static struct request *receive_oldest(struct link *l)
{
    struct request *found = NULL;

    for (unsigned i = 0; i < SLOTS; i++) {
        struct request *r = &l->request[i];
        bool newer = planted("order-lifo") || (planted("groups-mixed") && r->n > 1);

        if (r->handle && r->left && (!found || (r->number < found->number) != newer))
            found = r;
    }
    return found;
}

static bool tag_is(int posted, int sent)
{
    return planted("tag-8-bits") ? (posted & 0xff) == (sent & 0xff) : posted == sent;
}

static unsigned place_of(const struct request *r, int tag)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->size[i] < 0 &&
            (r->n == 1 || planted("group-tags-ignored") || tag_is(r->tag[i], tag)))
            return i;
    return GROUP;
}

/* Where a message of a receive goes, and how much is written; wrong ones go elsewhere. */
static void message_write(struct request *r, unsigned i, const char *from, size_t n)
{
    char *to = r->data[i];
    int rc = 0;
    const struct memory *m = n ? object_find(r->mh, KIND_MEMORY, &rc) : NULL;

    if (m && planted("offset-ignored"))
        to = m->at;
    if ((uintptr_t)to % 2 && planted("window-off-by-one"))
        to++;
    if (planted("truncated") && n > 65536)
        n = 65536;
    if (planted("last-byte") && n > 4096)
        n--;
    if (planted("page-twice") && n >= 8192) {
        memcpy(to, from, n);
        memcpy(to + 4096, from, 4096);
        return;
    }
    if (planted("write-before") && n)
        to[-1] = 0;
    if (planted("write-beyond") && n % 8)
        to[n] = 0;
    if (planted("room-cleared"))
        memset(to, 0, r->room[i]);
    memcpy(to, from, n);
}

static void message_take(struct request *r, unsigned i, struct slot *s, const char *from)
{
    size_t n = s->size;

    if (n > r->room[i]) {
        if (!planted("too-large-written"))
            n = r->room[i];
        r->refused = !planted("too-large-silent");
    }
    message_write(r, planted("group-data-swapped") && (i ^ 1u) < r->n ? i ^ 1u : i, from, n);
    r->size[i] = (int)s->size;
    r->left--;
    if (planted("group-early") && r->n > 1)
        r->left = 0;
    s->state = SLOT_TAKEN;
}

void link_receive(struct link *l)
{
    for (unsigned k = 0; k < SLOTS; k++) {
        struct slot *s = &l->wire->slot[k];
        struct request *r = receive_oldest(l);
        unsigned i;

        if (!r)
            return;
        if (s->state != SLOT_FULL || s->number != l->next)
            continue;
        i = place_of(r, s->tag);
        if (i == GROUP)
            return;
        if (planted("zero-lost") && !s->size)
            return;
        l->next++;
        message_take(r, i, s, l->wire->data[k]);
        k = (unsigned)-1; /* the next message may be in any slot */
    }
}

static int receive_start(struct link *l, unsigned n, void **data, const size_t *sizes,
                         const int *tags, void **mh, void **req)
{
    struct request *r;

    if (l->calls++ % 4 == 2)
        return NCCL_SUCCESS; /* it would block */
    r = request_new(l, planted("in-flight-16") ? 16 : NCCL_REQUESTS);
    if (!r)
        return NCCL_SUCCESS;
    r->n = r->left = n;
    r->number = l->wire->receives++;
    r->mh = mh[0];
    for (unsigned i = 0; i < n; i++) {
        r->data[i] = data[i];
        r->room[i] = sizes[i];
        r->tag[i] = tags[i];
        r->size[i] = -1;
    }
    *req = r->handle;
    return NCCL_SUCCESS;
}

int mock_irecv(void *comm, int n, void **data, const size_t *sizes, const int *tags, void **mh,
               void **req)
{
    int rc = NCCL_SUCCESS;
    struct link *l = object_find(comm, KIND_RECV, &rc);

    if (!l)
        return rc;
    if (*req == NCCL_RECV_OPTIONAL && planted("optional-ignored"))
        return NCCL_SUCCESS;
    if (!planted("irecv-unset"))
        *req = NULL;
    if (n < 1 || n > (planted("max-recvs-lies") ? 4 : GROUP)) {
        if (!planted("group-size-unchecked"))
            return refuse(NCCL_INVALID_ARGUMENT, "so many receives are no group");
        return NCCL_SUCCESS;
    }
    for (int i = 0; i < n && !rc; i++)
        rc = memory_check(mh[i], data[i], sizes[i]);
    return rc ? rc : receive_start(l, (unsigned)n, data, sizes, tags, mh, req);
}

int mock_iflush(void *comm, int n, void **data, int *sizes, void **mh, void **req)
{
    int rc = NCCL_SUCCESS;
    static char one;

    if (!object_find(comm, KIND_RECV, &rc))
        return rc;
    (void)mh;
    if (planted("flush-fails"))
        return refuse(NCCL_INTERNAL_ERROR, "no flush");
    if (planted("flush-clears"))
        memset(data[0], 0, (size_t)sizes[0]);
    if (!planted("flush-unset"))
        *req = n ? object_new(KIND_FLUSH, &one) : NULL;
    return rc;
}

/* ---- the end of requests ---- */

/* What test() says of sizes; wrong ones say something else. */
static void sizes_tell(const struct request *r, int *sizes)
{
    if (!sizes && !planted("sizes-needed"))
        return;
    if (planted("size-unset"))
        return;
    for (unsigned i = 0; i < r->n; i++)
        sizes[i] = r->size[i];
    if (r->link->kind == KIND_SEND)
        return;
    if (planted("size-posted"))
        sizes[0] = (int)r->room[0];
    if (planted("size-plus-one"))
        sizes[0]++;
    if (planted("size-16-bits"))
        sizes[0] &= 0xffff;
    if (planted("group-sizes-swapped") && r->n > 1) {
        sizes[0] = r->size[1];
        sizes[1] = r->size[0];
    }
    for (unsigned i = 1; i < r->n && planted("group-one-size"); i++)
        sizes[i] = r->size[0];
    for (unsigned i = r->n; i < GROUP && planted("group-all-sizes"); i++)
        sizes[i] = 0;
    for (unsigned i = 0; i < r->n && planted("group-sum"); i++)
        sizes[0] += i ? r->size[i] : 0;
}

static bool send_done(struct request *r)
{
    struct slot *s = &r->link->wire->slot[r->slot];

    if (r->from) {
        late = *r;
        return true;
    }
    if (s->state != SLOT_TAKEN)
        return false;
    s->state = SLOT_FREE;
    return true;
}

static bool receive_done(struct request *r)
{
    link_receive(r->link);
    if (planted("in-order-only") && r->link->kind == KIND_RECV)
        for (unsigned i = 0; i < SLOTS; i++) {
            struct request *other = &r->link->request[i];

            if (other->handle && other->number < r->number)
                return false;
        }
    return !r->left || planted("done-early");
}

static int request_test(struct request *r, int *done, int *sizes)
{
    struct link *l = r->link;
    int rc = NCCL_SUCCESS;

    *done = l->kind == KIND_SEND ? send_done(r) : receive_done(r);
    if (!*done) {
        if (!peer_gone(l))
            return rc;
        if (planted("killed-crash"))
            raise(SIGSEGV);
        if (!planted("killed-done"))
            return refuse(NCCL_REMOTE_ERROR, "the other end is gone");
        *done = 1;
    }
    if (r->refused)
        rc = refuse(NCCL_INVALID_USAGE, "a message is larger than its receive");
    sizes_tell(r, sizes);
    if (planted("done-is-2"))
        *done = 2;
    if (!planted("stale-accepted"))
        request_end(r);
    return rc;
}

int mock_test(void *req, int *done, int *sizes)
{
    int rc = NCCL_SUCCESS, was = *done;
    struct request *r;

    *done = 0;
    if (object_kind(req) == KIND_FLUSH) {
        *done = !planted("flush-never");
        if (*done)
            object_end(req);
        return rc;
    }
    r = object_find(req, KIND_REQUEST, &rc);
    if (!r)
        return rc;
    rc = request_test(r, done, sizes);
    if (!*done && planted("done-unset"))
        *done = was;
    return rc;
}

/* ---- closing ---- */

static int comm_close(void *comm, enum kind kind)
{
    int rc = NCCL_SUCCESS;
    struct link *l = object_find(comm, kind, &rc);

    if (!l)
        return rc;
    if (planted("close-refused"))
        for (unsigned i = 0; i < SLOTS; i++)
            if (l->request[i].handle)
                return refuse(NCCL_INVALID_USAGE, "requests are in flight");
    for (uintptr_t i = 1; planted("close-all") && i < 65536; i++)
        if (object_kind((void *)i) == kind)
            object_end((void *)i);
    if (planted("close-leaks"))
        object_end(comm);
    else
        link_free(l);
    return rc;
}

int mock_close_send(void *comm)
{
    return comm_close(comm, KIND_SEND);
}

int mock_close_recv(void *comm)
{
    return comm_close(comm, KIND_RECV);
}

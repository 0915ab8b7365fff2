/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the ranks of a store over TCP meet. Anybody who reaches rank 0's port may connect, so each
 * end proves to the other that it knows the secret, without sending it:
 *
 *   rank 0 -> rank   challenge: a nonce
 *   rank -> rank 0   answer: rank, size, rank 0's address, a nonce, MAC("rank", challenge, answer)
 *   rank 0 -> rank   verdict, MAC("root", challenge, answer, verdict)
 *
 * Each connection has its own two nonces, so a captured message proves nothing on another
 * connection. The labels prevent that an end's own message is sent back to it. Jobs of one user
 * share a secret, so a man in the middle could pass a rank on to rank 0 of another job. Therefore
 * the answer has the address and port to which the rank connected, and rank 0 accepts only those of
 * its own end. A rank that was passed on tries again, and neither job fails.
 *
 * A connection without a proof is a stranger. Rank 0 never waits for one: it closes it after
 * STRANGER_MS, and closes the oldest one if there are too many. A rank that is closed like this
 * tries again.
 *
 * Rejected: SO_PEERCRED, which TCP lacks; a refusal without a proof that ends the rank, since a
 * stranger could send it; a proof over the address as the user spells it, which may be
 * "0.0.0.0:4711" at rank 0 and various names of its machine at the other ranks.
 */
#include "base/assert.h"
#include "host/session/store_tcp.h"

#include "host/session/session.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAGIC       0x54524d33u /* "TRM3" */
#define NONCE       32
#define STRANGER_MS 2000 /* time in which rank 0 must get a proof */
#define VERDICT_MS  5000 /* time in which a rank must get rank 0's verdict */
#define RETRY_MS    20   /* first pause between two tries; RETRY_MOST: longest */
#define RETRY_MOST  200
#define ROOM_LEAST  64 /* strangers at a time, in addition to one per rank */
#define ROOM_MOST   1024
#define BURST       64 /* connections to accept before reading from the present ones again */

struct challenge {
    uint32_t magic;
    uint8_t nonce[NONCE];
};
struct meet_answer {
    uint32_t magic, rank, size;
    struct store_place place; /* rank 0's address and port, as the rank sees them */
    uint8_t nonce[NONCE], mac[CREDENTIAL_MAC];
};
enum verdict { WELCOME, TWICE, ANOTHER_SIZE, ANOTHER_PLACE };
struct verdict_message {
    uint32_t magic, verdict;
    uint8_t mac[CREDENTIAL_MAC];
};
_Static_assert(sizeof(struct challenge) == 36 && sizeof(struct meet_answer) == 96 &&
                   sizeof(struct verdict_message) == 40,
               "integers are little-endian, nothing is padded");

/* The data that a MAC covers. */
struct proof {
    char label[4];
    struct challenge challenge;
    struct meet_answer answer; /* answer.mac is 0 in the rank's proof */
    uint32_t verdict;
};

static bool prove(const struct store_secret *secret, const char *label, const struct challenge *c,
                  const struct meet_answer *a, uint32_t verdict, uint8_t mac[CREDENTIAL_MAC])
{
    struct proof p = {.challenge = *c, .answer = *a, .verdict = htole32(verdict)};

    memcpy(p.label, label, sizeof(p.label));
    if (!strcmp(label, "rank"))
        memset(p.answer.mac, 0, sizeof(p.answer.mac));
    return credential_mac(secret->text, &p, sizeof(p), mac);
}

/* ---- rank 0 ---- */

struct stranger {
    int fd;
    int64_t until_ms;
    struct challenge challenge;
    struct meet_answer answer;
    size_t got; /* bytes of the answer so far */
};

struct meet_door {
    struct tcp_store *s;
    const struct store_secret *secret;
    int at;
    uint32_t missing;     /* ranks that have not come */
    unsigned long lied;   /* strangers whose answer has a wrong MAC */
    unsigned long astray; /* ranks that connected to another address */
    unsigned n, room;
    struct stranger *stranger; /* in order of arrival */
    struct pollfd *poll;       /* of `at`, then of each stranger */
};

/* Reports the ranks that have not come. */
static int missing_report(const struct meet_door *d, char *err)
{
    const struct tcp_store *s = d->s;
    char text[96] = "";
    size_t at = 0;

    for (uint32_t r = 1; r < s->size && at < sizeof(text) - 16; r++)
        if (s->fd[r] < 0)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", at ? ", " : "", r);
    if (!d->lied && d->astray)
        return session_say(err, -ETIMEDOUT,
                           "store: ranks that have not connected: %s; hung up on %lu that somebody "
                           "has passed on, expected ranks that connect to rank 0 itself",
                           text, d->astray);
    if (!d->lied)
        return session_say(err, -ETIMEDOUT, "store: ranks that have not connected: %s", text);
    return session_say(err, -ETIMEDOUT,
                       "store: ranks that have not connected: %s; hung up on %lu that had another "
                       "secret than the one found here in %s",
                       text, d->lied, d->secret->from);
}

static void meet_door_forget(struct meet_door *d, unsigned i)
{
    T_ASSERT(i < d->n, "a stranger is forgotten who is not there");
    d->n--;
    memmove(&d->stranger[i], &d->stranger[i + 1], (d->n - i) * sizeof(*d->stranger));
}

static void hang_up(struct meet_door *d, unsigned i)
{
    close(d->stranger[i].fd);
    meet_door_forget(d, i);
}

/* Whether the peer has closed: a rank that tries again, or was restarted, has closed its first
 * connection. */
static bool has_left(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static enum verdict verdict_of(const struct tcp_store *s, const struct stranger *of, bool again)
{
    uint32_t rank = le32toh(of->answer.rank), size = le32toh(of->answer.size);
    struct store_place here;

    if (store_place(of->fd, false, &here) || memcmp(&here, &of->answer.place, sizeof(here)) != 0)
        return ANOTHER_PLACE;
    if (size != s->size || !rank || rank >= size)
        return ANOTHER_SIZE;
    return s->fd[rank] >= 0 && !again ? TWICE : WELCOME;
}

/* Sends the verdict on a rank that has proved the secret, and accepts or closes it. A duplicate
 * rank or a wrong size is an error at both ends; a rank that somebody passed on is not. */
static int stranger_judge(struct meet_door *d, const struct stranger *of, char *err)
{
    struct tcp_store *s = d->s;
    uint32_t rank = le32toh(of->answer.rank), size = le32toh(of->answer.size);
    bool again = rank && rank < s->size && s->fd[rank] >= 0 && has_left(s->fd[rank]);
    bool left = has_left(of->fd); /* the rank will try again */
    enum verdict v = verdict_of(s, of, again);
    struct verdict_message m = {.magic = htole32(MAGIC), .verdict = htole32(v)};

    if (!prove(d->secret, "root", &of->challenge, &of->answer, v, m.mac) ||
        store_transfer(of->fd, true, &m, sizeof(m), store_now_ms() + RETRY_MS) || v != WELCOME ||
        left)
        close(of->fd);
    else {
        if (again)
            close(s->fd[rank]);
        T_ASSERT(again || d->missing, "a rank is welcomed beside those that were missing");
        d->missing -= !again;
        s->fd[rank] = of->fd;
    }
    d->astray += v == ANOTHER_PLACE;
    return v == TWICE
               ? session_say(err, -EINVAL, "store: found rank %u twice, expected each once", rank)
           : v == ANOTHER_SIZE
               ? session_say(err, -EINVAL, "store: found rank %u of %u, expected 1 to %u of %u",
                             rank, size, s->size - 1, s->size)
               : 0;
}

/* Reads the answer of stranger i, and judges it once it is complete. -errno: stranger_judge() found an
 * error. */
static int meet_door_hear(struct meet_door *d, unsigned i, char *err)
{
    struct stranger *of = &d->stranger[i], known;
    uint8_t mac[CREDENTIAL_MAC];
    T_ASSERT(of->got < sizeof(of->answer), "a stranger is heard whose answer is whole");
    ssize_t n =
        recv(of->fd, (uint8_t *)&of->answer + of->got, sizeof(of->answer) - of->got, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    of->got += n > 0 ? (size_t)n : 0;
    if (n > 0 && of->got < sizeof(of->answer))
        return 0;
    if (n <= 0 || le32toh(of->answer.magic) != MAGIC) {
        hang_up(d, i);
        return 0;
    }
    if (!prove(d->secret, "rank", &of->challenge, &of->answer, 0, mac) ||
        !credential_same(mac, of->answer.mac, sizeof(mac))) {
        d->lied++;
        hang_up(d, i);
        return 0;
    }
    known = *of;
    meet_door_forget(d, i);
    return stranger_judge(d, &known, err);
}

/* Accepts a connection and sends its challenge. 1: no connection waits. */
static int welcome(struct meet_door *d, char *err)
{
    struct stranger new = {.fd = accept4(d->at, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK),
                           .until_ms = store_now_ms() + STRANGER_MS,
                           .challenge.magic = htole32(MAGIC)};
    int rc = new.fd < 0 ? -errno : 0;

    if ((rc == -EMFILE || rc == -ENFILE) && d->n) {
        hang_up(d, 0);
        return 0;
    }
    if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOBUFS)
        return session_say(err, rc, "store: rank 0 cannot take a connection: %s", strerror(-rc));
    if (rc)
        return rc == -EAGAIN; /* other errors: the peer has closed already */
    if (credential_random(new.challenge.nonce, NONCE) ||
        store_transfer(new.fd, true, &new.challenge, sizeof(new.challenge), 0)) {
        close(new.fd);
        return 0;
    }
    if (d->n == d->room)
        hang_up(d, 0);
    T_ASSERT(d->n < d->room, "there is no room for a stranger");
    d->stranger[d->n++] = new;
    return 0;
}

static void wait_at(struct meet_door *d, int64_t until_ms)
{
    int64_t left;

    d->poll[0] = (struct pollfd){.fd = d->at, .events = POLLIN};
    for (unsigned i = 0; i < d->n; i++)
        d->poll[i + 1] = (struct pollfd){.fd = d->stranger[i].fd, .events = POLLIN};
    if (d->n && d->stranger[0].until_ms < until_ms)
        until_ms = d->stranger[0].until_ms;
    left = until_ms - store_now_ms();
    if (poll(d->poll, d->n + 1, left < 0 ? 0 : left > 1000 ? 1000 : (int)left) < 0)
        for (unsigned i = 0; i <= d->n; i++)
            d->poll[i].revents = 0;
}

/* Reads answers first and then accepts connections, so that a rank whose answer has arrived is not
 * closed to make room for new ones. */
static int meet_door_look(struct meet_door *d, char *err)
{
    int rc = 0, none = !d->poll[0].revents;

    for (unsigned i = d->n; i-- > 0 && !rc;)
        if (d->poll[i + 1].revents)
            rc = meet_door_hear(d, i, err);
    while (d->n && store_now_ms() >= d->stranger[0].until_ms)
        hang_up(d, 0);
    for (unsigned k = 0; k < BURST && !none && !rc; k++) {
        rc = welcome(d, err);
        none = rc > 0;
        rc = rc > 0 ? 0 : rc;
    }
    return rc;
}

int store_serve(struct tcp_store *s, const struct addrinfo *a, const struct store_secret *secret,
                int64_t until_ms, char *err)
{
    struct meet_door d = {.s = s, .secret = secret, .missing = s->size - 1};
    int rc;

    d.room = ROOM_LEAST + (s->size < ROOM_MOST ? s->size : ROOM_MOST);
    d.stranger = calloc(d.room, sizeof(*d.stranger));
    d.poll = calloc(d.room + 1, sizeof(*d.poll));
    d.at = d.stranger && d.poll ? store_listen(a, err)
                                : session_say(err, -ENOMEM, "store: out of memory");
    rc = d.at < 0 ? d.at : 0;
    while (!rc && d.missing) {
        wait_at(&d, until_ms);
        rc = meet_door_look(&d, err);
        if (!rc && d.missing && store_now_ms() >= until_ms)
            rc = missing_report(&d, err);
    }
    while (d.n)
        hang_up(&d, 0);
    if (d.at >= 0)
        close(d.at);
    free(d.stranger);
    free(d.poll);
    return rc;
}

/* ---- the others ---- */

/* Why a try failed; a later one may succeed. */
enum failure { NOT_THERE, NO_STORE, NOT_KNOWN, ASTRAY };

/* Introduces this rank to rank 0. 0; >0: enum failure; -errno: rank 0 has refused this rank. */
static int introduce(struct tcp_store *s, int fd, const struct store_secret *secret,
                     int64_t until_ms, char *err)
{
    struct meet_answer a = {
        .magic = htole32(MAGIC), .rank = htole32(s->rank), .size = htole32(s->size)};
    struct verdict_message m;
    struct challenge c;
    uint8_t mac[CREDENTIAL_MAC];
    int64_t soon = store_now_ms() + VERDICT_MS;

    until_ms = soon < until_ms ? soon : until_ms;
    if (store_transfer(fd, false, &c, sizeof(c), until_ms) || le32toh(c.magic) != MAGIC)
        return NO_STORE;
    if (store_place(fd, true, &a.place))
        return NO_STORE;
    if (credential_random(a.nonce, NONCE) || !prove(secret, "rank", &c, &a, 0, a.mac))
        return session_say(err, -EIO, "store: rank %u cannot make a proof: libcrypto", s->rank);
    if (store_transfer(fd, true, &a, sizeof(a), until_ms) ||
        store_transfer(fd, false, &m, sizeof(m), until_ms))
        return NOT_KNOWN;
    if (le32toh(m.magic) != MAGIC || !prove(secret, "root", &c, &a, le32toh(m.verdict), mac) ||
        !credential_same(mac, m.mac, sizeof(mac)))
        return NOT_KNOWN;
    if (le32toh(m.verdict) == ANOTHER_PLACE)
        return ASTRAY;
    if (le32toh(m.verdict) != WELCOME)
        return session_say(
            err, -EINVAL, "store: rank 0 has refused rank %u of %u: %s", s->rank, s->size,
            le32toh(m.verdict) == TWICE ? "it has that rank already" : "its size is another one");
    return 0;
}

static int give_up(const struct tcp_store *s, enum failure why, int rc,
                   const struct store_secret *secret, char *err)
{
    if (why == NOT_KNOWN)
        return session_say(err, -EACCES,
                           "store: rank %u cannot reach rank 0: who listens there has another "
                           "secret than found here in %s, expected one for all ranks: "
                           "TRIB_STORE_SECRET_FILE, a file of mode 0600",
                           s->rank, secret->from);
    if (why == ASTRAY)
        return session_say(
            err, -EACCES,
            "store: rank %u cannot reach rank 0: who listens there passes connections "
            "on to a rank 0 at another address or port, expected rank 0 itself",
            s->rank);
    if (why == NO_STORE)
        return session_say(err, -EPROTO,
                           "store: rank %u cannot reach rank 0: found something else that listens "
                           "there",
                           s->rank);
    return session_say(err, rc, "store: rank %u cannot reach rank 0: %s", s->rank, strerror(-rc));
}

int store_reach(struct tcp_store *s, const struct addrinfo *a, const struct store_secret *secret,
                int64_t until_ms, char *err)
{
    enum failure why = NOT_THERE;
    int pause_ms = RETRY_MS, last = 0;

    T_ASSERT(s->rank && s->fd[0] < 0, "a rank reaches for rank 0 that is it, or has met it");
    do {
        int fd = store_connect(a, until_ms), rc = fd < 0 ? fd : -ETIMEDOUT, met = NOT_THERE;

        if (fd >= 0) {
            met = introduce(s, fd, secret, until_ms, err);
            if (!met) {
                s->fd[0] = fd;
                return 0;
            }
            close(fd);
            if (met < 0)
                return met;
        }
        if (!last || store_now_ms() < until_ms) { /* a try that ran out of time has no reason */
            why = (enum failure)met;
            last = rc;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000L}, NULL);
        pause_ms = met && 2 * pause_ms < RETRY_MOST ? 2 * pause_ms : pause_ms;
    } while (store_now_ms() < until_ms);
    return give_up(s, why, last, secret, err);
}

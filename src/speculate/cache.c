/* The cache proposer: for the last four, three, two and one tokens, which token followed most and how often. One table
 * of fixed size; an entry whose place is wanted by another loses a count each time and gives way at zero, so that what
 * repeats stays. */
#include <stdlib.h>

#include "base/memory.h"
#include "speculate/proposal.h"

enum { LONGEST = 4, TABLE_BITS = 16 };

struct entry {
    uint32_t key; /* the hash's other half; 0 = empty */
    int32_t next;
    uint16_t count, total; /* times `next` followed, times anything did */
};

struct cache {
    struct sk_proposer proposer; /* must be first */
    size_t n_learnt;
    struct entry entries[1 << TABLE_BITS];
};

/* A token is proposed if it followed at least so often, and in at least half of all cases; by n-gram length. */
static const uint16_t least_count[LONGEST + 1] = {0, 6, 3, 2, 1};

static struct entry *find(struct cache *c, const int32_t *end, size_t n, uint32_t *key) {
    uint64_t h = n;
    for (size_t i = 1; i <= n; i++) h = (h ^ (uint32_t)end[-(ptrdiff_t)i]) * 0xD6E8FEB86659FD93ull;
    *key = (uint32_t)h | 1;
    return &c->entries[h >> (64 - TABLE_BITS)];
}

static void count(struct entry *e, uint32_t key, int32_t next) {
    if (e->key != key) {
        if (e->count > 0) {
            e->count--;
            return;
        }
        *e = (struct entry){key, next, 0, 0};
    }
    if (e->total == UINT16_MAX) e->total /= 2, e->count /= 2;
    e->total++;
    if (e->next == next)
        e->count++;
    else if (e->count > 1)
        e->count--;
    else
        e->next = next, e->count = 1;
}

static void learn(struct cache *c, const int32_t *tokens, size_t n) {
    for (; c->n_learnt < n; c->n_learnt++)
        for (size_t k = 1; k <= LONGEST && k <= c->n_learnt; k++) {
            uint32_t key;
            struct entry *e = find(c, tokens + c->n_learnt, k, &key);
            count(e, key, tokens[c->n_learnt]);
        }
}

/* The longest n-gram that is sure enough; -1 if none. Evidence: n-gram length, and quarters of the share above one
 * half. */
static int32_t likely_next(struct cache *c, const int32_t *end, size_t n_before, uint8_t *evidence) {
    for (size_t k = n_before < LONGEST ? n_before : LONGEST; k >= 1; k--) {
        uint32_t key;
        const struct entry *e = find(c, end, k, &key);
        if (e->key != key || e->count < least_count[k] || 2u * e->count < e->total) continue;
        const uint32_t quarter = (8u * e->count - 4u * e->total) / e->total; /* 0 to 4 */
        *evidence = (uint8_t)((k - 1) * 4 + (quarter > 3 ? 3 : quarter));
        return e->next;
    }
    return -1;
}

static size_t propose(struct sk_proposer *p, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct cache *c = (struct cache *)p;
    int32_t recent[LONGEST + SK_MAX_PROPOSAL];
    size_t n_recent = r->n < LONGEST ? r->n : LONGEST, n = 0;
    learn(c, r->tokens, r->n_committed);
    for (size_t i = 0; i < n_recent; i++) recent[i] = r->tokens[r->n - n_recent + i];
    for (uint8_t evidence; n < r->limit; n++) {
        const int32_t token = likely_next(c, recent + n_recent, n_recent, &evidence);
        if (token < 0) break;
        out[n] = (struct sk_draft){token, SK_CACHE, evidence};
        recent[n_recent++] = token;
    }
    return n;
}

static void destroy(struct sk_proposer *p) {
    free(p);
}

static const struct sk_proposer_ops cache_ops = {SK_CACHE, propose, NULL, destroy};

struct sk_proposer *sk_cache_proposer_create(void) {
    struct cache *c = sk_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->proposer.ops = &cache_ops;
    return &c->proposer;
}

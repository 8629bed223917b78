/* The suffix proposer: hash chains over seeds of 8 and of 3 tokens, as LZ77 compressors keep them. The seed of 8 finds
 * the few long matches at once; only where it finds none are the many short ones looked at. Candidates come most recent
 * first, at most 64; the longest common suffix (up to 64 tokens) wins, ties go to the most recent. (Compare
 * SuffixDecoding, arXiv 2411.04975.)
 *
 * Per token: two insertions. Per proposal: at most 64 comparisons of at most 64 tokens for each seed. Per token of
 * context: 8 bytes of links and at most 16 of tables. */
#include <stdlib.h>

#include "base/memory.h"
#include "speculate/proposal.h"

enum { N_SEEDS = 2, MAX_CANDIDATES = 64, MAX_MATCH = 64 };
static const size_t seed_lengths[N_SEEDS] = {8, 3};
static const uint32_t NOWHERE = UINT32_MAX;

struct chain {
    uint32_t *heads; /* [n_heads]: last place with this hash; a place is the index after the seed's end */
    size_t n_heads;  /* a power of two */
    uint32_t *links; /* [place]: the place before with the same hash */
    size_t cap_links;
};

struct suffix {
    struct sk_proposer proposer; /* must be first */
    struct chain chains[N_SEEDS];
    size_t n_indexed; /* tokens seen so far */
    bool failed;      /* memory ran out: no more proposals */
};

static uint32_t hash_seed(const int32_t *end, size_t n) {
    uint64_t h = 0;
    for (size_t i = 1; i <= n; i++) h = (h ^ (uint32_t)end[-(ptrdiff_t)i]) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(h >> 32);
}

static void insert(struct chain *c, const int32_t *tokens, size_t place, size_t seed) {
    uint32_t *head = &c->heads[hash_seed(tokens + place, seed) & (c->n_heads - 1)];
    c->links[place] = *head;
    *head = (uint32_t)place;
}

/* Room for `place`; a table that has become small is made anew, twice as large. */
static bool make_room(struct chain *c, const int32_t *tokens, size_t place, size_t seed) {
    if (!sk_grow(&c->links, &c->cap_links, place + 1, sizeof *c->links)) return false;
    if (c->heads && place < c->n_heads) return true;
    const size_t n = c->heads ? c->n_heads * 2 : 1024;
    uint32_t *heads = malloc(n * sizeof *heads);
    if (!heads) return false;
    for (size_t i = 0; i < n; i++) heads[i] = NOWHERE;
    free(c->heads);
    c->heads = heads;
    c->n_heads = n;
    for (size_t i = seed; i < place; i++) insert(c, tokens, i, seed);
    return true;
}

static void learn(struct suffix *s, const int32_t *tokens, size_t n) {
    for (; s->n_indexed < n && !s->failed; s->n_indexed++) {
        const size_t place = s->n_indexed + 1; /* after the new token */
        for (size_t k = 0; k < N_SEEDS; k++) {
            if (place < seed_lengths[k]) continue;
            s->failed |= !make_room(&s->chains[k], tokens, place, seed_lengths[k]);
            if (!s->failed) insert(&s->chains[k], tokens, place, seed_lengths[k]);
        }
    }
}

static size_t common_suffix(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
    size_t n = 0;
    while (n < MAX_MATCH && n < n_a && n < n_b && a[n_a - 1 - n] == b[n_b - 1 - n]) n++;
    return n;
}

struct match {
    size_t place, length;
    bool unanimous; /* all candidates of this length or more are followed by the same token */
};

static struct match find(const struct suffix *s, const struct sk_proposal_request *r, size_t k) {
    const struct chain *c = &s->chains[k];
    struct match best = {0};
    if (!c->heads || r->n < seed_lengths[k]) return best;
    uint32_t place = c->heads[hash_seed(r->tokens + r->n, seed_lengths[k]) & (c->n_heads - 1)];
    for (size_t looked = 0; place != NOWHERE && looked < MAX_CANDIDATES && best.length < MAX_MATCH;
         place = c->links[place], looked++) {
        if (place >= r->n_committed) continue; /* nothing true follows it yet */
        const size_t length = common_suffix(r->tokens, place, r->tokens, r->n);
        if (length < seed_lengths[k]) continue; /* another seed with the same hash */
        if (best.length && r->tokens[place] != r->tokens[best.place]) best.unanimous = false;
        if (length > best.length)
            best = (struct match){place, length, best.length == 0 || r->tokens[place] == r->tokens[best.place]};
    }
    return best;
}

/* Eight classes of match length, each once for an undisputed and once for a disputed first token. */
static uint8_t evidence_of(size_t length, bool unanimous) {
    static const uint8_t bounds[] = {3, 4, 6, 8, 12, 20, 40};
    uint8_t class = 0;
    while (class < 7 && length > bounds[class]) class ++;
    return (uint8_t)(class + (unanimous ? 8 : 0));
}

static size_t propose(struct sk_proposer *p, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct suffix *s = (struct suffix *)p;
    struct match m = {0};
    learn(s, r->tokens, r->n_committed);
    if (s->failed) return 0;
    for (size_t k = 0; k < N_SEEDS && m.length == 0; k++) m = find(s, r, k);
    if (m.length == 0) return 0;
    size_t n = 0;
    for (; n < r->limit && m.place + n < r->n_committed; n++)
        out[n] = (struct sk_draft){r->tokens[m.place + n], SK_SUFFIX, evidence_of(m.length + n, m.unanimous || n > 0)};
    /* A match that runs up to the context's own end repeats itself: what it proposed so far goes on. */
    for (const size_t period = n; n && n < r->limit; n++)
        out[n] = (struct sk_draft){out[n - period].token, SK_SUFFIX, out[n - 1].evidence};
    return n;
}

static void destroy(struct sk_proposer *p) {
    struct suffix *s = (struct suffix *)p;
    for (size_t k = 0; k < N_SEEDS; k++) {
        free(s->chains[k].heads);
        free(s->chains[k].links);
    }
    free(s);
}

static const struct sk_proposer_ops suffix_ops = {SK_SUFFIX, propose, NULL, destroy};

struct sk_proposer *sk_suffix_proposer_create(void) {
    struct suffix *s = sk_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->proposer.ops = &suffix_ops;
    return &s->proposer;
}

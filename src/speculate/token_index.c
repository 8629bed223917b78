#include "speculate/token_index.h"

#include <stdlib.h>

#include "base/memory.h"

enum { MAX_CANDIDATES = 64 };
static const size_t seed_lengths[SK_INDEX_SEEDS] = {8, SK_SHORTEST_MATCH};
static const uint32_t NOWHERE = UINT32_MAX;

static uint32_t hash_seed(const int32_t *end, size_t n) {
    uint64_t h = 0;
    for (size_t i = 1; i <= n; i++) h = (h ^ (uint32_t)end[-(ptrdiff_t)i]) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(h >> 32);
}

static void insert(struct sk_index_chain *c, const int32_t *text, size_t place, size_t seed) {
    uint32_t *head = &c->heads[hash_seed(text + place, seed) & (c->n_heads - 1)];
    c->links[place] = *head;
    *head = (uint32_t)place;
}

/* Room for `place`; a table that has become small is made anew, twice as large. */
static bool make_room(struct sk_index_chain *c, const int32_t *text, size_t place, size_t seed) {
    if (!sk_grow(&c->links, &c->cap_links, place + 1, sizeof *c->links)) return false;
    if (c->heads && place < c->n_heads) return true;
    const size_t n = c->heads ? c->n_heads * 2 : 1024;
    uint32_t *heads = malloc(n * sizeof *heads);
    if (!heads) return false;
    for (size_t i = 0; i < n; i++) heads[i] = NOWHERE;
    free(c->heads);
    c->heads = heads;
    c->n_heads = n;
    for (size_t i = seed; i < place; i++) insert(c, text, i, seed);
    return true;
}

void sk_index_learn(struct sk_token_index *x, const int32_t *text, size_t n) {
    for (; x->n_indexed < n && !x->failed; x->n_indexed++) {
        const size_t place = x->n_indexed + 1; /* after the new token */
        for (size_t k = 0; k < SK_INDEX_SEEDS; k++) {
            if (place < seed_lengths[k]) continue;
            x->failed |= !make_room(&x->chains[k], text, place, seed_lengths[k]);
            if (!x->failed) insert(&x->chains[k], text, place, seed_lengths[k]);
        }
    }
}

static size_t common_suffix(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
    size_t n = 0;
    while (n < SK_LONGEST_MATCH && n < n_a && n < n_b && a[n_a - 1 - n] == b[n_b - 1 - n]) n++;
    return n;
}

static struct sk_match find(const struct sk_token_index *x, size_t k, const int32_t *text, size_t n_text,
                            const int32_t *end, size_t n_end) {
    const struct sk_index_chain *c = &x->chains[k];
    struct sk_match best = {0};
    if (!c->heads || n_end < seed_lengths[k]) return best;
    uint32_t place = c->heads[hash_seed(end + n_end, seed_lengths[k]) & (c->n_heads - 1)];
    for (size_t looked = 0; place != NOWHERE && looked < MAX_CANDIDATES && (best.length < SK_LONGEST_MATCH);
         place = c->links[place], looked++) {
        if (place >= n_text) continue; /* nothing true follows it yet */
        const size_t length = common_suffix(text, place, end, n_end);
        if (length < seed_lengths[k]) continue; /* another seed with the same hash */
        if (best.length && text[place] != text[best.place]) best.unanimous = false;
        if (length > best.length)
            best = (struct sk_match){place, length, best.length == 0 || text[place] == text[best.place]};
    }
    return best;
}

struct sk_match sk_index_find(const struct sk_token_index *x, const int32_t *text, size_t n_text, const int32_t *end,
                              size_t n_end) {
    struct sk_match m = {0};
    for (size_t k = 0; k < SK_INDEX_SEEDS && m.length == 0 && !x->failed; k++) m = find(x, k, text, n_text, end, n_end);
    return m;
}

void sk_index_free(struct sk_token_index *x) {
    for (size_t k = 0; k < SK_INDEX_SEEDS; k++) {
        free(x->chains[k].heads);
        free(x->chains[k].links);
    }
    *x = (struct sk_token_index){0};
}

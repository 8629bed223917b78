#include "speculate/substitutions.h"

#include <string.h>

enum { MOST_COUNT = 15 };

/* ---- the filter ---------------------------------------------------------------------------------------- */

static uint32_t filter_bit(int32_t token) {
    return ((uint32_t)token * 2654435761u) >> 22; /* of 1024 */
}
static void filter_add(uint64_t *filter, int32_t token) {
    filter[filter_bit(token) / 64] |= 1ull << (filter_bit(token) % 64);
}
static bool filter_has(const uint64_t *filter, int32_t token) {
    return filter[filter_bit(token) / 64] >> (filter_bit(token) % 64) & 1;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static int32_t token_before(const int32_t *source, size_t at) {
    return at ? source[at - 1] : SK_ANY_TOKEN;
}

/* The key of a case at source[at]: narrow or wide. What is inserted is told by what it comes after, in both. */
static struct sk_substitution key_of(const int32_t *source, size_t n, size_t at, size_t n_from, bool narrow) {
    struct sk_substitution k = {.left = SK_ANY_TOKEN, .right = SK_ANY_TOKEN, .n_from = (uint8_t)n_from};
    if (n_from) memcpy(k.from, source + at, n_from * sizeof *source);
    if (narrow || n_from == 0) k.left = token_before(source, at);
    if (narrow && at + n_from < n) k.right = source[at + n_from];
    return k;
}

static bool same_key(const struct sk_substitution *a, const struct sk_substitution *b) {
    return a->n_from == b->n_from && a->left == b->left && a->right == b->right &&
           memcmp(a->from, b->from, sizeof a->from) == 0;
}

static size_t set_of(const struct sk_substitution *k) {
    uint64_t h = k->n_from;
    for (size_t i = 0; i < k->n_from; i++) h = (h ^ (uint32_t)k->from[i]) * 0x9E3779B97F4A7C15ull;
    h = (h ^ (uint32_t)k->left) * 0xD6E8FEB86659FD93ull;
    h = (h ^ (uint32_t)k->right) * 0x9E3779B97F4A7C15ull;
    return (size_t)(h >> 32) % SK_SUBSTITUTION_SETS;
}

static bool is_empty(const struct sk_substitution *s) {
    return s->yes == 0 && s->no == 0;
}

static size_t way_of(const struct sk_substitution *set, const struct sk_substitution *key) {
    size_t way = 0;
    while (way < SK_SUBSTITUTION_WAYS && (is_empty(&set[way]) || !same_key(&set[way], key))) way++;
    return way;
}

/* The place of a key, made where it is missing by giving up the one that was of least use. */
static struct sk_substitution *place_for(struct sk_substitutions *t, const struct sk_substitution *key) {
    struct sk_substitution *set = t->entries[set_of(key)];
    size_t way = way_of(set, key), least = 0;
    if (way < SK_SUBSTITUTION_WAYS) return &set[way];
    for (way = 0; way < SK_SUBSTITUTION_WAYS && !is_empty(&set[least]); way++)
        if (is_empty(&set[way]) || set[way].yes < set[least].yes) least = way;
    set[least] = *key;
    return &set[least];
}

static void count(struct sk_substitution *s, bool happened) {
    *(happened ? &s->yes : &s->no) += 1;
    if (s->yes + s->no < MOST_COUNT) return;
    s->yes /= 2;
    s->no /= 2;
}

/* ---- learning ------------------------------------------------------------------------------------------ */

static void learn_key(struct sk_substitutions *t, const struct sk_substitution *key, const int32_t *to, size_t n_to) {
    struct sk_substitution *s = place_for(t, key);
    const bool same = s->n_to == n_to && (n_to == 0 || memcmp(s->to, to, n_to * sizeof *to) == 0);
    if (!is_empty(s) && !same && s->yes > s->no + 1) {
        count(s, false);
        return;
    }
    if (!same) s->yes = 0, s->no = s->no > 1;
    /* An insertion told by one token alone is not believed the first time. */
    if (is_empty(s) && key->n_from == 0 && key->right == SK_ANY_TOKEN) s->no = 1;
    memset(s->to, 0, sizeof s->to);
    if (n_to) memcpy(s->to, to, n_to * sizeof *to);
    s->n_to = (uint8_t)n_to;
    count(s, true);
}

void sk_substitutions_learn(struct sk_substitutions *t, const int32_t *source, size_t n, size_t at, size_t n_from,
                            const int32_t *to, size_t n_to) {
    if (n_from > SK_MOST_FROM || n_to > SK_MOST_TO || n_from + n_to == 0 || at + n_from > n) return;
    if (n_from)
        filter_add(t->begins, source[at]);
    else
        filter_add(t->follows, token_before(source, at));
    for (int narrow = 0; narrow < 2; narrow++) {
        const struct sk_substitution key = key_of(source, n, at, n_from, narrow);
        learn_key(t, &key, to, n_to);
    }
}

void sk_substitutions_confirm(struct sk_substitutions *t, const int32_t *source, size_t n, size_t at,
                              const struct sk_substitution *s) {
    const struct sk_substitution copy = *s; /* learning may move it */
    sk_substitutions_learn(t, source, n, at, copy.n_from, copy.to, copy.n_to);
}

void sk_substitutions_deny(struct sk_substitutions *t, const int32_t *source, size_t n, size_t at,
                           const struct sk_substitution *s) {
    const struct sk_substitution copy = *s;
    for (int narrow = 0; narrow < 2; narrow++) {
        const struct sk_substitution key = key_of(source, n, at, copy.n_from, narrow);
        struct sk_substitution *e = place_for(t, &key);
        if (is_empty(e)) {
            memcpy(e->to, copy.to, sizeof e->to);
            e->n_to = copy.n_to;
        }
        count(e, false);
    }
}

/* ---- asking -------------------------------------------------------------------------------------------- */

static const struct sk_substitution *look_up(const struct sk_substitutions *t, const int32_t *source, size_t n,
                                             size_t at, size_t n_from) {
    for (int narrow = 1; narrow >= 0; narrow--) {
        const struct sk_substitution key = key_of(source, n, at, n_from, narrow);
        const struct sk_substitution *set = t->entries[set_of(&key)];
        const size_t way = way_of(set, &key);
        if (way < SK_SUBSTITUTION_WAYS) return &set[way];
    }
    return NULL;
}

const struct sk_substitution *sk_substitutions_find(const struct sk_substitutions *t, const int32_t *source, size_t n,
                                                    size_t at, bool may_insert, bool *doubted) {
    const bool may_replace = at < n && filter_has(t->begins, source[at]);
    const bool inserts = may_insert && filter_has(t->follows, token_before(source, at));
    *doubted = false;
    for (size_t k = SK_MOST_FROM + 1; k-- > 0;) {
        if (k == 0 ? !inserts : !may_replace || at + k > n) continue;
        const struct sk_substitution *s = look_up(t, source, n, at, k);
        if (!s) continue;
        if (s->yes > s->no) return s;
        *doubted |= 2 * s->yes > s->no;
        if (k > 0 && s->left != SK_ANY_TOKEN) break; /* just here it is known not to happen */
    }
    return NULL;
}

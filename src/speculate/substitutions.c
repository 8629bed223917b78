#include "speculate/substitutions.h"

#include <string.h>

enum { MOST_COUNT = 15 };

/* ---- the table ----------------------------------------------------------------------------------------- */

static size_t bucket_of(int32_t token) {
    return ((uint32_t)token * 2654435761u) >> 20; /* of SK_SUBSTITUTION_FILTER */
}

static int32_t token_before(const int32_t *source, size_t at) {
    return at ? source[at - 1] : SK_ANY_TOKEN;
}

/* What a substitution is told by: narrow, or wide. What is inserted is told by what it comes after, in both. */
struct key {
    const int32_t *from;
    size_t n_from;
    int32_t left, right;
};

static struct key key_of(const int32_t *source, size_t n, size_t at, size_t n_from, bool narrow) {
    return (struct key){.from = source + at,
                        .n_from = n_from,
                        .left = narrow || n_from == 0 ? token_before(source, at) : SK_ANY_TOKEN,
                        .right = narrow && at + n_from < n ? source[at + n_from] : SK_ANY_TOKEN};
}

static bool is_told_by(const struct sk_substitution *s, const struct key *k) {
    if (s->n_from != k->n_from || s->left != k->left || s->right != k->right) return false;
    for (size_t i = 0; i < k->n_from; i++)
        if (s->from[i] != k->from[i]) return false;
    return true;
}

static uint32_t hash_of(const struct key *k) {
    uint64_t h = k->n_from;
    for (size_t i = 0; i < k->n_from; i++) h = (h ^ (uint32_t)k->from[i]) * 0x9E3779B97F4A7C15ull;
    h = (h ^ (uint32_t)k->left) * 0xD6E8FEB86659FD93ull;
    h = (h ^ (uint32_t)k->right) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(h >> 32) | 1;
}
static size_t set_of(uint32_t hash) {
    return hash / 2 % SK_SUBSTITUTION_SETS;
}

static const struct sk_substitution *look_up(const struct sk_substitutions *t, const struct key *key) {
    const uint32_t hash = hash_of(key);
    const size_t set = set_of(hash);
    for (size_t way = 0; way < SK_SUBSTITUTION_WAYS; way++)
        if (t->keys[set][way] == hash && is_told_by(&t->entries[set][way], key)) return &t->entries[set][way];
    return NULL;
}

/* Where an entry counts in the filter. */
static uint16_t *filter_of(struct sk_substitutions *t, const struct sk_substitution *k) {
    return &t->begins[bucket_of(k->n_from ? k->from[0] : k->left)][k->n_from];
}

/* The place of a key, made where it is missing by giving up the one that was of least use. */
static struct sk_substitution *place_for(struct sk_substitutions *t, const struct key *key) {
    const uint32_t hash = hash_of(key);
    const size_t set = set_of(hash);
    size_t least = 0;
    for (size_t way = 0; way < SK_SUBSTITUTION_WAYS; way++) {
        if (t->keys[set][way] == hash && is_told_by(&t->entries[set][way], key)) return &t->entries[set][way];
        if (t->entries[set][way].yes < t->entries[set][least].yes || !t->keys[set][way]) least = way;
        if (!t->keys[set][way]) break; /* the sets fill in order */
    }
    struct sk_substitution *e = &t->entries[set][least];
    if (t->keys[set][least]) --*filter_of(t, e);
    *e = (struct sk_substitution){.left = key->left, .right = key->right, .n_from = (uint8_t)key->n_from};
    for (size_t i = 0; i < key->n_from; i++) e->from[i] = key->from[i];
    t->keys[set][least] = hash;
    ++*filter_of(t, e);
    return e;
}

static bool is_new(const struct sk_substitution *s) {
    return s->yes == 0 && s->no == 0;
}

static void count(struct sk_substitution *s, bool happened) {
    *(happened ? &s->yes : &s->no) += 1;
    if (s->yes + s->no < MOST_COUNT) return;
    s->yes /= 2;
    s->no /= 2;
}

/* ---- learning ------------------------------------------------------------------------------------------ */

static void learn_key(struct sk_substitutions *t, const struct key *key, const int32_t *to, size_t n_to) {
    struct sk_substitution *s = place_for(t, key);
    const bool same = s->n_to == n_to && (n_to == 0 || memcmp(s->to, to, n_to * sizeof *to) == 0);
    if (!is_new(s) && !same && s->yes > s->no + 1) {
        count(s, false);
        return;
    }
    if (!same) s->yes = 0, s->no = s->no > 1;
    /* An insertion told by one token alone is not believed the first time. */
    if (is_new(s) && key->n_from == 0 && key->right == SK_ANY_TOKEN) s->no = 1;
    memset(s->to, 0, sizeof s->to);
    if (n_to) memcpy(s->to, to, n_to * sizeof *to);
    s->n_to = (uint8_t)n_to;
    count(s, true);
}

void sk_substitutions_learn(struct sk_substitutions *t, const int32_t *source, size_t n, size_t at, size_t n_from,
                            const int32_t *to, size_t n_to) {
    if (n_from > SK_MOST_FROM || n_to > SK_MOST_TO || n_from + n_to == 0 || at + n_from > n) return;
    for (int narrow = 0; narrow < 2; narrow++) {
        const struct key key = key_of(source, n, at, n_from, narrow);
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
        const struct key key = key_of(source, n, at, copy.n_from, narrow);
        struct sk_substitution *e = place_for(t, &key);
        if (is_new(e)) {
            memcpy(e->to, copy.to, sizeof e->to);
            e->n_to = copy.n_to;
        }
        count(e, false);
    }
}

/* ---- asking -------------------------------------------------------------------------------------------- */

bool sk_substitutions_may_change(const struct sk_substitutions *t, const int32_t *source, size_t n, size_t at) {
    if (at >= n) return false;
    unsigned any = t->begins[bucket_of(token_before(source, at))][0];
    for (size_t k = 1; k <= SK_MOST_FROM; k++) any |= t->begins[bucket_of(source[at])][k];
    return any;
}

const struct sk_substitution *sk_substitutions_find(const struct sk_substitutions *t, const int32_t *source, size_t n,
                                                    size_t at, bool may_insert, bool *doubted) {
    const uint16_t *replaces = at < n ? t->begins[bucket_of(source[at])] : NULL;
    const bool inserts = may_insert && t->begins[bucket_of(token_before(source, at))][0];
    *doubted = false;
    for (size_t k = SK_MOST_FROM + 1; k-- > 0;) {
        if (k == 0 ? !inserts : at + k > n || !replaces[k]) continue;
        struct key key = key_of(source, n, at, k, true);
        const struct sk_substitution *s = look_up(t, &key);
        if (!s) {
            key = key_of(source, n, at, k, false);
            s = look_up(t, &key);
        }
        if (!s) continue;
        if (s->yes > s->no) return s;
        *doubted |= 2 * s->yes > s->no;
        if (k > 0 && s->left != SK_ANY_TOKEN) break; /* just here it is known not to happen */
    }
    return NULL;
}

/* What parts of a text come out as, learnt while it is copied: `a` as `x`, also of different lengths. Private to
 * speculate/.
 *
 * Each is kept twice: by the tokens it replaces, and by those together with the tokens beside them. What is known of
 * the narrower case counts: a name that is changed everywhere but in strings is learnt as that. A table of fixed size.
 */
#ifndef SK_SPECULATE_SUBSTITUTIONS_H
#define SK_SPECULATE_SUBSTITUTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SK_MOST_FROM = 4, SK_MOST_TO = 8 };

struct sk_substitution {
    int32_t from[SK_MOST_FROM], to[SK_MOST_TO];
    int32_t left, right;  /* source tokens beside it, or SK_ANY_TOKEN */
    uint8_t n_from, n_to; /* from 0: an insertion after `left`; to 0: a deletion */
    uint8_t yes, no;      /* times it happened, and times it did not where it could have */
};
enum { SK_ANY_TOKEN = -1 };

enum { SK_SUBSTITUTION_SETS = 64, SK_SUBSTITUTION_WAYS = 8, SK_SUBSTITUTION_FILTER = 4096 };
struct sk_substitutions {
    uint32_t keys[SK_SUBSTITUTION_SETS][SK_SUBSTITUTION_WAYS]; /* hashes of what each is told by; 0: empty */
    struct sk_substitution entries[SK_SUBSTITUTION_SETS][SK_SUBSTITUTION_WAYS];
    /* By the hash of a token and by n_from: how many entries have a `from` that begins with it; for n_from 0, how many
     * insertions come after it. Most questions end here. */
    uint16_t begins[SK_SUBSTITUTION_FILTER][SK_MOST_FROM + 1];
};

/* source[at .. at + n_from) came out as to[0 .. n_to). What is longer than the table's limits is not learnt. */
void sk_substitutions_learn(struct sk_substitutions *t, const int32_t *source, size_t n, size_t at, size_t n_from,
                            const int32_t *to, size_t n_to);
/* Whether there is anything to ask the table for source[at]: cheap, and mostly no. */
bool sk_substitutions_may_change(const struct sk_substitutions *t, const int32_t *source, size_t n, size_t at);
/* What is expected to happen at source[at], if anything but copying; *doubted: it is as likely that nothing does. An
 * insertion only if it may be (not a second time at the same place). Valid until the next change. */
const struct sk_substitution *sk_substitutions_find(const struct sk_substitutions *t, const int32_t *source, size_t n,
                                                    size_t at, bool may_insert, bool *doubted);
/* That happened; that did not. */
void sk_substitutions_confirm(struct sk_substitutions *t, const int32_t *source, size_t n, size_t at,
                              const struct sk_substitution *s);
void sk_substitutions_deny(struct sk_substitutions *t, const int32_t *source, size_t n, size_t at,
                           const struct sk_substitution *s);

#endif

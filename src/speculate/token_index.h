/* Where in a text the last tokens of another (or of the same) stood before. Private to speculate/.
 *
 * Hash chains over seeds of 8 and of 3 tokens, as LZ77 compressors keep them. The seed of 8 finds the few long matches
 * at once; only where it finds none are the many short ones looked at.
 *
 * Per token: two insertions, 8 bytes of links and at most 16 of tables. Per question: at most 64 comparisons of at most
 * 64 tokens for each seed. */
#ifndef SK_SPECULATE_TOKEN_INDEX_H
#define SK_SPECULATE_TOKEN_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SK_INDEX_SEEDS = 2, SK_LONGEST_MATCH = 64, SK_SHORTEST_MATCH = 3 };

struct sk_index_chain {
    uint32_t *heads; /* [n_heads]: last place with this hash; a place is the index after the seed's end */
    size_t n_heads;  /* a power of two */
    uint32_t *links; /* [place]: the place before with the same hash */
    size_t cap_links;
};
struct sk_token_index {
    struct sk_index_chain chains[SK_INDEX_SEEDS];
    size_t n_indexed; /* tokens seen so far */
    bool failed;      /* memory ran out: nothing is found any more */
};

/* text[place] is what followed; 0 tokens of length: no match. */
struct sk_match {
    size_t place, length;
    bool unanimous; /* all candidates are followed by the same token */
};

/* Takes in text[n_indexed .. n). The text may have moved, but not changed. */
void sk_index_learn(struct sk_token_index *x, const int32_t *text, size_t n);
/* The longest common suffix of end[0 .. n_end) and text[0 .. place) over the candidates with place < n_text; the most
 * recent among equals. */
struct sk_match sk_index_find(const struct sk_token_index *x, const int32_t *text, size_t n_text, const int32_t *end,
                              size_t n_end);
void sk_index_free(struct sk_token_index *x);

#endif

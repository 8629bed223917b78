/* One guess at where in a source text the output is being copied from: followed across substitutions, insertions and
 * deletions. Private to speculate/.
 *
 * After a token that was not expected it is unsure: every diagonal (source tokens passed, less output tokens written)
 * near the place is a candidate, and what speaks for it is how many tokens agree; with equal evidence the cheapest edit
 * comes first. Two or three tokens in a row decide. What lies before them is the edit, from which substitutions are
 * learnt. */
#ifndef SK_SPECULATE_PLACE_H
#define SK_SPECULATE_PLACE_H

#include "speculate/substitutions.h"

/* An edit of more output tokens, or one that skips more of the source, is not followed. */
enum { SK_EDIT_OUTPUT = 32, SK_EDIT_SOURCE = 64, SK_DIAGONALS = SK_EDIT_OUTPUT + SK_EDIT_SOURCE + 1 };

enum sk_place_state { SK_NOWHERE, SK_COPYING, SK_SUBSTITUTING, SK_UNSURE };

struct sk_place {
    enum sk_place_state state;
    size_t at;                  /* the next source token; while unsure, the first that did not come out */
    size_t run;                 /* tokens copied since the last edit; at first, the length of the match that led here */
    size_t support;             /* tokens that came as expected; less with each that did not */
    bool edited;                /* some source token came out changed */
    size_t inserted;            /* the place of the last insertion that was expected and came; SIZE_MAX for none */
    struct sk_substitution now; /* of SK_SUBSTITUTING: tokens [0, n_written) of it are written */
    size_t n_written;
    int32_t unexplained[SK_EDIT_OUTPUT]; /* of SK_UNSURE: the output since `at` */
    size_t n_unexplained, best; /* best: the diagonal that is believed in; SK_EDIT_OUTPUT is the one in place */
    uint8_t runs[SK_DIAGONALS], hits[SK_DIAGONALS]; /* last tokens that agree in a row, and all that do */
};

/* The source, what is known of its substitutions, and how often what was expected of them came (decayed). */
struct sk_changes {
    struct sk_substitutions table;
    float trust;
};

/* At source[at], with so many tokens speaking for it. */
void sk_place_begin(struct sk_place *p, size_t at, size_t run, size_t support);
/* The output went on with `token`. With `teaches`, what it says of substitutions is learnt. */
void sk_place_feed(struct sk_place *p, const int32_t *source, size_t n_source, int32_t token, struct sk_changes *c,
                   bool teaches);
/* How much speaks for it, in eighths of a token of a match. */
size_t sk_place_strength(const struct sk_place *p);
/* The source token that comes next, while unsure by the best candidate; *run: the tokens that agree with it. */
size_t sk_place_next(const struct sk_place *p, size_t *run);

#endif

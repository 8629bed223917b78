/* Follows a text (the output) that copies another (the source) with changes: which source token comes next, across
 * substitutions, insertions and deletions. Learns what is substituted, and expects it again. Private to speculate/.
 *
 * After a token that was not expected it is unsure: every diagonal (source tokens passed, less output tokens written)
 * near the place is a candidate, and its evidence is how many tokens agree on it; with equal evidence the cheapest edit
 * comes first. Two or three tokens decide; what lies between the last sure place and there is the edit, from which
 * substitutions are learnt. If nothing decides, the place is lost, and found again by the index: any earlier match of
 * the last tokens, preferably where it was lost or after. */
#ifndef SK_SPECULATE_ALIGNER_H
#define SK_SPECULATE_ALIGNER_H

#include "speculate/proposal.h"
#include "speculate/substitutions.h"
#include "speculate/token_index.h"

/* An edit of more output tokens, or one that skips more of the source, is not followed. */
enum { SK_EDIT_OUTPUT = 32, SK_EDIT_SOURCE = 64, SK_DIAGONALS = SK_EDIT_OUTPUT + SK_EDIT_SOURCE + 1 };

enum sk_alignment { SK_LOST, SK_COPYING, SK_SUBSTITUTING, SK_UNSURE };

struct sk_aligner {
    struct sk_token_index index; /* of the source */
    struct sk_substitutions substitutions;
    float trust; /* share of expected substitutions that came, decayed */
    enum sk_alignment state;
    size_t at;                  /* the next source token; while unsure, the first that did not come out */
    size_t run;                 /* tokens copied since the last edit; of a new anchor, the length of its match */
    size_t support;             /* tokens that came as expected since the anchor; less with each edit that was not */
    size_t edits;               /* since the anchor: the output went another way, and the place was found again */
    size_t inserted;            /* the place of the last insertion that was expected and came */
    size_t home;                /* where a well supported place was lost; SIZE_MAX for none */
    struct sk_substitution now; /* of SK_SUBSTITUTING: tokens [0, n_written) of it are written */
    size_t n_written;
    int32_t unexplained[SK_EDIT_OUTPUT]; /* of SK_UNSURE: the output since `at` */
    size_t n_unexplained;
    struct sk_match aside; /* while unsure: a place elsewhere that has more to say for it; length 0 for none */
    uint8_t runs[SK_DIAGONALS], hits[SK_DIAGONALS]; /* last tokens that agree in a row, and all that do */
};

/* Lost; or at the source's beginning, which is believed as after a long run. */
void sk_aligner_init(struct sk_aligner *a, bool at_start);
/* end[n_end - 1] was written. The index must hold source[0 .. n_source). The two may be one text: a token is not a
 * source of itself. */
void sk_aligner_feed(struct sk_aligner *a, const int32_t *source, size_t n_source, const int32_t *end, size_t n_end);
/* Before drafts are made: a new anchor with little to say for it gives way to a better one; while unsure such a one
 * is looked for on the side. */
void sk_aligner_reconsider(struct sk_aligner *a, const int32_t *source, size_t n_source, const int32_t *end,
                           size_t n_end);
/* What comes next. Where the source grows with the output (`grows`), drafts that reach its end go on by repeating. */
size_t sk_aligner_draft(const struct sk_aligner *a, const int32_t *source, size_t n_source, bool grows,
                        enum sk_proposer_kind kind, size_t limit, struct sk_draft *out);
void sk_aligner_free(struct sk_aligner *a);

/* The classes of evidence of drafts. A place is young while little supports it. */
enum sk_copy_evidence {
    SK_UNSURE_0, /* no token agrees yet on the place */
    SK_UNSURE_1,
    SK_UNSURE_2,
    SK_RUN_0_YOUNG, /* copied, fewer than 4 tokens after a change */
    SK_RUN_0,
    SK_RUN_4_YOUNG,
    SK_RUN_4,
    SK_RUN_16,
    SK_RUN_64,
    SK_ANCHOR_3, /* a match as long as that, and no change since */
    SK_ANCHOR_4,
    SK_ANCHOR_6,
    SK_CHANGED_ONCE,  /* the first token of a substitution that was seen once */
    SK_CHANGED_OFTEN, /* … more than once, always */
    SK_CHANGED_MIXED, /* … not always; or copied where one was seen as often as not */
    SK_CHANGED_REST   /* further tokens of one */
};

#endif

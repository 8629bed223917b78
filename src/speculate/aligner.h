/* Follows an output that copies a source with changes, and drafts what comes next. Private to speculate/.
 *
 * A few places (place.h) are followed side by side: one that goes on well, and what the index finds beside it: the
 * longest earlier match of the last tokens. The strongest one drafts, and is the one that teaches substitutions. */
#ifndef SK_SPECULATE_ALIGNER_H
#define SK_SPECULATE_ALIGNER_H

#include "speculate/place.h"
#include "speculate/proposal.h"
#include "speculate/token_index.h"

enum { SK_PLACES = 4 };

struct sk_aligner {
    struct sk_token_index index; /* of the source */
    struct sk_changes changes;
    struct sk_place places[SK_PLACES];
};

/* With no place; or at the source's beginning, which is believed as after a long run. */
void sk_aligner_init(struct sk_aligner *a, bool at_start);
/* The output went on with `token`, when the source had n_source tokens. */
void sk_aligner_feed(struct sk_aligner *a, const int32_t *source, size_t n_source, int32_t token);
/* Looks for a further place: where the last tokens of the output, end[0 .. n_end), stand in the source, which the index
 * must hold. The two may be one text. */
void sk_aligner_search(struct sk_aligner *a, const int32_t *source, size_t n_source, const int32_t *end, size_t n_end);
/* What comes next. Where the source grows with the output (`grows`), drafts that reach its end go on by repeating. */
size_t sk_aligner_draft(const struct sk_aligner *a, const int32_t *source, size_t n_source, bool grows,
                        enum sk_proposer_kind kind, size_t limit, struct sk_draft *out);
void sk_aligner_free(struct sk_aligner *a);

/* The classes of evidence of drafts. A place is young while little supports it. */
enum sk_copy_evidence {
    SK_UNSURE_0,     /* no token agrees yet on where it goes on */
    SK_UNSURE_YOUNG, /* one does, in a young place */
    SK_UNSURE_1,     /* one does, or two in a young place */
    SK_UNSURE_2,
    SK_RUN_0_YOUNG, /* copied, fewer than 4 tokens after a change */
    SK_RUN_0,
    SK_RUN_4_YOUNG,
    SK_RUN_4,
    SK_RUN_16,
    SK_ANCHOR_3, /* a match as long as that, and no change since */
    SK_ANCHOR_4,
    SK_ANCHOR_6,
    SK_CHANGED_ONCE,  /* the first token of a substitution that was seen once */
    SK_CHANGED_OFTEN, /* … more than once, always */
    SK_CHANGED_MIXED, /* … not always; or copied where one was seen as often as not */
    SK_CHANGED_REST   /* further tokens of one */
};

#endif

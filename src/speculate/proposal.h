/* What speculation is made of: drafts, proposers, receipts. Plain data, and one interface. */
#ifndef SK_SPECULATE_PROPOSAL_H
#define SK_SPECULATE_PROPOSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SK_MAX_PROPOSAL = 256, SK_MAX_WINDOW = 64 };

enum sk_proposer_kind {
    SK_MTP,
    SK_PREDICTION,
    SK_PLUGIN,
    SK_DRAFT,
    SK_COPY,
    SK_SUFFIX,
    SK_CACHE,
    SK_N_PROPOSERS,
    SK_NO_PROPOSER = SK_N_PROPOSERS
};
/* "mtp", "prediction", "plugin", "draft", "copy", "suffix", "cache"; "none" */
const char *sk_proposer_name(enum sk_proposer_kind kind);

/* How much there is to say for a draft: small classes whose acceptance is learnt (width.h). A proposer numbers its own.
 */
enum { SK_EVIDENCE_CLASSES = 16 };

struct sk_draft {
    int32_t token;
    uint8_t kind;     /* enum sk_proposer_kind */
    uint8_t evidence; /* < SK_EVIDENCE_CLASSES */
};

/* What is to be continued: tokens[0 .. n), the last of them the current token or, for a tail, the last draft before it.
 * Only the first n_committed are true; an index must not learn from the rest. */
struct sk_proposal_request {
    const int32_t *tokens;
    size_t n_committed, n;
    size_t limit; /* at most SK_MAX_PROPOSAL drafts */
};

enum sk_disposition { SK_FULL_ACCEPT, SK_FIRST_MISMATCH, SK_STOPPED };
const char *sk_disposition_name(enum sk_disposition d); /* "full_accept", "first_mismatch", "stopped" */

/* What became of one window. Pointers are valid during the call. */
struct sk_receipt {
    enum sk_disposition disposition;
    const struct sk_draft *proposal;
    size_t n_proposal, n_rows, n_accepted, n_committed;
    const int32_t *predicted; /* of all rows up to the decision */
    size_t n_predicted;
    int32_t next_token; /* the correction or the boundary token; -1 if stopped */
    uint32_t base_position, position_after_verification, canonical_position;
    size_t trimmed_rows;
    double propose_s, verify_s, repair_s, total_s;
};

#define SK_PROPOSE_FAILED SIZE_MAX

/* One instance serves one generation. */
struct sk_proposer {
    const struct sk_proposer_ops *ops;
};
struct sk_proposer_ops {
    enum sk_proposer_kind kind;
    /* Writes at most r->limit drafts and gives their number; 0 for nothing to say, SK_PROPOSE_FAILED if it could not do
     * its work. */
    size_t (*propose)(struct sk_proposer *p, const struct sk_proposal_request *r, struct sk_draft *out);
    void (*observe)(struct sk_proposer *p, const struct sk_receipt *r); /* may be NULL */
    void (*destroy)(struct sk_proposer *p);
};

/* Follows what is being copied from the context across changes, and learns them: what was changed once is expected
 * again. Without changes it does what the next one does. NULL when memory is short. */
struct sk_proposer *sk_copy_proposer_create(void);
/* N-grams of prompt and output: the longest earlier match of the context's end, and what followed it. */
struct sk_proposer *sk_suffix_proposer_create(void); /* NULL when memory is short */
/* Counts of what followed the last one to four tokens. */
struct sk_proposer *sk_cache_proposer_create(void);
/* A text expected as output (copied), followed across changes as by sk_copy_proposer_create. The output starts at
 * position n_prompt. */
struct sk_proposer *sk_prediction_proposer_create(const int32_t *tokens, size_t n, size_t n_prompt);
/* Knows the whole sequence (prompt and output, copied) and proposes its tokens, each true with probability `accuracy`.
 * Counts as a plugin. For measurements and tests. */
struct sk_proposer *sk_replay_proposer_create(const int32_t *tokens, size_t n, size_t n_vocab, double accuracy,
                                              uint64_t seed);

#endif

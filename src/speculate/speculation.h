/* Speculation of one generation: which proposer is asked, what is buffered, how wide the next window is, and what is
 * learnt from each verdict. Pure logic: no clock, no I/O, no model. */
#ifndef SK_SPECULATE_SPECULATION_H
#define SK_SPECULATE_SPECULATION_H

#include "speculate/width.h"

enum sk_width_mode { SK_WIDTH_GOODPUT, SK_WIDTH_ADAPTIVE, SK_WIDTH_FIXED };

/* Widths count proposals: a window of width w has w + 1 rows. */
struct sk_speculation_options {
    uint32_t proposers; /* bit (1 << enum sk_proposer_kind) for each that may be used */
    enum sk_width_mode mode;
    size_t width;                /* of SK_WIDTH_FIXED */
    size_t min_width, max_width; /* of the other two */
    size_t mtp_max, mtp_min;     /* drafts of the model's own head; a shorter draft is not used */
    float mtp_min_probability;   /* drafting stops below it */
    size_t mtp_cooldown;         /* tokens without MTP after a rejection inside its prefix */
    size_t tail_start, tail_max; /* limit of an n-gram tail after MTP drafts */
    size_t tail_pause;           /* proposals without a tail after one was rejected */
};
/* Nothing but n-grams and what the model brings; goodput width up to 31; 4 MTP drafts; no cooldown; tails from 2 to 16,
 * pause 2. */
struct sk_speculation_options sk_speculation_defaults(void);

/* Where a draft of the model's own head came from: with the first token; after a plain step; together with a window's
 * predictions. */
enum sk_draft_origin { SK_INITIAL_SERIAL, SK_SERIAL_AFTER_GAP, SK_VERIFY_NEXT, SK_N_DRAFT_ORIGINS };
const char *sk_draft_origin_name(enum sk_draft_origin o); /* "initial_serial", … */

struct sk_speculation_stats {
    struct {
        uint64_t attempts, hits; /* asked, and had something to say */
        uint64_t proposed, accepted;
        uint64_t invalid, failures; /* proposals with a token that does not exist; calls that failed or took too long */
        bool off;                   /* switched off for this generation */
        double seconds;
    } by[SK_N_PROPOSERS];
    uint64_t windows, width_histogram[SK_MAX_WINDOW]; /* of drafts */
    uint64_t full_accepts, rejections, rejected_at[SK_MAX_WINDOW];
    uint64_t committed;
    uint64_t buffered_hits, buffered_misses; /* boundary tokens against the next buffered draft */
    uint64_t mtp_offered[SK_N_DRAFT_ORIGINS], mtp_adopted[SK_N_DRAFT_ORIGINS], mtp_cooldowns;
    uint64_t mtp_pauses; /* windows for which no draft was made because drafts had not been worth their time */
    uint64_t probes;     /* plain steps taken to see what one costs */
    uint64_t prefix_agreements, prefix_disagreements, tail_rejections;
    uint64_t trims, retires;
};

struct sk_speculation;
/* NULL when memory is short; `start` is what earlier generations taught, or NULL. */
struct sk_speculation *sk_speculation_create(const struct sk_speculation_options *o, size_t n_vocab,
                                             const struct sk_acceptance *start);
/* Takes the proposer over. Those added first are preferred among equals. */
void sk_speculation_add(struct sk_speculation *s, struct sk_proposer *p);
void sk_speculation_free(struct sk_speculation *s);

/* The draft that the target's own head made for the place after the last committed token; replaces the one before. */
void sk_speculation_offer_mtp(struct sk_speculation *s, const struct sk_draft *drafts, size_t n);
/* Whether such a draft could be used now, and how long a one. */
size_t sk_speculation_mtp_wanted(const struct sk_speculation *s);

/* The same, after looking at what drafts cost and have brought: called once for each window, before it is run. */
struct sk_mtp_plan {
    size_t wanted;                         /* 0: none, now */
    float min_reach;                       /* no draft after those that are all accepted less often than this … */
    float acceptance[SK_EVIDENCE_CLASSES]; /* … by the evidence of each */
};
struct sk_mtp_plan sk_speculation_plan_mtp(struct sk_speculation *s, const struct sk_cost_model *cost);

struct sk_next {
    const int32_t *tokens; /* all committed; the last is the current token */
    size_t n_tokens;
    size_t limit; /* from budget, context and window (R2) */
    const struct sk_cost_model *cost;
    size_t other_rows; /* of the same pass */
    double other_tokens;
    double (*now)(void *ctx); /* seconds, to count proposers' time; NULL = not counted */
    void *ctx;
};
/* The drafts of the next window; 0 is plain decoding. */
size_t sk_speculation_next(struct sk_speculation *s, const struct sk_next *n, struct sk_draft out[SK_MAX_WINDOW]);

/* The window that was made of the last proposal will not be run: it and what is buffered are forgotten (R5). */
void sk_speculation_discard(struct sk_speculation *s);

/* After repair. The window's drafts are those that sk_speculation_next gave last. */
void sk_speculation_observe(struct sk_speculation *s, const struct sk_receipt *r);

const struct sk_speculation_stats *sk_speculation_stats(const struct sk_speculation *s);
const struct sk_acceptance *sk_speculation_acceptance(const struct sk_speculation *s);
/* Drafts now in the buffer, for tests and traces. */
size_t sk_speculation_buffered(const struct sk_speculation *s);

#endif

/* The engine: requests become generations, and one loop runs them all, window by window.
 *
 * Each iteration takes one window from every running generation, gives them to the target as one batch, and commits
 * what the verdicts allow. Plain decoding is a window of one row; a prompt chunk is a window too. One thread at a time.
 * docs/SPECULATION.md states the rules (R1 to R10) that this loop keeps. */
#ifndef SK_ENGINE_H
#define SK_ENGINE_H

#include "engine/target.h"
#include "speculate/speculation.h"
#include "text/tokenizer.h"

enum sk_finish { SK_RUNNING, SK_FINISH_STOP, SK_FINISH_LENGTH, SK_FINISH_CANCELLED, SK_FINISH_ERROR };
const char *sk_finish_name(enum sk_finish f); /* "stop", "length", "cancelled", "error" */

struct sk_token_event {
    int32_t token;
    double logprob;               /* if wanted */
    struct sk_str text;           /* what can be shown now: perhaps nothing, perhaps more than this token's */
    enum sk_proposer_kind origin; /* whose accepted draft it was; SK_NO_PROPOSER for the target's own */
};

/* One window after repair. */
struct sk_window_event {
    size_t step; /* of this generation, from 0 */
    const struct sk_receipt *receipt;
    size_t drafts_offered; /* by the model's own head, for the next window */
};

struct sk_request {
    const int32_t *prompt; /* copied; at least one token */
    size_t n_prompt;
    size_t max_tokens;                  /* at least 1 */
    struct sk_sampling_params sampling; /* `bias` is borrowed until the generation is closed */
    const struct sk_str *stops; /* stop strings; borrowed likewise. The text ends before the first that appears */
    size_t n_stops;
    bool ignore_end; /* go on past end-of-generation tokens */
    bool wants_logprobs;
    const struct sk_speculation_options *speculation; /* copied; NULL = plain decoding */
    struct sk_proposer *
        *proposers; /* more than the built-in ones: plugins, draft models; taken over, even on failure */
    size_t n_proposers;
    const int32_t *prediction; /* the output that is expected, for the prediction proposer; copied; may be NULL */
    size_t n_prediction;
    void (*on_window)(void *ctx, const struct sk_window_event *e); /* may be NULL */
    size_t prefill_chunk; /* prompt rows per pass; 0 = as many as the target takes */
    /* Called for each committed token, before the next; false stops the generation there (that token counts). May be
     * NULL. */
    bool (*on_token)(void *ctx, const struct sk_token_event *e);
    void *ctx;
};

struct sk_generation_stats {
    size_t n_prompt, n_kept, n_output; /* n_kept: prompt tokens that the session held already */
    size_t n_windows;                  /* decoded after the prompt's last pass, which gives the first token */
    double prefill_s, decode_s;        /* time of passes, and of proposing for them, from the generation's view */
    double commit_s; /* time from a pass's results to the next: verdicts, text, its receiver, repair */
};

struct sk_generation {
    struct sk_generation *next;
    struct sk_request request;
    struct sk_target_session *session;
    int32_t *tokens; /* prompt and output, committed; room for a window's proposals after them */
    size_t n_tokens, cap_tokens;
    uint64_t window_id;
    enum sk_finish finish;
    struct sk_error error; /* if finish is SK_FINISH_ERROR */
    struct sk_generation_stats stats;
    bool cancelled;
    struct sk_speculation *speculation; /* NULL for plain decoding */
    struct sk_speculation_options options;
    struct sk_mtp_plan mtp_plan;           /* of the current window */
    struct sk_draft drafts[SK_MAX_WINDOW]; /* private from here: of the current window */
    size_t n_drafts;
    bool plain_next; /* the next window carries no drafts: there was no room for them */
    double propose_s;
    struct sk_stop_matcher *stops;
    struct sk_detokenizer text;
};

struct sk_engine;
/* Both are borrowed; with no tokenizer (NULL) there is no text, and no token ends a generation. */
sk_status sk_engine_create(struct sk_target *target, const struct sk_tokenizer *tokenizer, struct sk_engine **out,
                           struct sk_error *err);
void sk_engine_free(struct sk_engine *e); /* closes what is left */

/* Checks the request and adds it to the running generations. */
sk_status sk_engine_add(struct sk_engine *e, const struct sk_request *r, struct sk_generation **out,
                        struct sk_error *err);
/* The same over a session that already holds the first tokens of the prompt (a chat's earlier turns); takes the session
 * over. */
sk_status sk_engine_add_to(struct sk_engine *e, struct sk_target_session *s, const struct sk_request *r,
                           struct sk_generation **out, struct sk_error *err);
/* One pass over all running generations. False if there was none. */
bool sk_engine_step(struct sk_engine *e);
/* Asks a generation to end; it does at its next token. */
void sk_generation_cancel(struct sk_generation *g);
/* Ends a generation and gives its session back (NULL after an error: such a session is never used again). */
struct sk_target_session *sk_engine_detach(struct sk_engine *e, struct sk_generation *g);
void sk_engine_close(struct sk_engine *e, struct sk_generation *g); /* with its session */

#endif

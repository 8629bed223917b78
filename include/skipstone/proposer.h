/* The proposer plugin ABI: a shared library that guesses how a text goes on.
 *
 * Skipstone checks every guess with the model, so that a plugin can cost or gain speed and never changes a token. It
 * loads the library (`--spec plugin:PATH`), calls skipstone_proposer() once, opens one state per generation, and calls
 * the functions of one state from one thread at a time, which is not the program's main thread. A call that takes
 * longer than the time limit
 * (`--plugin-timeout`) is not waited for; after three failures in a row the plugin is left alone for the rest of the
 * generation.
 *
 * The same protocol is spoken as JSON lines over a Unix socket, which a plugin in any language may serve:
 * docs/SPECULATION.md, "Plugins". */
#ifndef SKIPSTONE_PROPOSER_H
#define SKIPSTONE_PROPOSER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SKIPSTONE_PROPOSER_ABI    1u
#define SKIPSTONE_MAX_PROPOSAL    256u
#define SKIPSTONE_MAX_DECISION_ID 64u

struct skipstone_proposal_request {
    const int32_t
        *tokens; /* [n_tokens] prompt and output, the last one being the current token; valid during the call */
    size_t n_tokens;
    size_t n_prompt;   /* of them, the prompt's */
    uint32_t position; /* of the current token: n_tokens - 1 */
    size_t budget;     /* at most so many tokens are of use */
};

struct skipstone_proposal {
    int32_t tokens[SKIPSTONE_MAX_PROPOSAL];
    size_t n_tokens;                             /* 0 for no guess */
    char decision_id[SKIPSTONE_MAX_DECISION_ID]; /* any bytes; comes back in the receipts of this proposal */
    size_t n_decision_id;                        /* 1 to 64 if there are tokens */
};

enum skipstone_disposition { SKIPSTONE_FULL_ACCEPT, SKIPSTONE_FIRST_MISMATCH, SKIPSTONE_STOPPED };

/* What became of one window. A proposal longer than a window gets one receipt for each window that it fed. */
struct skipstone_receipt {
    const char *decision_id;
    size_t n_decision_id;
    enum skipstone_disposition disposition;
    const int32_t *proposal; /* [n_proposal] the tokens of this window */
    size_t n_proposal;
    size_t n_rows; /* verified: n_proposal + 1 */
    size_t n_accepted, n_committed;
    const int32_t *predicted; /* [n_predicted] what the model said, row by row, up to the decision */
    size_t n_predicted;
    int32_t next_token; /* the correction or boundary token; -1 if stopped */
    uint32_t base_position, position_after_verification, canonical_position;
    size_t trimmed_rows;
    double propose_s, verify_s, repair_s, total_s;
};

struct skipstone_proposer_api {
    uint32_t abi; /* SKIPSTONE_PROPOSER_ABI */
    const char *name;
    /* A state for one generation; NULL for failure. */
    void *(*open)(void);
    /* 0 for success, anything else for failure. `out` is zeroed. */
    int (*propose)(void *state, const struct skipstone_proposal_request *request, struct skipstone_proposal *out);
    void (*observe)(void *state, const struct skipstone_receipt *receipt); /* may be NULL */
    void (*close)(void *state);
};

/* What the library exports. The result must live as long as the library is loaded. */
const struct skipstone_proposer_api *skipstone_proposer(void);

#ifdef __cplusplus
}
#endif
#endif

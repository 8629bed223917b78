/* The prediction proposer: the output is expected to be a given text, more or less (OpenAI's predicted outputs). It
 * walks along the text as long as the output agrees; after a mismatch it looks for the output's last tokens further on
 * in the text, nearest first, then before. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "speculate/proposal.h"

enum { LONGEST_ANCHOR = 4, SHORTEST_ANCHOR = 2, LOOK_AHEAD = 4096 };

struct prediction {
    struct sk_proposer proposer; /* must be first */
    int32_t *tokens;
    size_t n, n_prompt;
    size_t at;   /* next token of the text */
    size_t seen; /* context tokens that were compared with it */
    size_t run;  /* tokens that agreed since the last mismatch */
    bool aligned;
};

/* Whether the `k` last tokens of the context stand right before text[at]. */
static bool anchored(const struct prediction *p, const int32_t *end, size_t k, size_t at) {
    return at >= k && memcmp(p->tokens + at - k, end - k, k * sizeof *end) == 0;
}

static bool realign(struct prediction *p, const int32_t *end, size_t n_output) {
    const size_t ahead = p->n - p->at < LOOK_AHEAD ? p->n - p->at : LOOK_AHEAD;
    for (size_t k = n_output < LONGEST_ANCHOR ? n_output : LONGEST_ANCHOR; k >= SHORTEST_ANCHOR; k--) {
        for (size_t i = p->at; i <= p->at + ahead && i < p->n; i++)
            if (anchored(p, end, k, i)) return p->at = i, true;
        for (size_t i = p->at; i > k && p->at - i < LOOK_AHEAD; i--)
            if (anchored(p, end, k, i)) return p->at = i, true;
    }
    return false;
}

static void follow(struct prediction *p, const int32_t *tokens, size_t n) {
    if (p->seen < p->n_prompt) p->seen = p->n_prompt;
    for (; p->seen < n; p->seen++) {
        if (p->aligned && p->at < p->n && p->tokens[p->at] == tokens[p->seen]) {
            p->at++;
            p->run++;
            continue;
        }
        p->run = 0;
        p->aligned = realign(p, tokens + p->seen + 1, p->seen + 1 - p->n_prompt);
    }
}

static uint8_t evidence_of(size_t run) {
    uint8_t class = 0;
    while (class < 7 && (size_t)1 << class <= run) class ++;
    return class;
}

static size_t propose(struct sk_proposer *proposer, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct prediction *p = (struct prediction *)proposer;
    size_t n = 0;
    follow(p, r->tokens, r->n_committed);
    if (!p->aligned || r->n != r->n_committed) return 0;
    for (; n < r->limit && p->at + n < p->n; n++)
        out[n] = (struct sk_draft){p->tokens[p->at + n], SK_PREDICTION, evidence_of(p->run + n)};
    return n;
}

static void destroy(struct sk_proposer *proposer) {
    free(((struct prediction *)proposer)->tokens);
    free(proposer);
}

static const struct sk_proposer_ops prediction_ops = {SK_PREDICTION, propose, NULL, destroy};

struct sk_proposer *sk_prediction_proposer_create(const int32_t *tokens, size_t n, size_t n_prompt) {
    struct prediction *p = sk_calloc(1, sizeof *p);
    if (p) p->tokens = sk_calloc(n ? n : 1, sizeof *tokens);
    if (!p || !p->tokens) {
        free(p);
        return NULL;
    }
    memcpy(p->tokens, tokens, n * sizeof *tokens);
    p->proposer.ops = &prediction_ops;
    p->n = n;
    p->n_prompt = n_prompt;
    p->aligned = true;
    return &p->proposer;
}

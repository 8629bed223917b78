/* An example plugin: proposes from a file of text that was tokenized before (SKIPSTONE_TEXTFILE names it: token ids in
 * decimal, as `skipstone tokenize -m MODEL < text` prints them). Where the last tokens of the context occur in the
 * file, it proposes what follows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skipstone/proposer.h"

enum { ANCHOR = 3 };

struct state {
    int32_t *tokens;
    size_t n, cap;
    size_t last; /* where the last proposal was found, which is where the next one probably is */
    unsigned long n_decisions, n_accepted;
};

static int add_token(struct state *s, int32_t token) {
    if (s->n == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 1024;
        int32_t *grown = realloc(s->tokens, cap * sizeof *grown);
        if (!grown) return -1;
        s->tokens = grown;
        s->cap = cap;
    }
    s->tokens[s->n++] = token;
    return 0;
}

static void close_state(void *state) {
    free(((struct state *)state)->tokens);
    free(state);
}

static void *open_state(void) {
    const char *path = getenv("SKIPSTONE_TEXTFILE");
    FILE *f = path ? fopen(path, "r") : NULL;
    struct state *s = calloc(1, sizeof *s);
    int token, failed = !f || !s;
    while (!failed && fscanf(f, "%d", &token) == 1) failed = add_token(s, token);
    if (f) fclose(f);
    if (!failed) return s;
    if (s) close_state(s);
    return NULL;
}

static int propose(void *state, const struct skipstone_proposal_request *r, struct skipstone_proposal *out) {
    struct state *s = state;
    if (r->n_tokens < ANCHOR || s->n < ANCHOR) return 0;
    const int32_t *end = r->tokens + r->n_tokens - ANCHOR;
    for (size_t k = 0; k + ANCHOR <= s->n; k++) {
        const size_t at = (s->last + k) % (s->n - ANCHOR + 1);
        if (memcmp(s->tokens + at, end, ANCHOR * sizeof *end) != 0) continue;
        s->last = at;
        for (size_t i = at + ANCHOR; i < s->n && out->n_tokens < r->budget && out->n_tokens < SKIPSTONE_MAX_PROPOSAL;
             i++)
            out->tokens[out->n_tokens++] = s->tokens[i];
        out->n_decision_id =
            (size_t)snprintf(out->decision_id, sizeof out->decision_id, "textfile-%lu", ++s->n_decisions);
        return 0;
    }
    return 0;
}

static void observe(void *state, const struct skipstone_receipt *r) {
    ((struct state *)state)->n_accepted += r->n_accepted;
}

static const struct skipstone_proposer_api api = {
    SKIPSTONE_PROPOSER_ABI, "textfile", open_state, propose, observe, close_state};

const struct skipstone_proposer_api *skipstone_proposer(void) {
    return &api;
}

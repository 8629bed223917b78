/* The suffix proposer: the longest earlier match of the context's end (token_index.h), and what followed it. (Compare
 * SuffixDecoding, arXiv 2411.04975.) */
#include <stdlib.h>

#include "base/memory.h"
#include "speculate/proposal.h"
#include "speculate/token_index.h"

struct suffix {
    struct sk_proposer proposer; /* must be first */
    struct sk_token_index index;
};

/* Eight classes of match length, each once for an undisputed and once for a disputed first token. */
static uint8_t evidence_of(size_t length, bool unanimous) {
    static const uint8_t bounds[] = {3, 4, 6, 8, 12, 20, 40};
    uint8_t class = 0;
    while (class < 7 && length > bounds[class]) class ++;
    return (uint8_t)(class + (unanimous ? 8 : 0));
}

static size_t propose(struct sk_proposer *p, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct suffix *s = (struct suffix *)p;
    sk_index_learn(&s->index, r->tokens, r->n_committed);
    const struct sk_match m = sk_index_find(&s->index, r->tokens, r->n_committed, r->tokens, r->n);
    if (m.length == 0) return 0;
    size_t n = 0;
    for (; n < r->limit && m.place + n < r->n_committed; n++)
        out[n] = (struct sk_draft){r->tokens[m.place + n], SK_SUFFIX, evidence_of(m.length + n, m.unanimous || n > 0)};
    /* A match that runs up to the context's own end repeats itself: what it proposed so far goes on. */
    for (const size_t period = n; n && n < r->limit; n++)
        out[n] = (struct sk_draft){out[n - period].token, SK_SUFFIX, out[n - 1].evidence};
    return n;
}

static void destroy(struct sk_proposer *p) {
    sk_index_free(&((struct suffix *)p)->index);
    free(p);
}

static const struct sk_proposer_ops suffix_ops = {SK_SUFFIX, propose, NULL, destroy};

struct sk_proposer *sk_suffix_proposer_create(void) {
    struct suffix *s = sk_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->proposer.ops = &suffix_ops;
    return &s->proposer;
}

/* The copy proposer: the output copies some part of its context, with changes (aligner.h). Where nothing is changed it
 * proposes what the suffix proposer does. (Compare prompt lookup, and Copy-as-Decode, arXiv 2604.18170; here the
 * changes themselves are learnt.) */
#include <stdlib.h>

#include "base/memory.h"
#include "speculate/aligner.h"

/* Of a prompt so much is followed: its end may hold a half-done edit. */
enum { FOLLOWED_PROMPT = 4096 };

struct copy {
    struct sk_proposer proposer; /* must be first */
    struct sk_aligner aligner;
    size_t n_fed;
};

static size_t propose(struct sk_proposer *p, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct copy *c = (struct copy *)p;
    const int32_t *text = r->tokens;
    if (r->n != r->n_committed) return 0;
    const bool is_prompt = c->n_fed == 0;
    if (is_prompt && r->n > FOLLOWED_PROMPT) c->n_fed = r->n - FOLLOWED_PROMPT;
    for (; c->n_fed < r->n; c->n_fed++) {
        sk_aligner_feed(&c->aligner, text, c->n_fed, text[c->n_fed]);
        sk_index_learn(&c->aligner.index, text, c->n_fed + 1);
        if (is_prompt || c->n_fed + 1 == r->n) sk_aligner_search(&c->aligner, text, c->n_fed + 1, text, c->n_fed + 1);
    }
    return sk_aligner_draft(&c->aligner, text, r->n, true, SK_COPY, r->limit, out);
}

static void destroy(struct sk_proposer *p) {
    sk_aligner_free(&((struct copy *)p)->aligner);
    free(p);
}

static const struct sk_proposer_ops copy_ops = {SK_COPY, propose, NULL, destroy};

struct sk_proposer *sk_copy_proposer_create(void) {
    struct copy *c = sk_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->proposer.ops = &copy_ops;
    sk_aligner_init(&c->aligner, false);
    return &c->proposer;
}

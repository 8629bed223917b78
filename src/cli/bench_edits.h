/* `skipstone bench --spec-edits FILE`: how well proposers foresee edited texts. No model is run: the answer is known.
 */
#ifndef SK_CLI_BENCH_EDITS_H
#define SK_CLI_BENCH_EDITS_H

#include "setup.h"

/* Lines of `file` are objects with "kind", "share", "before" and "after" (bench/edits.py writes them). The
 * text before is the prompt (the predicted text, for the prediction proposer), the text after is what the target
 * "says". Needs the tokenizer and, for what rows cost, the kernels. */
sk_status bench_edits(struct model *m, const char *file, struct sk_error *err);

#endif

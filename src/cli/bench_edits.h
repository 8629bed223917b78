/* `skipstone bench --spec-edits FILE`: how well proposers foresee edited texts. No model is run: the answer is known.
 */
#ifndef SK_CLI_BENCH_EDITS_H
#define SK_CLI_BENCH_EDITS_H

#include "setup.h"

/* Lines of `file` are objects with "kind", "share", "before" and "after" (bench/edits.py writes them). The
 * text before is the prompt (the predicted text, for the prediction proposer), the text after is what the target
 * "says". A further row of a pass costs row_cost of the first; 0: as the kernels' prior says. Needs the tokenizer. */
sk_status bench_edits(struct model *m, const char *file, double row_cost, struct sk_error *err);

#endif

/* Proposer plugins: shared libraries (include/skipstone/proposer.h) and Unix sockets with JSON lines
 * (docs/SPECULATION.md). */
#ifndef SK_ENGINE_PLUGIN_H
#define SK_ENGINE_PLUGIN_H

#include "base/error.h"
#include "speculate/proposal.h"

struct sk_plugin;

/* A path that names a socket is connected to for each generation; anything else is loaded. `timeout_ms` limits each
 * call. */
sk_status sk_plugin_open(const char *path, size_t timeout_ms, struct sk_plugin **out, struct sk_error *err);
/* All its proposers must be gone. */
void sk_plugin_close(struct sk_plugin *p);
sk_status sk_plugin_proposer_create(struct sk_plugin *p, size_t n_prompt, struct sk_proposer **out,
                                    struct sk_error *err);

#endif

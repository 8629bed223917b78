/* Private to the plugin hosts. */
#ifndef SK_ENGINE_PLUGIN_INTERNAL_H
#define SK_ENGINE_PLUGIN_INTERNAL_H

#include "engine/plugin.h"
#include "skipstone/proposer.h"

struct sk_plugin {
    char *path;
    size_t timeout_ms;
    void *library; /* NULL for a socket */
    const struct skipstone_proposer_api *api;
};

sk_status sk_library_proposer_create(struct sk_plugin *p, size_t n_prompt, struct sk_proposer **out,
                                     struct sk_error *err);
sk_status sk_socket_proposer_create(struct sk_plugin *p, size_t n_prompt, struct sk_proposer **out,
                                    struct sk_error *err);

/* Whether a proposal keeps the rules; then copies it. SK_PROPOSE_FAILED if it does not. */
size_t sk_plugin_take(const struct skipstone_proposal *p, size_t limit, struct sk_draft *out);
/* The host's receipt in the ABI's words. Token arrays are borrowed from `r` and `tokens`. */
struct skipstone_receipt sk_plugin_receipt(const struct sk_receipt *r, int32_t tokens[SK_MAX_WINDOW],
                                           const char *decision_id, size_t n_decision_id);

#endif

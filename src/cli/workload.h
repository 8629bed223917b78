/* Workloads: prompts from JSON lines, as bench and exact use them. */
#ifndef SK_CLI_WORKLOAD_H
#define SK_CLI_WORKLOAD_H

#include "setup.h"

struct workload {
    char name[64];
    struct sk_tokens *prompts;
    size_t n, cap;
};
struct workloads {
    struct workload *items;
    size_t n, cap;
};

/* Every FILE.jsonl of a folder, by name; lines are objects with a "prompt". With a chat template, prompts go through it, except those of
 * workloads "list" and "random", which are continued as they are. At most max_tokens of each prompt are kept. */
sk_status workloads_load(const char *folder, const struct model *m, size_t max_tokens, struct workloads *out, struct sk_error *err);
void workloads_free(struct workloads *w);

#endif

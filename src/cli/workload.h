/* Workloads: prompts from JSON lines, as bench and exact use them. */
#ifndef SK_CLI_WORKLOAD_H
#define SK_CLI_WORKLOAD_H

#include "setup.h"

struct workload {
    char name[64];
    struct workload_prompt {
        struct sk_tokens tokens;
        char *text; /* as it stands in the file, whole */
        bool raw;   /* not through the chat template */
        float temperature;
        char stop[32]; /* ends the answer; "" = none */
    } * prompts;
    size_t n, cap;
};
struct workloads {
    struct workload *items;
    size_t n, cap;
};

/* Every FILE.jsonl of a folder, by name. Lines are objects: "prompt"; "raw", true for a prompt that does not go through
 * the chat template; "temperature", 0 unless given; "stop", a string that ends the answer. Of each file the first
 * max_prompts are taken, and at most max_tokens of each. */
sk_status workloads_load(const char *folder, const struct model *m, size_t max_prompts, size_t max_tokens,
                         struct workloads *out, struct sk_error *err);
void workloads_free(struct workloads *w);

#endif

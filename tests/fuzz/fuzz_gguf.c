/* Any bytes as a GGUF file: opened, its tokenizer and its model planned; never a crash. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "models/model.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct sk_error err = {0};
    struct sk_gguf *g;
    uint8_t *copy = aligned_alloc(64, sk_round_up(n + 1, 64));
    if (!copy) return 0;
    memcpy(copy, data, n);
    if (sk_gguf_open_memory(copy, n, &g, &err) == SK_OK) {
        struct sk_tokenizer *t;
        struct sk_model *m;
        const struct sk_load_options all = {0};
        if (sk_tokenizer_open(g, NULL, &t, &err) == SK_OK) sk_tokenizer_close(t);
        if (sk_model_plan(g, &all, &m, &err) == SK_OK) sk_model_free(m);
        sk_gguf_close(g);
    }
    free(copy);
    return 0;
}

/* Any bytes as text: tokenized, and the bytes of the tokens are the text again. SKIPSTONE_ROOT finds the vocabularies.
 */
#include <stdio.h>
#include <stdlib.h>

#include "text/tokenizer.h"

static struct sk_tokenizer *open_one(const char *file) {
    char path[4096];
    struct sk_gguf *g;
    struct sk_error err = {0};
    struct sk_tokenizer *t = NULL;
    snprintf(path, sizeof path, "%s/tests/oracle/%s", getenv("SKIPSTONE_ROOT") ? getenv("SKIPSTONE_ROOT") : ".", file);
    if (sk_gguf_open(path, &g, &err) || sk_tokenizer_open(g, NULL, &t, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    sk_gguf_close(g);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static struct sk_tokenizer *bpe, *spm;
    if (!bpe) bpe = open_one("models/q4_1.gguf"), spm = open_one("spm.gguf");
    struct sk_error err = {0};
    struct sk_tokens ids = {0};
    struct sk_buf back = {0};
    const struct sk_str text = {(const char *)data, n};
    if (sk_tokenize(bpe, text, false, true, &ids, &err)) abort();
    for (size_t i = 0; i < ids.n; i++) sk_buf_str(&back, sk_token_bytes(bpe, ids.ids[i], true));
    if (!sk_str_eq(sk_buf_view(&back), text)) abort();
    ids.n = 0;
    if (sk_tokenize(spm, text, true, true, &ids, &err)) abort();
    sk_buf_free(&back);
    sk_tokens_free(&ids);
    return 0;
}

/* Tokenizes many texts with one opening of the vocabulary: records of u32 length and bytes on stdin, ids line by line
 * on stdout. usage: tokenize_many MODEL.gguf (0|1: parse special tokens) (0|1: add BOS and EOS) */
#include <stdio.h>
#include <stdlib.h>

#include "text/tokenizer.h"

int main(int argc, char **argv) {
    struct sk_gguf *g;
    struct sk_tokenizer *t;
    struct sk_error err = {0};
    const struct sk_tokenizer_options options = {0};
    uint32_t n;
    if (argc != 4) return 2;
    if (sk_gguf_open(argv[1], &g, &err) || sk_tokenizer_open(g, &options, &t, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    while (fread(&n, sizeof n, 1, stdin) == 1) {
        char *text = malloc(n + 1);
        struct sk_tokens ids = {0};
        if (!text || fread(text, 1, n, stdin) != n) return 1;
        if (sk_tokenize(t, (struct sk_str){text, n}, argv[3][0] == '1', argv[2][0] == '1', &ids, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        for (size_t i = 0; i < ids.n; i++) printf("%s%d", i ? " " : "", ids.ids[i]);
        putchar('\n');
        sk_tokens_free(&ids);
        free(text);
    }
    sk_tokenizer_close(t);
    sk_gguf_close(g);
    return 0;
}

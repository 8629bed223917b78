/* Pre-tokenizers: how a text is cut into words before merging. Patterns by the names that GGUF files use. */
#ifndef SK_TEXT_PRETOKENIZER_H
#define SK_TEXT_PRETOKENIZER_H

#include "base/error.h"
#include "base/str.h"

struct sk_pretokenizer_rules {
    const char *name;
    bool ignore_merges;      /* a whole word that is a token is taken without merging */
    bool add_bos;            /* the default where the file has no key */
    bool no_bos_token;       /* the family has no BOS unless the file names one */
    bool raw_utf8;           /* characters instead of GPT-2's byte alphabet */
    const char *patterns[6]; /* applied one after the other, each to what the ones before left over */
};

/* NULL if the name is unknown. */
const struct sk_pretokenizer_rules *sk_pretokenizer_rules(struct sk_str name);
/* "gpt-2, smollm, …" */
void sk_pretokenizer_names(struct sk_buf *out);

struct sk_pretokenizer;
sk_status sk_pretokenizer_create(const struct sk_pretokenizer_rules *rules, struct sk_pretokenizer **out,
                                 struct sk_error *err);
void sk_pretokenizer_free(struct sk_pretokenizer *p);

/* Cuts `text` into words: word i is text[ends[i-1], ends[i]), the first starting at 0. *ends is the caller's to free.
 */
sk_status sk_pretokenize(const struct sk_pretokenizer *p, struct sk_str text, size_t **ends, size_t *n,
                         struct sk_error *err);

#endif

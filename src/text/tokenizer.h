/* Text to tokens and back, from the metadata of a GGUF file (keys tokenizer.ggml.*).
 *
 * Two models: "gpt2" (byte-level BPE: Sennrich et al. 2016, with GPT-2's byte alphabet and a pre-tokenizer pattern
 * by name) and "llama" (SentencePiece's score-ordered merging, Kudo and Richardson 2018). Bytes that are not valid
 * UTF-8 are kept: for patterns each counts as one U+FFFD, for tokens it is the byte it is. Immutable after opening; may
 * be shared by threads. */
#ifndef SK_TEXT_TOKENIZER_H
#define SK_TEXT_TOKENIZER_H

#include "base/error.h"
#include "base/str.h"
#include "gguf/gguf.h"

enum { SK_NO_TOKEN = -1 };

struct sk_tokenizer;

struct sk_tokens {
    int32_t *ids;
    size_t n, cap;
};
bool sk_tokens_push(struct sk_tokens *t, int32_t id);
void sk_tokens_free(struct sk_tokens *t);

struct sk_tokenizer_options {
    bool allow_unknown_pretokenizer; /* go on with gpt-2's pattern instead of refusing */
};

/* Borrows nothing from `g`. */
sk_status sk_tokenizer_open(const struct sk_gguf *g, const struct sk_tokenizer_options *options,
                            struct sk_tokenizer **out, struct sk_error *err);
void sk_tokenizer_close(struct sk_tokenizer *t);

/* Appends the tokens of `text`. With parse_special, control tokens written out in the text become those tokens;
 * user-defined ones always do. With add_special, BOS and EOS are added where the model's rules ask for them. */
sk_status sk_tokenize(const struct sk_tokenizer *t, struct sk_str text, bool add_special, bool parse_special,
                      struct sk_tokens *out, struct sk_error *err);

/* The bytes a token stands for. Control tokens are empty unless with_special. Borrowed from the tokenizer. */
struct sk_str sk_token_bytes(const struct sk_tokenizer *t, int32_t id, bool with_special);
/* The token's text as it stands in the vocabulary. */
struct sk_str sk_token_text(const struct sk_tokenizer *t, int32_t id);
size_t sk_tokenizer_size(const struct sk_tokenizer *t);
/* Whether the model stops after this token. */
bool sk_token_ends_generation(const struct sk_tokenizer *t, int32_t id);
int32_t sk_tokenizer_bos(const struct sk_tokenizer *t); /* SK_NO_TOKEN if none */
int32_t sk_tokenizer_eos(const struct sk_tokenizer *t);
bool sk_tokenizer_adds_bos(const struct sk_tokenizer *t);
/* The control or user-defined token with exactly this text, SK_NO_TOKEN if none. */
int32_t sk_tokenizer_special(const struct sk_tokenizer *t, struct sk_str text);

/* Tokens to text, piece by piece, never half a character. Zero-initialise with the tokenizer; free with
 * sk_detokenizer_free. */
struct sk_detokenizer {
    const struct sk_tokenizer *tokenizer;
    bool with_special;
    bool at_start;       /* set to strip the space that SentencePiece puts before the first word */
    struct sk_buf bytes; /* what is not yet out */
    struct sk_buf ready; /* what the last call gave */
};
/* Adds a token; returns the text that is now complete (perhaps empty), valid until the next call. Invalid bytes come
 * out as U+FFFD. */
struct sk_str sk_detokenize(struct sk_detokenizer *d, int32_t id);
/* What is left at the end: an unfinished character comes out as U+FFFD. */
struct sk_str sk_detokenize_end(struct sk_detokenizer *d);
void sk_detokenizer_free(struct sk_detokenizer *d);

#endif

/* Private to text/: the vocabulary and its lookups. */
#ifndef SK_TEXT_VOCABULARY_H
#define SK_TEXT_VOCABULARY_H

#include "base/arena.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"

/* As numbered in tokenizer.ggml.token_type. */
enum token_type {
    TOKEN_UNDEFINED,
    TOKEN_NORMAL,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER_DEFINED,
    TOKEN_UNUSED,
    TOKEN_BYTE
};

enum tokenizer_model { MODEL_BPE, MODEL_SPM };

struct token {
    struct sk_str text;  /* as in the file */
    struct sk_str bytes; /* what it stands for */
    float score;
    uint8_t type;
    bool ends_generation;
};

/* Open addressing; entries hold an index, UINT32_MAX is empty. */
struct hash_index {
    uint32_t *slots;
    size_t mask;
};

struct merge {
    int32_t left, right, result; /* token ids */
};

struct sk_tokenizer {
    struct sk_arena arena;
    enum tokenizer_model model;
    bool raw_utf8; /* BPE over characters with spaces as U+2581 (gemma) instead of GPT-2's byte alphabet */
    struct token *tokens;
    size_t n_tokens;
    struct hash_index by_text;
    struct merge *merges; /* in rank order */
    size_t n_merges;
    struct hash_index by_pair;
    int32_t byte_tokens[256];
    int32_t bos, eos, unk;
    bool add_bos, add_eos, add_space_prefix, ignore_merges;
    struct sk_pretokenizer *pretokenizer;
    /* Tokens that are looked for in raw text, longest first, and the bytes they start with. */
    int32_t *specials;
    size_t n_specials;
    bool starts_special[256];
};

int32_t sk_find_token(const struct sk_tokenizer *t, struct sk_str text); /* SK_NO_TOKEN if none */
/* Rank of a merge; SIZE_MAX if none. */
size_t sk_find_merge(const struct sk_tokenizer *t, int32_t left, int32_t right);

/* Tokens of a text without specials. */
sk_status sk_bpe_tokenize(const struct sk_tokenizer *t, struct sk_str text, struct sk_tokens *out,
                          struct sk_error *err);
sk_status sk_spm_tokenize(const struct sk_tokenizer *t, struct sk_str text, bool at_start, struct sk_tokens *out,
                          struct sk_error *err);

/* GPT-2's alphabet: the character that stands for a byte, and back (-1 if none). */
uint32_t sk_byte_to_alphabet(uint8_t byte);
int sk_alphabet_to_byte(uint32_t character);

#endif

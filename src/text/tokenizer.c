/* Opening a tokenizer, and the parts of tokenizing that all models share: special tokens, BOS and EOS. */
#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "text/vocabulary.h"

bool sk_tokens_push(struct sk_tokens *t, int32_t id) {
    if (!sk_grow(&t->ids, &t->cap, t->n + 1, sizeof *t->ids)) return false;
    t->ids[t->n++] = id;
    return true;
}

void sk_tokens_free(struct sk_tokens *t) {
    free(t->ids);
    *t = (struct sk_tokens){0};
}

/* ---- lookups ------------------------------------------------------------------------------------------- */

static bool index_create(struct hash_index *h, size_t n, struct sk_arena *arena) {
    size_t size = 16;
    while (size < n * 2) size *= 2;
    h->slots = sk_arena_array(arena, size, sizeof *h->slots);
    h->mask = size - 1;
    if (h->slots) memset(h->slots, 0xff, size * sizeof *h->slots);
    return h->slots != NULL;
}

static uint32_t *text_slot(const struct sk_tokenizer *t, struct sk_str text) {
    size_t i = XXH3_64bits(text.p, text.n) & t->by_text.mask;
    while (t->by_text.slots[i] != UINT32_MAX && !sk_str_eq(t->tokens[t->by_text.slots[i]].text, text))
        i = (i + 1) & t->by_text.mask;
    return &t->by_text.slots[i];
}

int32_t sk_find_token(const struct sk_tokenizer *t, struct sk_str text) {
    const uint32_t id = *text_slot(t, text);
    return id == UINT32_MAX ? SK_NO_TOKEN : (int32_t)id;
}

static uint32_t *pair_slot(const struct sk_tokenizer *t, int32_t left, int32_t right) {
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = XXH3_64bits(&key, sizeof key) & t->by_pair.mask;
    for (; t->by_pair.slots[i] != UINT32_MAX; i = (i + 1) & t->by_pair.mask) {
        const struct merge *m = &t->merges[t->by_pair.slots[i]];
        if (m->left == left && m->right == right) break;
    }
    return &t->by_pair.slots[i];
}

size_t sk_find_merge(const struct sk_tokenizer *t, int32_t left, int32_t right) {
    const uint32_t rank = *pair_slot(t, left, right);
    return rank == UINT32_MAX ? SIZE_MAX : rank;
}

/* GPT-2 writes printable bytes as themselves and the other 68 as U+0100, U+0101, … in order. */
static bool is_printable(uint32_t c) {
    return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

uint32_t sk_byte_to_alphabet(uint8_t byte) {
    if (is_printable(byte)) return byte;
    uint32_t n = 0;
    for (uint32_t b = 0; b < byte; b++) n += !is_printable(b);
    return 0x100 + n;
}

int sk_alphabet_to_byte(uint32_t c) {
    if (c < 0x100) return is_printable(c) ? (int)c : -1;
    for (uint32_t b = 0, n = 0; b < 256; b++) {
        if (is_printable(b)) continue;
        if (n == c - 0x100) return (int)b;
        n++;
    }
    return -1;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static const struct sk_gguf_value *array_of(const struct sk_gguf *g, const char *key, enum sk_gguf_type element) {
    const struct sk_gguf_value *v = sk_gguf_find(g, key);
    return v && v->type == SK_GGUF_ARRAY && v->element_type == element ? v : NULL;
}

static bool decode_alphabet(struct sk_arena *arena, struct sk_str text, struct sk_str *out) {
    char *bytes = sk_arena_alloc(arena, text.n + 1);
    if (!bytes) return false;
    size_t n = 0;
    for (size_t i = 0, len; i < text.n; i += len) {
        const int32_t c = sk_utf8_decode(text.p + i, text.n - i, &len);
        const int byte = c < 0 ? -1 : sk_alphabet_to_byte((uint32_t)c);
        if (byte < 0) { /* not written in the alphabet: it stands for itself */
            *out = text;
            return true;
        }
        bytes[n++] = (char)byte;
    }
    *out = (struct sk_str){bytes, n};
    return true;
}

static bool spaces_for_marks(struct sk_arena *arena, struct sk_str text, struct sk_str *out) {
    char *bytes = sk_arena_alloc(arena, text.n + 1);
    if (!bytes) return false;
    size_t n = 0;
    for (size_t i = 0; i < text.n;) {
        if (text.n - i >= 3 && memcmp(text.p + i, "\xE2\x96\x81", 3) == 0) {
            bytes[n++] = ' ';
            i += 3;
        } else {
            bytes[n++] = text.p[i++];
        }
    }
    *out = (struct sk_str){bytes, n};
    return true;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

/* "<0xE2>" -> 0xE2; -1 for anything else. */
static int byte_of_name(struct sk_str text) {
    if (text.n != 6 || memcmp(text.p, "<0x", 3) != 0 || text.p[5] != '>') return -1;
    const int high = hex_digit(text.p[3]), low = hex_digit(text.p[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static bool set_bytes(struct sk_tokenizer *t, int32_t id) {
    struct token *token = &t->tokens[id];
    const int byte = byte_of_name(token->text);
    token->bytes = token->text;
    if (byte >= 0 && (token->type == TOKEN_BYTE || t->raw_utf8 || t->model == MODEL_SPM)) {
        char *one = sk_arena_alloc(&t->arena, 1);
        if (!one) return false;
        *one = (char)byte;
        token->bytes = (struct sk_str){one, 1};
        t->byte_tokens[byte] = id;
        return true;
    }
    if (token->type == TOKEN_CONTROL || token->type == TOKEN_USER_DEFINED || token->type == TOKEN_UNKNOWN) return true;
    if (t->model == MODEL_SPM || t->raw_utf8) return spaces_for_marks(&t->arena, token->text, &token->bytes);
    return decode_alphabet(&t->arena, token->text, &token->bytes);
}

static sk_status read_tokens(struct sk_tokenizer *t, const struct sk_gguf *g, struct sk_error *err) {
    const struct sk_gguf_value *texts = array_of(g, "tokenizer.ggml.tokens", SK_GGUF_STRING);
    const struct sk_gguf_value *scores = array_of(g, "tokenizer.ggml.scores", SK_GGUF_F32);
    const struct sk_gguf_value *types = array_of(g, "tokenizer.ggml.token_type", SK_GGUF_I32);
    if (!types) types = array_of(g, "tokenizer.ggml.token_type", SK_GGUF_U32);
    if (!texts || texts->count == 0 || texts->count > INT32_MAX)
        return sk_fail(err, SK_EFORMAT, "the file has no vocabulary (tokenizer.ggml.tokens)");
    if ((scores && scores->count < texts->count) || (types && types->count < texts->count))
        return sk_fail(err, SK_EFORMAT, "tokenizer.ggml.scores or token_type has fewer entries than there are tokens");
    if (t->model == MODEL_SPM && !scores)
        return sk_fail(err, SK_EFORMAT, "tokenizer.ggml.scores is missing: a 'llama' tokenizer needs it");
    t->n_tokens = (size_t)texts->count;
    t->tokens = sk_arena_array(&t->arena, t->n_tokens, sizeof *t->tokens);
    if (!t->tokens || !index_create(&t->by_text, t->n_tokens, &t->arena))
        return sk_fail_memory(err, t->n_tokens * sizeof *t->tokens, "the vocabulary");
    size_t at = 0;
    for (size_t i = 0; i < t->n_tokens; i++) {
        struct token *token = &t->tokens[i];
        const struct sk_str text = sk_gguf_array_next_string(texts, &at);
        token->text = (struct sk_str){sk_arena_copy(&t->arena, text), text.n};
        token->score = scores ? sk_gguf_array_f32(scores, i) : 0.0f;
        const int64_t type = types ? sk_gguf_array_int(types, i) : TOKEN_NORMAL;
        token->type = type >= TOKEN_UNDEFINED && type <= TOKEN_BYTE ? (uint8_t)type : TOKEN_UNDEFINED;
        if (!token->text.p) return sk_fail_memory(err, text.n, "a token");
        uint32_t *slot = text_slot(t, token->text);
        if (*slot == UINT32_MAX) *slot = (uint32_t)i; /* of tokens with one text the first is found */
    }
    for (size_t i = 0; i < t->n_tokens; i++)
        if (!set_bytes(t, (int32_t)i)) return sk_fail_memory(err, t->tokens[i].text.n, "a token");
    return SK_OK;
}

static sk_status read_merges(struct sk_tokenizer *t, const struct sk_gguf *g, struct sk_error *err) {
    const struct sk_gguf_value *merges = array_of(g, "tokenizer.ggml.merges", SK_GGUF_STRING);
    if (!merges) return sk_fail(err, SK_EFORMAT, "tokenizer.ggml.merges is missing: a BPE tokenizer needs it");
    if (merges->count >= UINT32_MAX) return sk_fail(err, SK_EFORMAT, "tokenizer.ggml.merges is too long");
    t->merges = sk_arena_array(&t->arena, (size_t)merges->count, sizeof *t->merges);
    if (!t->merges || !index_create(&t->by_pair, (size_t)merges->count, &t->arena))
        return sk_fail_memory(err, merges->count * sizeof *t->merges, "BPE merges");
    size_t at = 0;
    struct sk_buf joined = {0};
    for (uint64_t i = 0; i < merges->count; i++) {
        const struct sk_str line = sk_gguf_array_next_string(merges, &at);
        const size_t space =
            sk_str_find(line, sk_str_of(" "), line.n ? 1 : 0); /* a part may itself start with a space */
        if (space == SIZE_MAX) continue;
        const struct sk_str left = {line.p, space}, right = {line.p + space + 1, line.n - space - 1};
        joined.len = 0;
        sk_buf_str(&joined, left);
        sk_buf_str(&joined, right);
        const struct merge m = {sk_find_token(t, left), sk_find_token(t, right),
                                sk_find_token(t, sk_buf_view(&joined))};
        if (m.left < 0 || m.right < 0 || m.result < 0) continue; /* such a merge can never happen */
        uint32_t *slot = pair_slot(t, m.left, m.right);
        if (*slot != UINT32_MAX) continue;
        t->merges[t->n_merges] = m;
        *slot = (uint32_t)t->n_merges++;
    }
    const bool failed = joined.failed;
    sk_buf_free(&joined);
    if (failed) return sk_fail_memory(err, 1024, "BPE merges");
    if (t->raw_utf8) return SK_OK; /* byte tokens are those named <0xNN> */
    for (int b = 0; b < 256; b++) {
        char c[4];
        const size_t n = sk_utf8_encode(sk_byte_to_alphabet((uint8_t)b), c);
        t->byte_tokens[b] = sk_find_token(t, (struct sk_str){c, n});
    }
    return SK_OK;
}

/* Texts that end a model's turn, whatever the family; the file's own keys name one or two of them only. */
static const char *const end_texts[] = {
    "<|eot_id|>",      "<|im_end|>",         "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>",
    "<|endoftext|>",   "<|eom_id|>",         "<EOT>",   "_<EOT>",     "[EOT]",    "[EOS]",
    "<|end_of_text|>", "<end_of_utterance>", "<eos>",   "<turn|>",    "</s>",     "<｜end▁of▁sentence｜>"};

static void mark_ends(struct sk_tokenizer *t, const struct sk_gguf *g) {
    for (size_t i = 0; i < sizeof end_texts / sizeof *end_texts; i++) {
        const int32_t id = sk_find_token(t, sk_str_of(end_texts[i]));
        if (id >= 0 && t->tokens[id].type == TOKEN_CONTROL) t->tokens[id].ends_generation = true;
    }
    /* In the harmony format <|end|> closes a message, not the turn. */
    const int32_t end = sk_find_token(t, sk_str_of("<|end|>"));
    if (end >= 0 && sk_find_token(t, sk_str_of("<|return|>")) >= 0 && sk_find_token(t, sk_str_of("<|call|>")) >= 0)
        t->tokens[end].ends_generation = false;
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    for (size_t i = 0; i < 3; i++) {
        uint32_t id;
        if (sk_gguf_u32(g, keys[i], UINT32_MAX, &id, NULL) == SK_OK && id < t->n_tokens)
            t->tokens[id].ends_generation = true;
    }
    if (t->eos >= 0) t->tokens[t->eos].ends_generation = true;
}

static int by_length(const void *a, const void *b, void *tokens) {
    const struct token *t = tokens;
    const size_t na = t[*(const int32_t *)a].text.n, nb = t[*(const int32_t *)b].text.n;
    return (na < nb) - (na > nb);
}

static sk_status list_specials(struct sk_tokenizer *t, struct sk_error *err) {
    t->specials = sk_arena_array(&t->arena, t->n_tokens, sizeof *t->specials);
    if (!t->specials) return sk_fail_memory(err, t->n_tokens * 4, "special tokens");
    for (size_t i = 0; i < t->n_tokens; i++) {
        const struct token *token = &t->tokens[i];
        if (token->text.n == 0) continue;
        if (token->type != TOKEN_CONTROL && token->type != TOKEN_USER_DEFINED && token->type != TOKEN_UNKNOWN) continue;
        t->specials[t->n_specials++] = (int32_t)i;
        t->starts_special[(uint8_t)token->text.p[0]] = true;
    }
    qsort_r(t->specials, t->n_specials, sizeof *t->specials, by_length, t->tokens);
    return SK_OK;
}

static sk_status special_id(const struct sk_tokenizer *t, const struct sk_gguf *g, const char *key, int32_t fallback,
                            int32_t *out, struct sk_error *err) {
    uint32_t id;
    const sk_status st = sk_gguf_u32(g, key, UINT32_MAX, &id, err);
    if (st) return st;
    *out = id < t->n_tokens ? (int32_t)id : (fallback < (int32_t)t->n_tokens ? fallback : SK_NO_TOKEN);
    return SK_OK;
}

static sk_status read_rules(struct sk_tokenizer *t, const struct sk_gguf *g, const struct sk_pretokenizer_rules *rules,
                            struct sk_error *err) {
    const bool spm = t->model == MODEL_SPM;
    sk_status st;
    if ((st = special_id(t, g, "tokenizer.ggml.bos_token_id", spm ? 1 : SK_NO_TOKEN, &t->bos, err))) return st;
    if ((st = special_id(t, g, "tokenizer.ggml.eos_token_id", spm ? 2 : SK_NO_TOKEN, &t->eos, err))) return st;
    if ((st = special_id(t, g, "tokenizer.ggml.unknown_token_id", spm ? 0 : SK_NO_TOKEN, &t->unk, err))) return st;
    if ((st = sk_gguf_bool(g, "tokenizer.ggml.add_bos_token", spm || rules->add_bos, &t->add_bos, err))) return st;
    if ((st = sk_gguf_bool(g, "tokenizer.ggml.add_eos_token", false, &t->add_eos, err))) return st;
    if ((st = sk_gguf_bool(g, "tokenizer.ggml.add_space_prefix", spm, &t->add_space_prefix, err))) return st;
    return SK_OK;
}

/* Which pattern the file asks for; files without the key are old ones, and use GPT-2's. */
static sk_status choose_rules(const struct sk_gguf *g, struct sk_str model, const struct sk_tokenizer_options *options,
                              const struct sk_pretokenizer_rules **out, struct sk_error *err) {
    struct sk_str name;
    const sk_status st =
        sk_gguf_string(g, "tokenizer.ggml.pre", sk_str_of(sk_str_is(model, "gemma4") ? "gemma4" : "gpt-2"), &name, err);
    if (st) return st;
    if (name.n == 0 || sk_str_is(name, "default")) name = sk_str_of("gpt-2");
    *out = sk_pretokenizer_rules(name);
    if (*out) return SK_OK;
    if (options && options->allow_unknown_pretokenizer) {
        *out = sk_pretokenizer_rules(sk_str_of("gpt-2"));
        return SK_OK;
    }
    return sk_fail(err, SK_EUNSUPPORTED,
                   "the pre-tokenizer '%.*s' is not known; --allow-unknown-pretokenizer goes on with gpt-2's, at the "
                   "price of wrong tokens",
                   (int)(name.n < 64 ? name.n : 64), name.p);
}

sk_status sk_tokenizer_open(const struct sk_gguf *g, const struct sk_tokenizer_options *options,
                            struct sk_tokenizer **out, struct sk_error *err) {
    static const struct sk_pretokenizer_rules no_rules = {0};
    const struct sk_pretokenizer_rules *rules = &no_rules;
    struct sk_str model;
    sk_status st = sk_gguf_string(g, "tokenizer.ggml.model", sk_str_of(""), &model, err);
    if (st) return st;
    const bool bpe = sk_str_is(model, "gpt2") || sk_str_is(model, "gemma4");
    if (model.n == 0) return sk_fail(err, SK_EFORMAT, "the file has no tokenizer (tokenizer.ggml.model)");
    if (!bpe && !sk_str_is(model, "llama"))
        return sk_fail(err, SK_EUNSUPPORTED,
                       "the tokenizer model '%.*s' is not supported: gpt2 (BPE) and llama (SentencePiece) are",
                       (int)(model.n < 64 ? model.n : 64), model.p);
    if (bpe && (st = choose_rules(g, model, options, &rules, err))) return st;
    struct sk_tokenizer *t = sk_calloc(1, sizeof *t);
    if (!t) return sk_fail_memory(err, sizeof *t, "a tokenizer");
    t->model = bpe ? MODEL_BPE : MODEL_SPM;
    t->raw_utf8 = rules->raw_utf8;
    t->ignore_merges = rules->ignore_merges;
    memset(t->byte_tokens, 0xff, sizeof t->byte_tokens);
    if ((st = read_tokens(t, g, err)) || (st = read_rules(t, g, rules, err))) goto fail;
    if (bpe && ((st = read_merges(t, g, err)) || (st = sk_pretokenizer_create(rules, &t->pretokenizer, err))))
        goto fail;
    mark_ends(t, g);
    if ((st = list_specials(t, err))) goto fail;
    *out = t;
    return SK_OK;
fail:
    sk_tokenizer_close(t);
    return st;
}

void sk_tokenizer_close(struct sk_tokenizer *t) {
    if (!t) return;
    sk_pretokenizer_free(t->pretokenizer);
    sk_arena_free(&t->arena);
    free(t);
}

/* ---- tokenizing ---------------------------------------------------------------------------------------- */

/* The longest special token that stands at text.p[at]; SK_NO_TOKEN if none. */
static int32_t special_at(const struct sk_tokenizer *t, struct sk_str text, size_t at, bool parse_special) {
    if (!t->starts_special[(uint8_t)text.p[at]]) return SK_NO_TOKEN;
    size_t length = SIZE_MAX;
    for (size_t i = 0; i < t->n_specials; i++) {
        const size_t n = t->tokens[t->specials[i]].text.n;
        if (n == length || n > text.n - at) continue; /* one lookup per length */
        length = n;
        const int32_t id = sk_find_token(t, (struct sk_str){text.p + at, n});
        if (id < 0) continue;
        const uint8_t type = t->tokens[id].type;
        if (type == TOKEN_USER_DEFINED || (parse_special && (type == TOKEN_CONTROL || type == TOKEN_UNKNOWN)))
            return id;
    }
    return SK_NO_TOKEN;
}

static sk_status tokenize_plain(const struct sk_tokenizer *t, struct sk_str text, bool after_special,
                                struct sk_tokens *out, struct sk_error *err) {
    if (text.n == 0) return SK_OK;
    return t->model == MODEL_BPE ? sk_bpe_tokenize(t, text, out, err)
                                 : sk_spm_tokenize(t, text, after_special, out, err);
}

sk_status sk_tokenize(const struct sk_tokenizer *t, struct sk_str text, bool add_special, bool parse_special,
                      struct sk_tokens *out, struct sk_error *err) {
    sk_status st;
    if (add_special && t->add_bos && t->bos >= 0 && !sk_tokens_push(out, t->bos)) goto memory;
    size_t start = 0;
    bool after_special = true;
    for (size_t at = 0; at < text.n;) {
        const int32_t id = special_at(t, text, at, parse_special);
        if (id < 0) {
            at++;
            continue;
        }
        if ((st = tokenize_plain(t, (struct sk_str){text.p + start, at - start}, after_special, out, err))) return st;
        if (!sk_tokens_push(out, id)) goto memory;
        after_special = true;
        start = at += t->tokens[id].text.n;
    }
    if ((st = tokenize_plain(t, (struct sk_str){text.p + start, text.n - start}, after_special, out, err))) return st;
    if (add_special && t->add_eos && t->eos >= 0 && !sk_tokens_push(out, t->eos)) goto memory;
    return SK_OK;
memory:
    return sk_fail_memory(err, out->cap * sizeof(int32_t), "tokens");
}

/* ---- questions ----------------------------------------------------------------------------------------- */

static bool is_token(const struct sk_tokenizer *t, int32_t id) {
    return id >= 0 && (size_t)id < t->n_tokens;
}

struct sk_str sk_token_bytes(const struct sk_tokenizer *t, int32_t id, bool with_special) {
    if (!is_token(t, id)) return (struct sk_str){"", 0};
    const struct token *token = &t->tokens[id];
    if (!with_special && (token->type == TOKEN_CONTROL || token->type == TOKEN_UNKNOWN)) return (struct sk_str){"", 0};
    return token->bytes;
}

struct sk_str sk_token_text(const struct sk_tokenizer *t, int32_t id) {
    return is_token(t, id) ? t->tokens[id].text : (struct sk_str){"", 0};
}

size_t sk_tokenizer_size(const struct sk_tokenizer *t) {
    return t->n_tokens;
}
bool sk_token_ends_generation(const struct sk_tokenizer *t, int32_t id) {
    return is_token(t, id) && t->tokens[id].ends_generation;
}
int32_t sk_tokenizer_bos(const struct sk_tokenizer *t) {
    return t->bos;
}
int32_t sk_tokenizer_eos(const struct sk_tokenizer *t) {
    return t->eos;
}
bool sk_tokenizer_adds_bos(const struct sk_tokenizer *t) {
    return t->add_bos && t->bos >= 0;
}

int32_t sk_tokenizer_special(const struct sk_tokenizer *t, struct sk_str text) {
    const int32_t id = sk_find_token(t, text);
    return id >= 0 && (t->tokens[id].type == TOKEN_CONTROL || t->tokens[id].type == TOKEN_USER_DEFINED) ? id
                                                                                                        : SK_NO_TOKEN;
}

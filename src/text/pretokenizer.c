#include "text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/utf8.h"

/* ---- the patterns -------------------------------------------------------------------------------------- */

/* Pieces that many patterns share. What a pattern does not match is a word of its own, so patterns need no
 * alternative that catches the rest. */
#define GPT2         "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES       "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER        "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BEFORE_WORD  "[^\\r\\n\\p{L}\\p{N}]?"
#define LLAMA3       CONTRACTIONS "|" BEFORE_WORD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define QWEN2        CONTRACTIONS "|" BEFORE_WORD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define QWEN35       CONTRACTIONS "|" BEFORE_WORD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES
#define TEKKEN                                                                                                         \
    BEFORE_WORD UPPER "*" LOWER "+|" BEFORE_WORD UPPER "+" LOWER "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
#define O200K                                                                                                          \
    BEFORE_WORD UPPER "*" LOWER "+" CONTRACTIONS "?|" BEFORE_WORD UPPER "+" LOWER "*" CONTRACTIONS                     \
                      "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
/* DeepSeek spells letters, punctuation and CJK out as ranges. */
#define DEEPSEEK_LETTERS                                                                                               \
    "[A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}"  \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}"     \
    "\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}"       \
    "\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{"    \
    "1D9A}"                                                                                                            \
    "\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{"     \
    "1F5B}"                                                                                                            \
    "\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{"     \
    "1FCC}"                                                                                                            \
    "\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{"     \
    "2107}"                                                                                                            \
    "\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}" \
    "\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}" \
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{"     \
    "A787}"                                                                                                            \
    "\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{"    \
    "FF5A}"                                                                                                            \
    "\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"        \
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}]+"
#define DEEPSEEK_CJK "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define DEEPSEEK_V3_WORDS                                                                                              \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"                \
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES

static const struct sk_pretokenizer_rules all_rules[] = {
    {.name = "gpt-2", .patterns = {GPT2}},
    {.name = "mpt", .patterns = {GPT2}},
    {.name = "smollm", .patterns = {"\\p{N}", GPT2}},
    {.name = "starcoder", .patterns = {"\\p{N}", GPT2}},
    {.name = "refact", .patterns = {"\\p{N}", GPT2}},
    {.name = "command-r", .patterns = {"\\p{N}", GPT2}},
    {.name = "llama-bpe", .ignore_merges = true, .add_bos = true, .patterns = {LLAMA3}},
    {.name = "llama3", .ignore_merges = true, .add_bos = true, .patterns = {LLAMA3}},
    {.name = "llama-v3", .ignore_merges = true, .add_bos = true, .patterns = {LLAMA3}},
    {.name = "qwen2", .patterns = {QWEN2}},
    {.name = "deepseek-r1-qwen", .patterns = {QWEN2}},
    {.name = "qwen35", .patterns = {QWEN35}},
    {.name = "glm4", .no_bos_token = true, .patterns = {LLAMA3}},
    {.name = "chatglm-bpe", .no_bos_token = true, .patterns = {LLAMA3}},
    {.name = "gpt-4o", .patterns = {O200K}},
    {.name = "o200k", .patterns = {O200K}},
    {.name = "llama4", .patterns = {O200K}},
    {.name = "tekken", .ignore_merges = true, .add_bos = true, .patterns = {TEKKEN}},
    {.name = "falcon", .patterns = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {.name = "deepseek-llm",
     .patterns = {"[\\r\\n]", "\\s?" DEEPSEEK_LETTERS,
                  "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+", "\\s+$",
                  DEEPSEEK_CJK, "\\p{N}+"}},
    {.name = "deepseek-coder", .patterns = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_CJK, "\\p{N}"}},
    {.name = "deepseek-v3",
     .patterns = {"\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+", DEEPSEEK_V3_WORDS}},
    {.name = "gemma", .raw_utf8 = true, .add_bos = true, .patterns = {"[^\\n]+|[\\n]+"}},
    {.name = "gemma4", .raw_utf8 = true, .add_bos = true, .patterns = {"[^\\n]+|[\\n]+"}},
};

const struct sk_pretokenizer_rules *sk_pretokenizer_rules(struct sk_str name) {
    for (size_t i = 0; i < sizeof all_rules / sizeof *all_rules; i++)
        if (sk_str_is(name, all_rules[i].name)) return &all_rules[i];
    return NULL;
}

void sk_pretokenizer_names(struct sk_buf *out) {
    for (size_t i = 0; i < sizeof all_rules / sizeof *all_rules; i++)
        sk_buf_printf(out, "%s%s", i ? ", " : "", all_rules[i].name);
}

/* ---- matching ------------------------------------------------------------------------------------------ */

struct sk_pretokenizer {
    pcre2_code *codes[6];
    size_t n_codes;
};

sk_status sk_pretokenizer_create(const struct sk_pretokenizer_rules *rules, struct sk_pretokenizer **out,
                                 struct sk_error *err) {
    struct sk_pretokenizer *p = sk_calloc(1, sizeof *p);
    if (!p) return sk_fail_memory(err, sizeof *p, "a pre-tokenizer");
    for (size_t i = 0; i < 6 && rules->patterns[i]; i++) {
        int code;
        PCRE2_SIZE at;
        p->codes[i] =
            pcre2_compile((PCRE2_SPTR)rules->patterns[i], PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);
        if (!p->codes[i]) {
            sk_pretokenizer_free(p);
            return sk_fail(err, SK_EINVAL, "pattern %zu of pre-tokenizer '%s' is wrong at %zu", i, rules->name,
                           (size_t)at);
        }
        pcre2_jit_compile(p->codes[i], PCRE2_JIT_COMPLETE); /* failing costs speed only */
        p->n_codes = i + 1;
    }
    *out = p;
    return SK_OK;
}

void sk_pretokenizer_free(struct sk_pretokenizer *p) {
    if (!p) return;
    for (size_t i = 0; i < p->n_codes; i++) pcre2_code_free(p->codes[i]);
    free(p);
}

struct cuts {
    size_t *ends, n, cap;
};

static bool cut(struct cuts *c, size_t end) {
    if (!sk_grow(&c->ends, &c->cap, c->n + 1, sizeof *c->ends)) return false;
    c->ends[c->n++] = end;
    return true;
}

/* Cuts text[start, end) at the matches of one pattern. Lookarounds see no further than the piece. */
static sk_status cut_piece(const pcre2_code *code, pcre2_match_data *data, pcre2_match_context *context,
                           struct sk_str text, size_t start, size_t end, struct cuts *out, struct sk_error *err) {
    const PCRE2_SPTR piece = (PCRE2_SPTR)(text.p + start);
    const size_t n = end - start;
    size_t at = 0;
    while (at < n) {
        const int rc = pcre2_match(code, piece, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data, context);
        if (rc == PCRE2_ERROR_NOMATCH) break;
        if (rc < 0)
            return sk_fail(err, SK_EINVAL, "the pre-tokenizer gave up on a text of %zu bytes (PCRE2 error %d)", n, rc);
        const PCRE2_SIZE *match = pcre2_get_ovector_pointer(data);
        if (match[0] > at && !cut(out, start + match[0])) goto memory;
        if (!cut(out, start + match[1])) goto memory;
        at = match[1];
    }
    if (at < n && !cut(out, end)) goto memory;
    return SK_OK;
memory:
    return sk_fail_memory(err, out->cap * sizeof(size_t), "pre-tokenized words");
}

static sk_status cut_valid(const struct sk_pretokenizer *p, struct sk_str text, struct cuts *out,
                           struct sk_error *err) {
    struct cuts now = {0}, next = {0};
    sk_status st = SK_OK;
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    pcre2_match_data *data = pcre2_match_data_create(8, NULL);
    if (!context || !data || (text.n && !cut(&now, text.n))) {
        st = sk_fail_memory(err, 64, "a pattern match");
        goto out;
    }
    for (size_t i = 0; i < p->n_codes; i++) {
        next.n = 0;
        for (size_t j = 0; j < now.n && !st; j++)
            st = cut_piece(p->codes[i], data, context, text, j ? now.ends[j - 1] : 0, now.ends[j], &next, err);
        if (st) goto out;
        const struct cuts swap = now;
        now = next;
        next = swap;
    }
    *out = now;
    now = (struct cuts){0};
out:
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    free(now.ends);
    free(next.ends);
    return st;
}

/* Text with each bad byte written as U+FFFD, and for each byte of it the place in the original. */
static sk_status make_valid(struct sk_str text, struct sk_buf *valid, size_t **places, struct sk_error *err) {
    size_t *map = sk_calloc(text.n * 3 + 1, sizeof *map);
    if (!map) return sk_fail_memory(err, text.n * 24, "a text that is not UTF-8");
    for (size_t i = 0, len; i < text.n; i += len) {
        const bool bad = sk_utf8_decode(text.p + i, text.n - i, &len) < 0;
        if (bad) len = 1;
        for (size_t j = 0; j < (bad ? 3 : len); j++) map[valid->len + j] = i;
        if (bad)
            sk_buf_puts(valid, "\xEF\xBF\xBD");
        else
            sk_buf_append(valid, text.p + i, len);
    }
    map[valid->len] = text.n;
    *places = map;
    return valid->failed ? sk_fail_memory(err, text.n * 3, "a text that is not UTF-8") : SK_OK;
}

sk_status sk_pretokenize(const struct sk_pretokenizer *p, struct sk_str text, size_t **ends, size_t *n,
                         struct sk_error *err) {
    struct cuts cuts = {0};
    sk_status st;
    if (sk_utf8_valid_prefix(text.p, text.n) == text.n) {
        st = cut_valid(p, text, &cuts, err);
    } else {
        struct sk_buf valid = {0};
        size_t *places = NULL;
        st = make_valid(text, &valid, &places, err);
        if (!st) st = cut_valid(p, sk_buf_view(&valid), &cuts, err);
        for (size_t i = 0; i < cuts.n && !st; i++) cuts.ends[i] = places[cuts.ends[i]];
        sk_buf_free(&valid);
        free(places);
    }
    *ends = cuts.ends;
    *n = cuts.n;
    return st;
}

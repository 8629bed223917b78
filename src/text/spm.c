/* SentencePiece: spaces become U+2581, the text starts as characters, and the pair that makes the token of the
 * greatest score is merged first. Characters that are no token fall back to byte tokens. */
#include "base/utf8.h"
#include "text/merging.h"
#include "text/vocabulary.h"

struct spm_text {
    const struct sk_tokenizer *t;
    struct sk_str text;
};

static bool pair_by_score(const void *ctx, const struct symbol *a, const struct symbol *b, struct candidate *out) {
    const struct spm_text *s = ctx;
    const int32_t id = sk_find_token(s->t, (struct sk_str){s->text.p + a->start, a->n + b->n});
    if (id < 0) return false;
    out->order = -(double)s->t->tokens[id].score;
    out->result = id;
    return true;
}

static bool push_symbol(const struct spm_text *s, const struct symbol *symbol, struct sk_tokens *out) {
    if (symbol->id >= 0) return sk_tokens_push(out, symbol->id);
    for (size_t i = 0; i < symbol->n; i++) {
        const int32_t byte = s->t->byte_tokens[(uint8_t)s->text.p[symbol->start + i]];
        if (byte < 0) return s->t->unk < 0 || sk_tokens_push(out, s->t->unk); /* one for the whole character */
        if (!sk_tokens_push(out, byte)) return false;
    }
    return true;
}

sk_status sk_spm_tokenize(const struct sk_tokenizer *t, struct sk_str text, bool at_start, struct sk_tokens *out,
                          struct sk_error *err) {
    struct sk_buf marked = {0};
    struct merging m = {0};
    if (at_start && t->add_space_prefix) sk_buf_puts(&marked, "\xE2\x96\x81");
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == ' ')
            sk_buf_puts(&marked, "\xE2\x96\x81");
        else
            sk_buf_putc(&marked, text.p[i]);
    }
    const struct spm_text s = {t, sk_buf_view(&marked)};
    sk_status st = marked.failed ? sk_fail_memory(err, text.n * 3, "a text") : SK_OK;
    for (size_t i = 0, len; i < s.text.n && !st; i += len) {
        if (sk_utf8_decode(s.text.p + i, s.text.n - i, &len) < 0) len = 1;
        if (!sk_merging_add(&m, i, len, sk_find_token(t, (struct sk_str){s.text.p + i, len})))
            st = sk_fail_memory(err, text.n * sizeof(struct symbol), "a text");
    }
    if (!st) st = sk_merging_run(&m, pair_by_score, &s, err);
    for (uint32_t i = 0; !st && m.n_symbols && i != UINT32_MAX; i = m.symbols[i].next)
        if (!push_symbol(&s, &m.symbols[i], out)) st = sk_fail_memory(err, out->cap * 4, "tokens");
    sk_merging_free(&m);
    sk_buf_free(&marked);
    return st;
}

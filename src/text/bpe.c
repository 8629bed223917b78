/* Byte-pair encoding: each word of the pre-tokenizer starts as bytes (or characters) and is merged by rank. */
#include <stdlib.h>

#include "base/utf8.h"
#include "text/merging.h"
#include "text/vocabulary.h"

static bool pair_by_rank(const void *ctx, const struct symbol *a, const struct symbol *b, struct candidate *out) {
    const struct sk_tokenizer *t = ctx;
    if (a->id < 0 || b->id < 0) return false;
    const size_t rank = sk_find_merge(t, a->id, b->id);
    if (rank == SIZE_MAX) return false;
    out->order = (double)rank;
    out->result = t->merges[rank].result;
    return true;
}

/* The token whose bytes are the whole word, if the family takes such words unmerged. */
static int32_t whole_word(const struct sk_tokenizer *t, struct sk_str word, struct sk_buf *scratch) {
    if (!t->ignore_merges) return SK_NO_TOKEN;
    if (t->raw_utf8) return sk_find_token(t, word);
    scratch->len = 0;
    for (size_t i = 0; i < word.n; i++) {
        char c[4];
        sk_buf_append(scratch, c, sk_utf8_encode(sk_byte_to_alphabet((uint8_t)word.p[i]), c));
    }
    return sk_find_token(t, sk_buf_view(scratch));
}

static bool add_symbols(const struct sk_tokenizer *t, struct sk_str word, struct merging *m) {
    for (size_t i = 0, len; i < word.n; i += len) {
        len = 1;
        int32_t id = t->byte_tokens[(uint8_t)word.p[i]];
        if (t->raw_utf8) {
            if (sk_utf8_decode(word.p + i, word.n - i, &len) < 0) len = 1;
            id = sk_find_token(t, (struct sk_str){word.p + i, len});
        }
        if (!sk_merging_add(m, i, len, id)) return false;
    }
    return true;
}

static bool push_symbols(const struct sk_tokenizer *t, struct sk_str word, const struct merging *m,
                         struct sk_tokens *out) {
    for (uint32_t i = 0; i != UINT32_MAX; i = m->symbols[i].next) {
        const struct symbol *s = &m->symbols[i];
        if (s->id >= 0) {
            if (!sk_tokens_push(out, s->id)) return false;
            continue;
        }
        for (size_t j = s->start; j < s->start + s->n; j++) {
            const int32_t byte = t->byte_tokens[(uint8_t)word.p[j]];
            /* A byte that the vocabulary lacks is lost: an unknown token of such families is their end of text. */
            const int32_t id = byte < 0 && t->raw_utf8 ? t->unk : byte;
            if (id >= 0 && !sk_tokens_push(out, id)) return false;
        }
    }
    return true;
}

static sk_status tokenize_word(const struct sk_tokenizer *t, struct sk_str word, struct merging *m,
                               struct sk_buf *scratch, struct sk_tokens *out, struct sk_error *err) {
    const int32_t whole = whole_word(t, word, scratch);
    if (whole >= 0) return sk_tokens_push(out, whole) ? SK_OK : sk_fail_memory(err, 4, "tokens");
    sk_merging_clear(m);
    if (!add_symbols(t, word, m)) return sk_fail_memory(err, word.n * sizeof(struct symbol), "a word");
    const sk_status st = sk_merging_run(m, pair_by_rank, t, err);
    if (st) return st;
    return push_symbols(t, word, m, out) ? SK_OK : sk_fail_memory(err, out->cap * 4, "tokens");
}

sk_status sk_bpe_tokenize(const struct sk_tokenizer *t, struct sk_str text, struct sk_tokens *out,
                          struct sk_error *err) {
    struct sk_buf marked = {0}, scratch = {0};
    struct merging m = {0};
    size_t *ends = NULL, n_words = 0;
    sk_status st = SK_OK;
    if (t->raw_utf8) {
        for (size_t i = 0; i < text.n; i++) {
            if (text.p[i] == ' ')
                sk_buf_puts(&marked, "\xE2\x96\x81");
            else
                sk_buf_putc(&marked, text.p[i]);
        }
        if (marked.failed) st = sk_fail_memory(err, text.n * 3, "a text");
        text = sk_buf_view(&marked);
    }
    if (!st) st = sk_pretokenize(t->pretokenizer, text, &ends, &n_words, err);
    for (size_t i = 0; i < n_words && !st; i++) {
        const size_t start = i ? ends[i - 1] : 0;
        st = tokenize_word(t, (struct sk_str){text.p + start, ends[i] - start}, &m, &scratch, out, err);
    }
    free(ends);
    sk_merging_free(&m);
    sk_buf_free(&marked);
    sk_buf_free(&scratch);
    return st;
}

#include "base/utf8.h"
#include "text/tokenizer.h"

/* Moves n bytes from `bytes` to `ready`, bad ones as U+FFFD. */
static void give(struct sk_detokenizer *d, size_t n) {
    for (size_t i = 0, len; i < n; i += len) {
        const int32_t c = sk_utf8_decode(d->bytes.data + i, n - i, &len);
        if (c >= 0) {
            sk_buf_append(&d->ready, d->bytes.data + i, len);
            continue;
        }
        sk_buf_puts(&d->ready, "\xEF\xBF\xBD");
        if (c == SK_UTF8_BAD) len = 1;
    }
    if (n) memmove(d->bytes.data, d->bytes.data + n, d->bytes.len - n);
    d->bytes.len -= n;
}

struct sk_str sk_detokenize(struct sk_detokenizer *d, int32_t id) {
    struct sk_str bytes = sk_token_bytes(d->tokenizer, id, d->with_special);
    d->ready.len = 0;
    if (bytes.n && d->at_start) {
        if (bytes.p[0] == ' ') bytes.p++, bytes.n--;
        d->at_start = false;
    }
    sk_buf_str(&d->bytes, bytes);
    if (d->bytes.len) give(d, sk_utf8_complete(d->bytes.data, d->bytes.len));
    return sk_buf_view(&d->ready);
}

struct sk_str sk_detokenize_end(struct sk_detokenizer *d) {
    d->ready.len = 0;
    if (d->bytes.len) give(d, d->bytes.len);
    return sk_buf_view(&d->ready);
}

void sk_detokenizer_free(struct sk_detokenizer *d) {
    sk_buf_free(&d->bytes);
    sk_buf_free(&d->ready);
}

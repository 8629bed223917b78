#include "base/utf8.h"

int32_t sk_utf8_decode(const void *data, size_t n, size_t *len) {
    const uint8_t *p = data;
    *len = 1;
    if (p[0] < 0x80) return p[0];
    size_t want;
    uint32_t cp, least;
    if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        want = 2, cp = p[0] & 0x1Fu, least = 0x80;
    } else if ((p[0] & 0xF0) == 0xE0) {
        want = 3, cp = p[0] & 0x0Fu, least = 0x800;
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        want = 4, cp = p[0] & 0x07u, least = 0x10000;
    } else {
        return SK_UTF8_BAD;
    }
    for (size_t i = 1; i < want; i++) {
        if (i >= n) {
            *len = n;
            return SK_UTF8_SHORT;
        }
        if ((p[i] & 0xC0) != 0x80) return SK_UTF8_BAD;
        /* The second byte already tells overlong forms, surrogates and values past the end. */
        if (i == 1) {
            if (p[0] == 0xE0 && p[1] < 0xA0) return SK_UTF8_BAD;
            if (p[0] == 0xED && p[1] > 0x9F) return SK_UTF8_BAD;
            if (p[0] == 0xF0 && p[1] < 0x90) return SK_UTF8_BAD;
            if (p[0] == 0xF4 && p[1] > 0x8F) return SK_UTF8_BAD;
        }
        cp = cp << 6 | (p[i] & 0x3Fu);
    }
    if (cp < least) return SK_UTF8_BAD;
    *len = want;
    return (int32_t)cp;
}

size_t sk_utf8_encode(uint32_t cp, char out[4]) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

size_t sk_utf8_complete(const void *data, size_t n) {
    const uint8_t *p = data;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        size_t len;
        if ((p[n - back] & 0xC0) == 0x80) continue;
        return sk_utf8_decode(p + n - back, back, &len) == SK_UTF8_SHORT ? n - back : n;
    }
    return n;
}

size_t sk_utf8_valid_prefix(const void *data, size_t n) {
    const uint8_t *p = data;
    for (size_t i = 0, len; i < n; i += len)
        if (sk_utf8_decode(p + i, n - i, &len) < 0) return i;
    return n;
}

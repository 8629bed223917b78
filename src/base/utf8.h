/* UTF-8 (RFC 3629): decoding with every malformed sequence found, and encoding. */
#ifndef SK_BASE_UTF8_H
#define SK_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { SK_UTF8_BAD = -1, SK_UTF8_SHORT = -2 };

/* Decodes the code point at p[0..n), n >= 1. Returns it and its length in `*len` (1 to 4), or SK_UTF8_BAD (with
 * *len = 1: skip one byte), or SK_UTF8_SHORT (the bytes are the beginning of a valid sequence that the end cut
 * off; *len = n). Overlong forms, surrogates and values past U+10FFFF are bad. */
int32_t sk_utf8_decode(const void *p, size_t n, size_t *len);
/* Writes `cp` (a valid code point) into out[4]; returns its length. */
size_t sk_utf8_encode(uint32_t cp, char out[4]);
/* Length of the longest prefix of p[0..n) that ends on a character boundary: only a cut-off last sequence is left out.
 */
size_t sk_utf8_complete(const void *p, size_t n);
/* Offset of the first byte that is not part of valid UTF-8; n if there is none. */
size_t sk_utf8_valid_prefix(const void *p, size_t n);

#endif

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sk_status sk_fail(struct sk_error *err, sk_status status, const char *format, ...) {
    if (!err) return status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    err->status = status;
    return status;
}

sk_status sk_fail_within(struct sk_error *err, const char *format, ...) {
    if (!err) return SK_EINVAL;
    char inner[sizeof err->message];
    memcpy(inner, err->message, sizeof inner);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (n < 0) n = 0;
    if ((size_t)n < sizeof err->message) snprintf(err->message + n, sizeof err->message - (size_t)n, ": %s", inner);
    return err->status;
}

sk_status sk_fail_memory(struct sk_error *err, unsigned long long n_bytes, const char *what) {
    return sk_fail(err, SK_ENOMEM, "cannot get %llu bytes of memory for %s", n_bytes, what);
}

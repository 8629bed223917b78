/* Errors: a status code and one sentence a user can act on. Nothing here prints. */
#ifndef SK_BASE_ERROR_H
#define SK_BASE_ERROR_H

typedef enum {
    SK_OK = 0,
    SK_EINVAL,       /* the caller or user asked for something impossible */
    SK_EIO,          /* the operating system refused a file or socket */
    SK_EFORMAT,      /* bytes from outside do not follow their format */
    SK_EUNSUPPORTED, /* well-formed, but not something this build can do */
    SK_ENOMEM,       /* memory is short, or a stated limit would be passed */
    SK_ECANCELLED,   /* somebody asked to stop */
} sk_status;

/* Owned by the caller; zero-initialise. `message` is one sentence without a trailing newline. */
struct sk_error {
    sk_status status;
    char message[600];
};

/* Fills `err` (which may be NULL) and returns `status`, so that a failing function ends with
 * `return sk_fail(err, SK_EFORMAT, "…")`. */
sk_status sk_fail(struct sk_error *err, sk_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message already in `err`; returns its status. */
sk_status sk_fail_within(struct sk_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "cannot get N bytes for WHAT" */
sk_status sk_fail_memory(struct sk_error *err, unsigned long long n_bytes, const char *what);

#endif

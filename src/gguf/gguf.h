/* The GGUF file: a checked, memory-mapped reader for versions 2 and 3, little-endian.
 *
 * Specification: ggml/docs/gguf.md. Every offset, count and length is checked against the file when it is opened;
 * after that the accessors cannot fail on the file's account. Names and values are borrowed from the mapping and
 * live as long as the `struct sk_gguf`. Knows nothing of what the tensors mean. */
#ifndef SK_GGUF_H
#define SK_GGUF_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sk_gguf_type {
    SK_GGUF_U8 = 0,
    SK_GGUF_I8,
    SK_GGUF_U16,
    SK_GGUF_I16,
    SK_GGUF_U32,
    SK_GGUF_I32,
    SK_GGUF_F32,
    SK_GGUF_BOOL,
    SK_GGUF_STRING,
    SK_GGUF_ARRAY,
    SK_GGUF_U64,
    SK_GGUF_I64,
    SK_GGUF_F64,
    SK_GGUF_N_TYPES
};

/* Tensor types as numbered in the file. The ones Skipstone computes with are listed in kernels/format.h. */
enum sk_tensor_type {
    SK_F32 = 0,
    SK_F16 = 1,
    SK_Q4_0 = 2,
    SK_Q4_1 = 3,
    SK_Q5_0 = 6,
    SK_Q5_1 = 7,
    SK_Q8_0 = 8,
    SK_BF16 = 30,
};

/* Elements and bytes of one block of a tensor type; NULL if the number is unknown. */
struct sk_tensor_type_info {
    uint32_t type;
    const char *name;
    uint32_t block_elements, block_bytes;
};
const struct sk_tensor_type_info *sk_tensor_type_info(uint32_t type);

struct sk_gguf_value {
    struct sk_str key;
    enum sk_gguf_type type;         /* SK_GGUF_ARRAY for arrays */
    enum sk_gguf_type element_type; /* of an array */
    uint64_t count;                 /* elements of an array; 1 otherwise */
    const uint8_t *data;            /* the value, little-endian, not aligned */
    size_t data_bytes;
};

struct sk_gguf_tensor {
    struct sk_str name;
    uint32_t type;
    uint32_t n_dims;
    uint64_t ne[4]; /* elements per dimension, the fastest-varying first; 1 past n_dims */
    uint64_t n_elements;
    size_t n_bytes;
    const uint8_t *data; /* aligned to the file's alignment */
    uint32_t file;       /* of a split model: 0-based number of the part that holds it */
};

struct sk_gguf {
    uint32_t version;
    size_t n_values, n_tensors, n_files;
    const struct sk_gguf_value *values;   /* of the first file, in file order */
    const struct sk_gguf_tensor *tensors; /* of all files, in file order */
    size_t file_bytes;                    /* of all files */
    uint32_t alignment;
};

/* Opens PATH and, if it is the first part of a split model (…-00001-of-0000N.gguf), all its parts. */
sk_status sk_gguf_open(const char *path, struct sk_gguf **out, struct sk_error *err);
/* The same over memory that the caller keeps alive and unchanged; `data` must be 64-byte aligned. */
sk_status sk_gguf_open_memory(const void *data, size_t n_bytes, struct sk_gguf **out, struct sk_error *err);
void sk_gguf_close(struct sk_gguf *g);
/* Tells the system that the mapped tensor data is not needed soon (it was copied elsewhere). */
void sk_gguf_forget_data(const struct sk_gguf *g);

const struct sk_gguf_value *sk_gguf_find(const struct sk_gguf *g, const char *key);
const struct sk_gguf_tensor *sk_gguf_find_tensor(const struct sk_gguf *g, const char *name);

/* One value of a fitting type. A missing key gives `fallback`; a value of another type (a negative number for an
 * unsigned one among them) is an error that names the key. */
sk_status sk_gguf_u32(const struct sk_gguf *g, const char *key, uint32_t fallback, uint32_t *out, struct sk_error *err);
sk_status sk_gguf_f32(const struct sk_gguf *g, const char *key, float fallback, float *out, struct sk_error *err);
sk_status sk_gguf_bool(const struct sk_gguf *g, const char *key, bool fallback, bool *out, struct sk_error *err);
sk_status sk_gguf_string(const struct sk_gguf *g, const char *key, struct sk_str fallback, struct sk_str *out,
                         struct sk_error *err);

/* Array elements. The value must be an array of that element type and i < count. */
int64_t sk_gguf_array_int(const struct sk_gguf_value *array, uint64_t i); /* any integer type or bool */
float sk_gguf_array_f32(const struct sk_gguf_value *array, uint64_t i);
/* Walks an array of strings: start with *at = 0, call count times. */
struct sk_str sk_gguf_array_next_string(const struct sk_gguf_value *array, size_t *at);

const char *sk_gguf_type_name(enum sk_gguf_type type);

#endif

#include "gguf/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF values are read in place: this build needs a little-endian machine"
#endif

enum {
    MAX_NAME_BYTES = 1024, /* tensor names; the specification says 64, files in the wild pass it */
    MAX_KEY_BYTES = 65535,
    MAX_SPLITS = 1000,
    DEFAULT_ALIGNMENT = 32,
    MIN_VALUE_BYTES = 8 + 4 + 1,      /* the least a key-value pair can take: bounds counts */
    MIN_TENSOR_BYTES = 8 + 4 + 4 + 8, /* likewise for a tensor's description */
};

struct mapping {
    const uint8_t *data;
    size_t n_bytes;
    bool owned;
};

struct gguf {
    struct sk_gguf pub; /* must be first */
    struct mapping *files;
    struct sk_gguf_value *values;
    struct sk_gguf_tensor *tensors;
    uint32_t *values_by_key;   /* indices in key order */
    uint32_t *tensors_by_name; /* indices in name order */
};

/* ---- tensor types -------------------------------------------------------------------------------------- */

static const struct sk_tensor_type_info tensor_types[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
};

const struct sk_tensor_type_info *sk_tensor_type_info(uint32_t type) {
    for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++)
        if (tensor_types[i].type == type) return &tensor_types[i];
    return NULL;
}

static const struct {
    const char *name;
    uint8_t bytes; /* 0 for strings and arrays */
} value_types[SK_GGUF_N_TYPES] = {
    [SK_GGUF_U8] = {"u8", 1},       [SK_GGUF_I8] = {"i8", 1},     [SK_GGUF_U16] = {"u16", 2},
    [SK_GGUF_I16] = {"i16", 2},     [SK_GGUF_U32] = {"u32", 4},   [SK_GGUF_I32] = {"i32", 4},
    [SK_GGUF_F32] = {"f32", 4},     [SK_GGUF_BOOL] = {"bool", 1}, [SK_GGUF_STRING] = {"string", 0},
    [SK_GGUF_ARRAY] = {"array", 0}, [SK_GGUF_U64] = {"u64", 8},   [SK_GGUF_I64] = {"i64", 8},
    [SK_GGUF_F64] = {"f64", 8},
};

const char *sk_gguf_type_name(enum sk_gguf_type type) {
    return (unsigned)type < SK_GGUF_N_TYPES ? value_types[type].name : "unknown";
}

/* ---- reading ------------------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *data;
    size_t n, at;
    struct sk_error *err;
};

static sk_status cut_off(const struct reader *r, const char *what) {
    return sk_fail(r->err, SK_EFORMAT,
                   "the file ends inside %s, at offset %zu of %zu bytes: it is damaged or incomplete", what, r->at,
                   r->n);
}

static bool take(struct reader *r, void *out, size_t n_bytes) {
    if (r->n - r->at < n_bytes) return false;
    memcpy(out, r->data + r->at, n_bytes);
    r->at += n_bytes;
    return true;
}

static sk_status take_string(struct reader *r, struct sk_str *out, size_t max, const char *what) {
    const size_t start = r->at;
    uint64_t n;
    if (!take(r, &n, sizeof n)) return cut_off(r, what);
    if (n > max || n > r->n - r->at)
        return sk_fail(r->err, SK_EFORMAT, "the length of %s at offset %zu is %" PRIu64 ", more than %s", what, start,
                       n, n > max ? "is allowed" : "the file holds");
    *out = (struct sk_str){(const char *)r->data + r->at, (size_t)n};
    r->at += (size_t)n;
    return SK_OK;
}

/* Moves past `count` elements of a type. */
static sk_status skip_elements(struct reader *r, uint32_t type, uint64_t count, struct sk_str key) {
    if (type == SK_GGUF_STRING) {
        for (uint64_t i = 0; i < count; i++) {
            struct sk_str s;
            const sk_status st = take_string(r, &s, SIZE_MAX, "a string value");
            if (st) return st;
        }
        return SK_OK;
    }
    uint64_t bytes;
    if (__builtin_mul_overflow(count, (uint64_t)value_types[type].bytes, &bytes) || bytes > r->n - r->at)
        return sk_fail(r->err, SK_EFORMAT,
                       "key '%.*s' at offset %zu has %" PRIu64 " elements, more than the file holds", (int)key.n, key.p,
                       r->at, count);
    r->at += (size_t)bytes;
    return SK_OK;
}

static sk_status take_value(struct reader *r, struct sk_gguf_value *v) {
    sk_status st = take_string(r, &v->key, MAX_KEY_BYTES, "a metadata key");
    if (st) return st;
    uint32_t type;
    if (!take(r, &type, sizeof type)) return cut_off(r, "a metadata value");
    if (type >= SK_GGUF_N_TYPES)
        return sk_fail(r->err, SK_EFORMAT, "key '%.*s' has the unknown value type %u at offset %zu", (int)v->key.n,
                       v->key.p, type, r->at - 4);
    v->type = type;
    v->count = 1;
    if (type == SK_GGUF_ARRAY) {
        uint32_t element;
        if (!take(r, &element, sizeof element) || !take(r, &v->count, sizeof v->count)) return cut_off(r, "an array");
        if (element >= SK_GGUF_N_TYPES || element == SK_GGUF_ARRAY)
            return sk_fail(r->err, SK_EFORMAT,
                           "key '%.*s' is an array of type %u at offset %zu, which is not supported", (int)v->key.n,
                           v->key.p, element, r->at - 12);
        v->element_type = type = element;
    }
    v->data = r->data + r->at;
    const size_t start = r->at;
    st = skip_elements(r, type, v->count, v->key);
    v->data_bytes = r->at - start;
    return st;
}

static sk_status take_tensor(struct reader *r, struct sk_gguf_tensor *t, uint64_t *offset) {
    const sk_status st = take_string(r, &t->name, MAX_NAME_BYTES, "a tensor name");
    if (st) return st;
    const size_t at = r->at;
    if (!take(r, &t->n_dims, sizeof t->n_dims)) return cut_off(r, "a tensor description");
    if (t->n_dims < 1 || t->n_dims > 4)
        return sk_fail(r->err, SK_EFORMAT, "tensor '%.*s' has %u dimensions at offset %zu: 1 to 4 are possible",
                       (int)t->name.n, t->name.p, t->n_dims, at);
    t->n_elements = 1;
    for (uint32_t i = 0; i < 4; i++) {
        t->ne[i] = 1;
        if (i < t->n_dims && !take(r, &t->ne[i], sizeof t->ne[i])) return cut_off(r, "a tensor description");
        if (t->ne[i] == 0 || __builtin_mul_overflow(t->n_elements, t->ne[i], &t->n_elements))
            return sk_fail(r->err, SK_EFORMAT, "tensor '%.*s' has an impossible shape at offset %zu", (int)t->name.n,
                           t->name.p, at);
    }
    if (!take(r, &t->type, sizeof t->type) || !take(r, offset, sizeof *offset))
        return cut_off(r, "a tensor description");
    const struct sk_tensor_type_info *info = sk_tensor_type_info(t->type);
    if (!info)
        return sk_fail(r->err, SK_EUNSUPPORTED, "tensor '%.*s' has the unknown type %u at offset %zu", (int)t->name.n,
                       t->name.p, t->type, r->at - 12);
    if (t->ne[0] % info->block_elements)
        return sk_fail(r->err, SK_EFORMAT,
                       "tensor '%.*s' has rows of %" PRIu64
                       " elements at offset %zu, not a multiple of %s's block of %u",
                       (int)t->name.n, t->name.p, t->ne[0], at, info->name, info->block_elements);
    uint64_t bytes;
    if (__builtin_mul_overflow(t->n_elements / info->block_elements, (uint64_t)info->block_bytes, &bytes) ||
        bytes > SIZE_MAX)
        return sk_fail(r->err, SK_EFORMAT, "tensor '%.*s' has an impossible size at offset %zu", (int)t->name.n,
                       t->name.p, at);
    t->n_bytes = (size_t)bytes;
    return SK_OK;
}

static sk_status find_alignment(const struct sk_gguf_value *values, size_t n, uint32_t *out, struct sk_error *err) {
    *out = DEFAULT_ALIGNMENT;
    for (size_t i = 0; i < n; i++) {
        if (!sk_str_is(values[i].key, "general.alignment")) continue;
        if (values[i].type != SK_GGUF_U32) return sk_fail(err, SK_EFORMAT, "general.alignment is not a u32");
        memcpy(out, values[i].data, sizeof *out);
        if (*out < 8 || (*out & (*out - 1)) || *out > 1u << 20)
            return sk_fail(err, SK_EFORMAT, "general.alignment is %u: a power of two from 8 to 1048576 is needed",
                           *out);
    }
    return SK_OK;
}

/* Places each tensor of one file in its data section, with every bound checked. */
static sk_status place_tensors(const struct mapping *file, size_t data_start, uint32_t alignment,
                               const uint64_t *offsets, struct sk_gguf_tensor *tensors, size_t n,
                               struct sk_error *err) {
    for (size_t i = 0; i < n; i++) {
        struct sk_gguf_tensor *t = &tensors[i];
        if (offsets[i] % alignment)
            return sk_fail(err, SK_EFORMAT,
                           "tensor '%.*s' lies at offset %" PRIu64 " of the data, not a multiple of the alignment %u",
                           (int)t->name.n, t->name.p, offsets[i], alignment);
        if (data_start > file->n_bytes || offsets[i] > file->n_bytes - data_start ||
            t->n_bytes > file->n_bytes - data_start - (size_t)offsets[i])
            return sk_fail(err, SK_EFORMAT,
                           "tensor '%.*s' needs %zu bytes at offset %" PRIu64
                           " of the data, which starts at %zu: past the end of the file (%zu bytes)",
                           (int)t->name.n, t->name.p, t->n_bytes, offsets[i], data_start, file->n_bytes);
        t->data = file->data + data_start + offsets[i];
    }
    return SK_OK;
}

static sk_status check_header(struct reader *r, uint32_t *version, uint64_t *n_tensors, uint64_t *n_values) {
    uint32_t magic;
    if (!take(r, &magic, sizeof magic) || magic != 0x46554747u)
        return sk_fail(r->err, SK_EFORMAT, "this is not a GGUF file: it does not start with 'GGUF' at offset 0");
    if (!take(r, version, sizeof *version)) return cut_off(r, "the header");
    if (*version == 0x02000000u || *version == 0x03000000u)
        return sk_fail(r->err, SK_EUNSUPPORTED,
                       "this GGUF file is big-endian (version at offset 4), which is not supported");
    if (*version != 2 && *version != 3)
        return sk_fail(r->err, SK_EUNSUPPORTED, "GGUF version %u at offset 4 is not supported: 2 and 3 are", *version);
    if (!take(r, n_tensors, sizeof *n_tensors) || !take(r, n_values, sizeof *n_values)) return cut_off(r, "the header");
    if (*n_values > (r->n - r->at) / MIN_VALUE_BYTES || *n_values > UINT32_MAX)
        return sk_fail(r->err, SK_EFORMAT,
                       "the header at offset 16 promises %" PRIu64 " metadata values, more than the file holds",
                       *n_values);
    if (*n_tensors > (r->n - r->at) / MIN_TENSOR_BYTES || *n_tensors > UINT32_MAX)
        return sk_fail(r->err, SK_EFORMAT,
                       "the header at offset 8 promises %" PRIu64 " tensors, more than the file holds", *n_tensors);
    return SK_OK;
}

/* Parses one file and adds its tensors to `g`; values only if it is the first. `*values_out` are the file's own
 * values, to be freed by the caller unless it is the first. */
static sk_status parse_file(struct gguf *g, uint32_t file_index, struct sk_gguf_value **values_out,
                            size_t *n_values_out, struct sk_error *err) {
    const struct mapping *file = &g->files[file_index];
    struct reader r = {file->data, file->n_bytes, 0, err};
    uint32_t version, alignment;
    uint64_t n_tensors, n_values, *offsets = NULL;
    sk_status st = check_header(&r, &version, &n_tensors, &n_values);
    if (st) return st;
    struct sk_gguf_value *values = sk_calloc(n_values, sizeof *values);
    if (!values) return sk_fail_memory(err, n_values * sizeof *values, "GGUF metadata");
    *values_out = values;
    *n_values_out = n_values;
    for (size_t i = 0; i < n_values; i++)
        if ((st = take_value(&r, &values[i]))) return st;
    if ((st = find_alignment(values, n_values, &alignment, err))) return st;

    const size_t first = g->pub.n_tensors;
    struct sk_gguf_tensor *grown = reallocarray(g->tensors, first + n_tensors + 1, sizeof *grown);
    offsets = sk_calloc(n_tensors, sizeof *offsets);
    if (grown) g->tensors = grown;
    if (!grown || !offsets) {
        free(offsets);
        return sk_fail_memory(err, n_tensors * sizeof *grown, "the GGUF tensor list");
    }
    for (size_t i = 0; i < n_tensors && !st; i++) {
        g->tensors[first + i] = (struct sk_gguf_tensor){.file = file_index};
        st = take_tensor(&r, &g->tensors[first + i], &offsets[i]);
    }
    if (!st)
        st = place_tensors(file, sk_round_up(r.at, alignment), alignment, offsets, g->tensors + first, n_tensors, err);
    free(offsets);
    if (st) return st;
    g->pub.n_tensors = first + n_tensors;
    if (file_index == 0) {
        g->pub.version = version;
        g->pub.alignment = alignment;
        g->pub.file_bytes = 0;
    }
    g->pub.file_bytes += file->n_bytes;
    return SK_OK;
}

/* ---- indices ------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b, void *values) {
    const struct sk_gguf_value *v = values;
    return sk_str_compare(v[*(const uint32_t *)a].key, v[*(const uint32_t *)b].key);
}

static int by_name(const void *a, const void *b, void *tensors) {
    const struct sk_gguf_tensor *t = tensors;
    return sk_str_compare(t[*(const uint32_t *)a].name, t[*(const uint32_t *)b].name);
}

static uint32_t *sorted_indices(size_t n, int (*compare)(const void *, const void *, void *), void *items) {
    uint32_t *index = sk_calloc(n, sizeof *index);
    if (!index) return NULL;
    for (size_t i = 0; i < n; i++) index[i] = (uint32_t)i;
    if (n) qsort_r(index, n, sizeof *index, compare, items);
    return index;
}

static sk_status build_indices(struct gguf *g, struct sk_error *err) {
    const size_t nv = g->pub.n_values, nt = g->pub.n_tensors;
    g->values_by_key = sorted_indices(nv, by_key, g->values);
    g->tensors_by_name = sorted_indices(nt, by_name, g->tensors);
    if (!g->values_by_key || !g->tensors_by_name) return sk_fail_memory(err, (nv + nt) * 4, "GGUF indices");
    for (size_t i = 1; i < nv; i++) {
        const struct sk_gguf_value *v = &g->values[g->values_by_key[i]];
        if (by_key(&g->values_by_key[i - 1], &g->values_by_key[i], g->values) == 0)
            return sk_fail(err, SK_EFORMAT, "the key '%.*s' appears twice (the value of one is at offset %zu)",
                           (int)v->key.n, v->key.p, (size_t)(v->data - g->files[0].data));
    }
    for (size_t i = 1; i < nt; i++) {
        const struct sk_gguf_tensor *t = &g->tensors[g->tensors_by_name[i]];
        if (by_name(&g->tensors_by_name[i - 1], &g->tensors_by_name[i], g->tensors) == 0)
            return sk_fail(err, SK_EFORMAT, "the tensor '%.*s' appears twice (one is at offset %zu of part %u)",
                           (int)t->name.n, t->name.p, (size_t)(t->data - g->files[t->file].data), t->file + 1);
    }
    g->pub.values = g->values;
    g->pub.tensors = g->tensors;
    return SK_OK;
}

const struct sk_gguf_value *sk_gguf_find(const struct sk_gguf *pub, const char *key) {
    const struct gguf *g = (const struct gguf *)pub;
    const struct sk_str want = sk_str_of(key);
    for (size_t lo = 0, hi = pub->n_values; lo < hi;) {
        const size_t mid = lo + (hi - lo) / 2;
        const struct sk_gguf_value *v = &g->values[g->values_by_key[mid]];
        const int c = sk_str_compare(v->key, want);
        if (c == 0) return v;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const struct sk_gguf_tensor *sk_gguf_find_tensor(const struct sk_gguf *pub, const char *name) {
    const struct gguf *g = (const struct gguf *)pub;
    const struct sk_str want = sk_str_of(name);
    for (size_t lo = 0, hi = pub->n_tensors; lo < hi;) {
        const size_t mid = lo + (hi - lo) / 2;
        const struct sk_gguf_tensor *t = &g->tensors[g->tensors_by_name[mid]];
        const int c = sk_str_compare(t->name, want);
        if (c == 0) return t;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static sk_status map_file(const char *path, struct mapping *out, struct sk_error *err) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat sb;
    if (fd < 0) return sk_fail(err, SK_EIO, "cannot open '%s': %s", path, strerror(errno));
    if (fstat(fd, &sb) != 0 || !S_ISREG(sb.st_mode)) {
        close(fd);
        return sk_fail(err, SK_EIO, "'%s' is not a regular file", path);
    }
    if (sb.st_size == 0) {
        close(fd);
        return sk_fail(err, SK_EFORMAT, "'%s' is empty (it ends at offset 0)", path);
    }
    void *p = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int saved = errno;
    close(fd);
    if (p == MAP_FAILED) return sk_fail(err, SK_EIO, "cannot map '%s' into memory: %s", path, strerror(saved));
    *out = (struct mapping){p, (size_t)sb.st_size, true};
    return SK_OK;
}

static bool split_number(const struct sk_gguf_value *values, size_t n, const char *key, uint64_t *out) {
    for (size_t i = 0; i < n; i++) {
        if (!sk_str_is(values[i].key, key)) continue;
        if (values[i].type != SK_GGUF_U16 && values[i].type != SK_GGUF_U32 && values[i].type != SK_GGUF_I32)
            return false;
        *out = 0;
        memcpy(out, values[i].data, values[i].data_bytes);
        return true;
    }
    return false;
}

/* "dir/name-00001-of-00003.gguf" -> the path of another part, or false if the name has another form. */
static bool split_path(const char *first, unsigned part, unsigned count, char *out, size_t cap) {
    char suffix[40];
    snprintf(suffix, sizeof suffix, "-00001-of-%05u.gguf", count);
    const size_t n = strlen(first), m = strlen(suffix);
    if (n <= m || strcmp(first + n - m, suffix) != 0) return false;
    const int w = snprintf(out, cap, "%.*s-%05u-of-%05u.gguf", (int)(n - m), first, part, count);
    return w > 0 && (size_t)w < cap;
}

static sk_status open_other_parts(struct gguf *g, const char *path, uint64_t count, struct sk_error *err) {
    uint64_t number = 0;
    split_number(g->values, g->pub.n_values, "split.no", &number);
    if (number != 0)
        return sk_fail(err, SK_EINVAL,
                       "'%s' is part %" PRIu64 " of a split model: open the first part (…-00001-of-%05" PRIu64 ".gguf)",
                       path, number + 1, count);
    if (count > MAX_SPLITS)
        return sk_fail(err, SK_EFORMAT, "'%s' says it has %" PRIu64 " parts: at most %d are possible", path, count,
                       MAX_SPLITS);
    for (uint32_t i = 1; i < count; i++) {
        char part[4096];
        if (!split_path(path, i + 1, (unsigned)count, part, sizeof part))
            return sk_fail(err, SK_EINVAL,
                           "'%s' has %" PRIu64 " parts, so its name must end in -00001-of-%05" PRIu64 ".gguf", path,
                           count, count);
        sk_status st = map_file(part, &g->files[i], err);
        if (st) return st;
        g->pub.n_files = i + 1;
        struct sk_gguf_value *values = NULL;
        size_t n_values = 0;
        uint64_t part_number = 0, part_count = 0;
        st = parse_file(g, i, &values, &n_values, err);
        if (!st && (!split_number(values, n_values, "split.no", &part_number) || part_number != i ||
                    !split_number(values, n_values, "split.count", &part_count) || part_count != count))
            st = sk_fail(err, SK_EFORMAT, "it does not say that it is part %u of %" PRIu64, i + 1, count);
        free(values);
        if (st) return sk_fail_within(err, "%s", part);
    }
    return SK_OK;
}

static sk_status open_mapping(struct mapping first, const char *path, struct sk_gguf **out, struct sk_error *err) {
    struct gguf *g = sk_calloc(1, sizeof *g);
    if (g) g->files = sk_calloc(MAX_SPLITS, sizeof *g->files);
    if (!g || !g->files) {
        if (first.owned) munmap((void *)(uintptr_t)first.data, first.n_bytes);
        free(g);
        return sk_fail_memory(err, sizeof *g, "a GGUF file");
    }
    g->files[0] = first;
    g->pub.n_files = 1;
    size_t n_values = 0;
    sk_status st = parse_file(g, 0, &g->values, &n_values, err);
    g->pub.n_values = n_values;
    if (st && path) sk_fail_within(err, "%s", path);
    uint64_t parts = 0;
    if (!st && path && split_number(g->values, g->pub.n_values, "split.count", &parts) && parts > 1)
        st = open_other_parts(g, path, parts, err);
    if (!st && (st = build_indices(g, err)) && path) sk_fail_within(err, "%s", path);
    if (st) {
        sk_gguf_close(&g->pub);
        return st;
    }
    *out = &g->pub;
    return SK_OK;
}

sk_status sk_gguf_open(const char *path, struct sk_gguf **out, struct sk_error *err) {
    struct mapping file;
    const sk_status st = map_file(path, &file, err);
    return st ? st : open_mapping(file, path, out, err);
}

sk_status sk_gguf_open_memory(const void *data, size_t n_bytes, struct sk_gguf **out, struct sk_error *err) {
    return open_mapping((struct mapping){data, n_bytes, false}, NULL, out, err);
}

void sk_gguf_close(struct sk_gguf *pub) {
    if (!pub) return;
    struct gguf *g = (struct gguf *)pub;
    for (size_t i = 0; i < pub->n_files; i++)
        if (g->files[i].owned) munmap((void *)(uintptr_t)g->files[i].data, g->files[i].n_bytes);
    free(g->files);
    free(g->values);
    free(g->tensors);
    free(g->values_by_key);
    free(g->tensors_by_name);
    free(g);
}

void sk_gguf_forget_data(const struct sk_gguf *pub) {
    const struct gguf *g = (const struct gguf *)pub;
    for (size_t i = 0; i < pub->n_files; i++)
        if (g->files[i].owned) madvise((void *)(uintptr_t)g->files[i].data, g->files[i].n_bytes, MADV_DONTNEED);
}

/* ---- values -------------------------------------------------------------------------------------------- */

static bool is_integer(enum sk_gguf_type type) {
    switch (type) {
    case SK_GGUF_U8:
    case SK_GGUF_I8:
    case SK_GGUF_U16:
    case SK_GGUF_I16:
    case SK_GGUF_U32:
    case SK_GGUF_I32:
    case SK_GGUF_U64:
    case SK_GGUF_I64:
    case SK_GGUF_BOOL: return true;
    default: return false;
    }
}

static int64_t read_int(enum sk_gguf_type type, const uint8_t *p) {
    int64_t v = 0;
    memcpy(&v, p, value_types[type].bytes);
    switch (type) {
    case SK_GGUF_I8: return (int8_t)v;
    case SK_GGUF_I16: return (int16_t)v;
    case SK_GGUF_I32: return (int32_t)v;
    case SK_GGUF_BOOL: return v != 0;
    default: return v;
    }
}

static sk_status wrong_type(const struct sk_gguf_value *v, const char *want, struct sk_error *err) {
    return sk_fail(err, SK_EFORMAT, "the key '%.*s' is of type %s where %s is needed", (int)v->key.n, v->key.p,
                   sk_gguf_type_name(v->type), want);
}

sk_status sk_gguf_u32(const struct sk_gguf *g, const char *key, uint32_t fallback, uint32_t *out,
                      struct sk_error *err) {
    const struct sk_gguf_value *v = sk_gguf_find(g, key);
    *out = fallback;
    if (!v) return SK_OK;
    if (!is_integer(v->type)) return wrong_type(v, "an integer", err);
    const int64_t n = read_int(v->type, v->data);
    if (n < 0 || n > UINT32_MAX)
        return sk_fail(err, SK_EFORMAT, "the key '%s' is %" PRId64 ", outside 0 to 4294967295", key, n);
    *out = (uint32_t)n;
    return SK_OK;
}

sk_status sk_gguf_f32(const struct sk_gguf *g, const char *key, float fallback, float *out, struct sk_error *err) {
    const struct sk_gguf_value *v = sk_gguf_find(g, key);
    *out = fallback;
    if (!v) return SK_OK;
    if (v->type == SK_GGUF_F32) {
        memcpy(out, v->data, sizeof *out);
    } else if (v->type == SK_GGUF_F64) {
        double d;
        memcpy(&d, v->data, sizeof d);
        *out = (float)d;
    } else if (is_integer(v->type)) {
        *out = (float)read_int(v->type, v->data);
    } else {
        return wrong_type(v, "a number", err);
    }
    return SK_OK;
}

sk_status sk_gguf_bool(const struct sk_gguf *g, const char *key, bool fallback, bool *out, struct sk_error *err) {
    const struct sk_gguf_value *v = sk_gguf_find(g, key);
    *out = fallback;
    if (!v) return SK_OK;
    if (!is_integer(v->type)) return wrong_type(v, "a bool", err);
    *out = read_int(v->type, v->data) != 0;
    return SK_OK;
}

sk_status sk_gguf_string(const struct sk_gguf *g, const char *key, struct sk_str fallback, struct sk_str *out,
                         struct sk_error *err) {
    const struct sk_gguf_value *v = sk_gguf_find(g, key);
    *out = fallback;
    if (!v) return SK_OK;
    if (v->type != SK_GGUF_STRING) return wrong_type(v, "a string", err);
    *out = (struct sk_str){(const char *)v->data + 8, v->data_bytes - 8};
    return SK_OK;
}

int64_t sk_gguf_array_int(const struct sk_gguf_value *array, uint64_t i) {
    return read_int(array->element_type, array->data + i * value_types[array->element_type].bytes);
}

float sk_gguf_array_f32(const struct sk_gguf_value *array, uint64_t i) {
    float f;
    memcpy(&f, array->data + i * sizeof f, sizeof f);
    return f;
}

struct sk_str sk_gguf_array_next_string(const struct sk_gguf_value *array, size_t *at) {
    uint64_t n;
    memcpy(&n, array->data + *at, sizeof n);
    const struct sk_str s = {(const char *)array->data + *at + 8, (size_t)n};
    *at += 8 + (size_t)n;
    return s;
}

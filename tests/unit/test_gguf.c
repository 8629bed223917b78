/* The GGUF reader: what it accepts, and that nothing in a file can make it read elsewhere. */
#include "harness.h"

#include <unistd.h>

#include "base/memory.h"
#include "gguf/gguf.h"

/* A file in memory, written field by field. */
static void put(struct sk_buf *b, uint64_t v, size_t n) {
    sk_buf_append(b, &v, n);
}
static void put_string(struct sk_buf *b, const char *s) {
    put(b, strlen(s), 8);
    sk_buf_puts(b, s);
}
static void put_header(struct sk_buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_values) {
    sk_buf_puts(b, "GGUF");
    put(b, version, 4);
    put(b, n_tensors, 8);
    put(b, n_values, 8);
}
static void put_u32(struct sk_buf *b, const char *key, uint32_t v) {
    put_string(b, key);
    put(b, SK_GGUF_U32, 4);
    put(b, v, 4);
}
static void put_tensor(struct sk_buf *b, const char *name, uint64_t n, uint32_t type, uint64_t offset) {
    put_string(b, name);
    put(b, 1, 4);
    put(b, n, 8);
    put(b, type, 4);
    put(b, offset, 8);
}

static sk_status open_bytes(const struct sk_buf *b, struct sk_gguf **g, void **copy, struct sk_error *err) {
    *copy = aligned_alloc(64, sk_round_up(b->len + 1, 64));
    memcpy(*copy, b->data, b->len);
    const sk_status st = sk_gguf_open_memory(*copy, b->len, g, err);
    if (st) free(*copy);
    return st;
}

static void expect_refused(struct sk_buf *b, const char *words) {
    struct sk_gguf *g;
    struct sk_error err = {0};
    void *copy;
    if (open_bytes(b, &g, &copy, &err) == SK_OK) fail_msg("accepted, although: %s", words);
    if (!strstr(err.message, words)) fail_msg("the message '%s' does not say '%s'", err.message, words);
    sk_buf_free(b);
}

static void test_a_small_file_reads_back(void **state) {
    (void)state;
    struct sk_buf b = {0};
    struct sk_gguf *g;
    struct sk_error err = {0};
    void *copy;
    put_header(&b, 3, 1, 2);
    put_u32(&b, "a", 7);
    put_string(&b, "names");
    put(&b, SK_GGUF_ARRAY, 4);
    put(&b, SK_GGUF_STRING, 4);
    put(&b, 2, 8);
    put_string(&b, "x");
    put_string(&b, "yz");
    put_tensor(&b, "t", 4, SK_F32, 0);
    while (b.len % 32) sk_buf_putc(&b, 0);
    const float values[4] = {1, 2, 3, 4};
    sk_buf_append(&b, values, sizeof values);
    assert_sk_ok(open_bytes(&b, &g, &copy, &err));
    uint32_t v;
    assert_sk_ok(sk_gguf_u32(g, "a", 0, &v, &err));
    assert_int_equal(v, 7);
    const struct sk_gguf_value *names = sk_gguf_find(g, "names");
    size_t at = 0;
    assert_true(sk_str_is(sk_gguf_array_next_string(names, &at), "x"));
    assert_true(sk_str_is(sk_gguf_array_next_string(names, &at), "yz"));
    assert_memory_equal(sk_gguf_find_tensor(g, "t")->data, values, sizeof values);
    sk_gguf_close(g);
    free(copy);
    sk_buf_free(&b);
}

static void test_damaged_headers_are_refused_with_a_reason(void **state) {
    (void)state;
    struct sk_buf b = {0};
    sk_buf_puts(&b, "GGML");
    for (int i = 0; i < 40; i++) sk_buf_putc(&b, 0);
    expect_refused(&b, "GGUF");
    b = (struct sk_buf){0};
    put_header(&b, 1, 0, 0);
    expect_refused(&b, "version 1");
    b = (struct sk_buf){0};
    put_header(&b, 0x03000000, 0, 0);
    expect_refused(&b, "big-endian");
    b = (struct sk_buf){0};
    put_header(&b, 3, 0, UINT64_MAX);
    expect_refused(&b, "18446744073709551615");
    b = (struct sk_buf){0};
    put_header(&b, 3, UINT64_MAX / 2, 0);
    expect_refused(&b, "9223372036854775807");
}

static void test_duplicate_keys_and_tensors_are_refused(void **state) {
    (void)state;
    struct sk_buf b = {0};
    put_header(&b, 3, 0, 2);
    put_u32(&b, "twice", 1);
    put_u32(&b, "twice", 1);
    expect_refused(&b, "twice");
    b = (struct sk_buf){0};
    put_header(&b, 3, 2, 0);
    put_tensor(&b, "same", 4, SK_F32, 0);
    put_tensor(&b, "same", 4, SK_F32, 32);
    for (int i = 0; i < 128; i++) sk_buf_putc(&b, 0);
    expect_refused(&b, "same");
}

static void test_offsets_and_sizes_cannot_leave_the_file(void **state) {
    (void)state;
    static const struct {
        uint64_t n, offset;
    } cases[] = {{4, 1 << 20}, {4, UINT64_MAX - 31}, {UINT64_MAX / 4, 0}, {UINT64_MAX, 0}, {1ull << 62, 64}, {4, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sk_buf b = {0};
        put_header(&b, 3, 1, 0);
        put_tensor(&b, "outside", cases[i].n, SK_F32, cases[i].offset);
        for (int k = 0; k < 128; k++) sk_buf_putc(&b, 0);
        expect_refused(&b, "outside");
    }
}

/* Every prefix of a real file, and every byte of its head set to 0, 255 and one more: refused or read, never a crash
 * (ASan watches). */
static void test_no_prefix_and_no_changed_byte_crashes(void **state) {
    (void)state;
    struct sk_buf file = repo_file("tests/oracle/models/q4_1.gguf");
    struct sk_gguf *g;
    struct sk_error err = {0};
    char *copy = aligned_alloc(64, sk_round_up(file.len, 64));
    for (size_t n = 0; n < file.len; n += n < 600 ? 1 : 997) {
        memcpy(copy, file.data, file.len);
        assert_int_not_equal(sk_gguf_open_memory(copy, n, &g, &err), SK_OK);
        assert_true(err.message[0]);
    }
    for (size_t i = 0; i < 1500; i++) {
        const char values[] = {0, (char)255, (char)(file.data[i] + 1)};
        for (size_t k = 0; k < 3; k++) {
            memcpy(copy, file.data, 4096);
            copy[i] = values[k];
            if (sk_gguf_open_memory(copy, file.len, &g, &err) == SK_OK) sk_gguf_close(g);
        }
    }
    free(copy);
    sk_buf_free(&file);
}

static void test_a_value_of_another_type_names_its_key(void **state) {
    (void)state;
    struct sk_gguf *g;
    struct sk_error err = {0};
    uint32_t v;
    assert_sk_ok(sk_gguf_open(repo_path("tests/oracle/models/f16.gguf"), &g, &err));
    assert_int_equal(sk_gguf_u32(g, "general.name", 0, &v, &err), SK_EFORMAT);
    assert_non_null(strstr(err.message, "general.name"));
    sk_gguf_close(g);
}

static void write_part(const char *dir, const char *name, const struct sk_buf *b) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(b->data, 1, b->len, f);
    fclose(f);
}

static struct sk_buf split_part(uint16_t no, uint16_t count, int32_t total, const char *tensor) {
    struct sk_buf b = {0};
    put_header(&b, 3, 1, 3);
    put_string(&b, "split.no"), put(&b, SK_GGUF_U16, 4), put(&b, no, 2);
    put_string(&b, "split.count"), put(&b, SK_GGUF_U16, 4), put(&b, count, 2);
    put_string(&b, "split.tensors.count"), put(&b, SK_GGUF_I32, 4), put(&b, (uint32_t)total, 4);
    put_tensor(&b, tensor, 4, SK_F32, 0);
    while (b.len % 32) sk_buf_putc(&b, 0);
    for (int i = 0; i < 16; i++) sk_buf_putc(&b, (char)(no + 1));
    return b;
}

static void test_split_files_are_opened_together_and_gaps_are_named(void **state) {
    (void)state;
    char dir[] = "/tmp/skipstone-split-XXXXXX", path[512];
    assert_non_null(mkdtemp(dir));
    struct sk_buf one = split_part(0, 2, 2, "a"), two = split_part(1, 2, 2, "b");
    struct sk_gguf *g;
    struct sk_error err = {0};
    write_part(dir, "m-00001-of-00002.gguf", &one);
    snprintf(path, sizeof path, "%s/m-00001-of-00002.gguf", dir);
    assert_int_not_equal(sk_gguf_open(path, &g, &err), SK_OK);
    assert_non_null(strstr(err.message, "m-00002-of-00002.gguf"));
    write_part(dir, "m-00002-of-00002.gguf", &two);
    assert_sk_ok(sk_gguf_open(path, &g, &err));
    assert_int_equal(g->n_files, 2);
    assert_int_equal(sk_gguf_find_tensor(g, "b")->data[0], 2);
    sk_gguf_close(g);
    unlink(path);
    snprintf(path, sizeof path, "%s/m-00002-of-00002.gguf", dir);
    unlink(path);
    rmdir(dir);
    sk_buf_free(&one);
    sk_buf_free(&two);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_file_reads_back),
        cmocka_unit_test(test_damaged_headers_are_refused_with_a_reason),
        cmocka_unit_test(test_duplicate_keys_and_tensors_are_refused),
        cmocka_unit_test(test_offsets_and_sizes_cannot_leave_the_file),
        cmocka_unit_test(test_no_prefix_and_no_changed_byte_crashes),
        cmocka_unit_test(test_a_value_of_another_type_names_its_key),
        cmocka_unit_test(test_split_files_are_opened_together_and_gaps_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every entry of every kernel table this processor can run, against the scalar definition: equal bytes, not near
 * values. Inputs are random and adversarial (denormals, signed zeros, huge values, odd sizes); products run with 1
 * to 17 rows in one call against one row at a time. `--bench` times the products instead. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernels/half.h"
#include "kernels/kernels.h"

enum { MAX_ROWS = 17, GUARD = 64 };

struct tally {
    size_t passed, failed;
};

/* ---- inputs ------------------------------------------------------------------------------------------- */

static uint64_t random_state = 1;
static uint32_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}
static float uniform(void) {
    return (float)(int32_t)next_random() * 0x1p-31f;
}

enum flavour { PLAIN, WIDE, TINY, HUGE_VALUES, ZEROS, SPIKES, N_FLAVOURS };

static float random_float(enum flavour f) {
    switch (f) {
    case WIDE: return ldexpf(uniform(), (int)(next_random() % 40) - 20);
    case TINY: return ldexpf(uniform(), -(int)(next_random() % 30) - 120);
    case HUGE_VALUES: return ldexpf(uniform(), (int)(next_random() % 60) + 60);
    case ZEROS: return next_random() % 3 ? (next_random() % 2 ? 0.0f : -0.0f) : uniform();
    case SPIKES: return next_random() % 50 ? uniform() * 1e-3f : uniform() * 1e4f;
    default: return uniform();
    }
}
static void fill(float *x, size_t n, enum flavour f) {
    for (size_t i = 0; i < n; i++) x[i] = random_float(f);
}

/* A row of a weight tensor: random quants, finite scales (denormal ones among them). */
static void fill_weights(const struct sk_format *f, uint8_t *row, size_t k, enum flavour flavour) {
    const size_t blocks = k / f->block_k;
    for (size_t i = 0; i < blocks * f->block_bytes; i++) row[i] = (uint8_t)next_random();
    for (size_t b = 0; b < blocks; b++) {
        uint8_t *block = row + b * f->block_bytes;
        const float value = random_float(flavour == HUGE_VALUES ? WIDE : flavour);
        const uint16_t half = sk_float_to_half(value), second = sk_float_to_half(uniform());
        if (f->index == SK_FMT_F32) memcpy(block, &value, 4);
        if (f->index == SK_FMT_BF16) memcpy(block, (const uint8_t *)&value + 2, 2);
        if (f->index == SK_FMT_F16 || f->block_k == 32) memcpy(block, &half, 2);
        if (f->index == SK_FMT_Q4_1 || f->index == SK_FMT_Q5_1) memcpy(block + 2, &second, 2);
        if (f->block_k == 32 && next_random() % 4 == 0) { /* extreme quants */
            const size_t header = f->index == SK_FMT_Q4_1 || f->index == SK_FMT_Q5_1 ? 4 : 2;
            memset(block + header, next_random() % 2 ? 0xff : 0x80, f->block_bytes - header);
        }
    }
}

/* ---- comparisons -------------------------------------------------------------------------------------- */

static void expect_same(struct tally *t, const void *got, const void *want, size_t n_bytes, const char *isa,
                        const char *what, size_t a, size_t b) {
    if (memcmp(got, want, n_bytes) == 0) {
        t->passed++;
        return;
    }
    t->failed++;
    size_t i = 0;
    while (((const uint8_t *)got)[i] == ((const uint8_t *)want)[i]) i++;
    fprintf(stderr, "DIFFERS: %s %s (%zu, %zu) at byte %zu of %zu\n", isa, what, a, b, i, n_bytes);
}

struct product {
    struct sk_matmul m;
    uint8_t *panels;
    float *x, *y, *want;
    int8_t *q;
    struct sk_q8_scale *scales;
};

static void make_product(struct product *p, const struct sk_format *f, size_t n_panels, size_t k, size_t rows,
                         enum flavour flavour) {
    const size_t row_bytes = k / f->block_k * f->block_bytes, panel_bytes = k / f->block_k * f->panel_block_bytes;
    const size_t stride = n_panels * SK_PANEL_ROWS + 8;
    p->panels = aligned_alloc(64, sk_round_up(n_panels * panel_bytes, 64));
    p->x = calloc(rows * k, sizeof(float));
    p->q = calloc(rows * k + 1, 1);
    p->scales = calloc(rows * k / 32 + 1, sizeof *p->scales);
    p->y = calloc(rows * stride, sizeof(float));
    p->want = calloc(rows * stride, sizeof(float));
    uint8_t *data = malloc(SK_PANEL_ROWS * row_bytes);
    const uint8_t *pointers[SK_PANEL_ROWS];
    for (size_t i = 0; i < n_panels; i++) {
        for (size_t r = 0; r < SK_PANEL_ROWS; r++) {
            fill_weights(f, data + r * row_bytes, k, flavour);
            pointers[r] = data + r * row_bytes;
        }
        f->pack(pointers, k, p->panels + i * panel_bytes);
    }
    free(data);
    fill(p->x, rows * k, flavour);
    if (f->activation == SK_ACT_Q8_32)
        for (size_t r = 0; r < rows; r++)
            sk_kernels_named("scalar")->quantize_q8(p->x + r * k, k, p->q + r * k, p->scales + r * k / 32);
    p->m = (struct sk_matmul){.panels = p->panels,
                              .n_panels = n_panels,
                              .panel_bytes = panel_bytes,
                              .k = k,
                              .rows = rows,
                              .x = p->x,
                              .x_stride = k,
                              .q = p->q,
                              .scales = p->scales,
                              .y = p->y,
                              .y_stride = stride};
}

static void free_product(struct product *p) {
    free(p->panels);
    free(p->x);
    free(p->q);
    free(p->scales);
    free(p->y);
    free(p->want);
}

/* All rows in one call, by every table, against the definition called for one row at a time. */
static void check_product(struct tally *t, const struct sk_format *f, size_t n_panels, size_t k, size_t rows,
                          enum flavour flavour) {
    struct product p;
    make_product(&p, f, n_panels, k, rows, flavour);
    const size_t bytes = rows * p.m.y_stride * sizeof(float);
    for (size_t r = 0; r < rows; r++) {
        struct sk_matmul one = p.m;
        one.rows = 1;
        one.x += r * k;
        one.q += r * k;
        one.scales += r * (k / 32);
        one.y = p.want + r * p.m.y_stride;
        f->matmul(&one);
    }
    const struct sk_kernels *kernels;
    for (size_t i = 0; (kernels = sk_kernels_at(i)); i++) {
        memset(p.y, 0, bytes);
        kernels->matmul[f->index](&p.m);
        expect_same(t, p.y, p.want, bytes, kernels->name, f->name, rows, k);
    }
    free_product(&p);
}

static void check_products(struct tally *t) {
    for (int i = 0; i < SK_N_FORMATS; i++) {
        const struct sk_format *f = sk_format_at((enum sk_format_index)i);
        for (size_t rows = 1; rows <= MAX_ROWS; rows++)
            for (int flavour = 0; flavour < N_FLAVOURS; flavour++) {
                const size_t k = f->block_k == 1 ? 1 + next_random() % 100 : 32 * (1 + next_random() % 7);
                check_product(t, f, 1 + next_random() % 7, k, rows, (enum flavour)flavour);
            }
    }
}

/* Elementwise kernels, on sizes that are and are not multiples of anything. */
static void check_rows(struct tally *t, const struct sk_kernels *k, size_t n, enum flavour f) {
    const struct sk_kernels *ref = sk_kernels_named("scalar");
    float a[1100], b[1100], got[1100], want[1100];
    int8_t q1[1100], q2[1100];
    struct sk_q8_scale s1[40], s2[40];
    uint16_t h1[1100], h2[1100];
    fill(a, 1100, f);
    fill(b, 1100, f);
    memset(s1, 0, sizeof s1), memset(s2, 0, sizeof s2);
    const size_t whole = n / 32 * 32;
    k->quantize_q8(a, whole, q1, s1), ref->quantize_q8(a, whole, q2, s2);
    expect_same(t, q1, q2, whole, k->name, "quantize_q8 quants", n, (size_t)f);
    expect_same(t, s1, s2, whole / 32 * sizeof *s1, k->name, "quantize_q8 scales", n, (size_t)f);
    k->rms_norm(a, b, 1e-5f, n, got), ref->rms_norm(a, b, 1e-5f, n, want);
    expect_same(t, got, want, n * 4, k->name, "rms_norm", n, (size_t)f);
    k->silu_mul(a, b, n, got), ref->silu_mul(a, b, n, want);
    expect_same(t, got, want, n * 4, k->name, "silu_mul", n, (size_t)f);
    memcpy(got, a, sizeof a), memcpy(want, a, sizeof a);
    k->add(got, b, n), ref->add(want, b, n);
    expect_same(t, got, want, n * 4, k->name, "add", n, (size_t)f);
    memcpy(got, a, sizeof a), memcpy(want, a, sizeof a);
    k->rope_adjacent(got, b, b + n / 2, n / 2), ref->rope_adjacent(want, b, b + n / 2, n / 2);
    expect_same(t, got, want, n * 4, k->name, "rope_adjacent", n, (size_t)f);
    memcpy(got, a, sizeof a), memcpy(want, a, sizeof a);
    k->rope_halves(got, b, b + n / 2, n / 2), ref->rope_halves(want, b, b + n / 2, n / 2);
    expect_same(t, got, want, n * 4, k->name, "rope_halves", n, (size_t)f);
    k->to_half(a, n, h1), ref->to_half(a, n, h2);
    expect_same(t, h1, h2, n * 2, k->name, "to_half", n, (size_t)f);
    const float m1 = k->max(a, n), m2 = ref->max(a, n);
    expect_same(t, &m1, &m2, 4, k->name, "max", n, (size_t)f);
}

static void check_all_halves(struct tally *t, const struct sk_kernels *k) {
    /* Every half value, and its neighbours halfway to the next, through the conversion. */
    static float x[3 * 65536];
    static uint16_t got[3 * 65536], want[3 * 65536];
    size_t n = 0;
    for (uint32_t h = 0; h < 65536; h++) {
        const float v = sk_half_to_float((uint16_t)h);
        if (v != v) continue;
        x[n++] = v;
        x[n++] = sk_bits_to_float(sk_float_to_bits(v) + 0x1000);
        x[n++] = sk_bits_to_float(sk_float_to_bits(v) + 0xfff);
    }
    k->to_half(x, n, got), sk_kernels_named("scalar")->to_half(x, n, want);
    expect_same(t, got, want, n * 2, k->name, "to_half, all values", n, 0);
}

static void check_attention(struct tally *t, const struct sk_kernels *k, size_t head_dim, size_t n_queries,
                            enum flavour f) {
    const size_t n_kv = head_dim * SK_TILE, n_out = n_queries * head_dim;
    uint16_t *keys = calloc(n_kv, 2), *values = calloc(n_kv, 2);
    float *q = calloc(n_out, 4), *scratch = calloc(sk_attention_scratch(head_dim, head_dim, n_queries), 4);
    float *got = calloc(n_out, 4), *want = calloc(n_out, 4), m1[64], m2[64], l1[64], l2[64];
    const float *queries[64];
    uint8_t first[64], count[64];
    for (size_t i = 0; i < n_kv; i++) {
        keys[i] = sk_float_to_half(random_float(f));
        values[i] = sk_float_to_half(random_float(f));
    }
    fill(q, n_out, f);
    for (size_t i = 0; i < n_queries; i++) {
        queries[i] = q + i * head_dim;
        first[i] = (uint8_t)(next_random() % 3 ? 0 : next_random() % SK_TILE);
        count[i] = (uint8_t)(1 + next_random() % (unsigned)(SK_TILE - first[i]));
    }
    struct sk_attention_tile tile = {keys,  values, head_dim, head_dim, n_queries, queries, first,
                                     count, 0.125f, scratch,  m1,       l1,        got};
    k->attention_tile(&tile);
    tile.max = m2, tile.sum = l2, tile.out = want;
    sk_kernels_named("scalar")->attention_tile(&tile);
    expect_same(t, m1, m2, n_queries * 4, k->name, "attention max", n_queries, head_dim);
    expect_same(t, l1, l2, n_queries * 4, k->name, "attention sum", n_queries, head_dim);
    expect_same(t, got, want, n_out * 4, k->name, "attention values", n_queries, head_dim);
    float ma = 0.5f, mb = 0.5f, la = 2.0f, lb = 2.0f;
    k->attention_merge(&ma, &la, got, m1[0], l1[0], want, head_dim);
    float *again = calloc(head_dim, 4);
    memcpy(again, want, head_dim * 4);
    sk_kernels_named("scalar")->attention_merge(&mb, &lb, again, m1[0], l1[0], want, head_dim);
    expect_same(t, got, again, head_dim * 4, k->name, "attention_merge", n_queries, head_dim);
    expect_same(t, &la, &lb, 4, k->name, "attention_merge sum", n_queries, head_dim);
    free(again), free(keys), free(values), free(q), free(scratch), free(got), free(want);
}

/* ---- timing ------------------------------------------------------------------------------------------- */

/* The best of several runs over weights larger than the caches, in milliseconds. */
static double time_product(const struct sk_kernels *k, const struct sk_format *f, struct product *p, size_t rows) {
    double best = 1e9;
    p->m.rows = rows;
    for (int run = 0; run < 5; run++) {
        const uint64_t start = sk_now_ns();
        k->matmul[f->index](&p->m);
        const double ms = sk_seconds_since(start) * 1e3;
        if (ms < best) best = ms;
    }
    return best;
}

static void bench(const char *isa, const char *format) {
    static const size_t row_counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 64};
    const struct sk_kernels *kernels;
    for (size_t i = 0; (kernels = sk_kernels_at(i)); i++) {
        if (strcmp(kernels->name, "scalar") == 0 || (isa && strcmp(isa, kernels->name) != 0)) continue;
        for (int j = 0; j < SK_N_FORMATS; j++) {
            const struct sk_format *f = sk_format_at((enum sk_format_index)j);
            if (format && strcmp(format, f->name) != 0) continue;
            struct product p;
            const size_t k = 2048, n_panels = 2048;
            make_product(&p, f, n_panels, k, 64, PLAIN);
            const double bytes = (double)n_panels * (double)p.m.panel_bytes,
                         macs = (double)n_panels * SK_PANEL_ROWS * (double)k;
            const double one = time_product(kernels, f, &p, 1);
            printf("%-7s %-5s one row %6.2f ms, %5.1f GB/s; rows: time/one row (G multiply-adds/s)", kernels->name,
                   f->name, one, bytes / one / 1e6);
            for (size_t r = 1; r < sizeof row_counts / sizeof *row_counts; r++) {
                const double ms = time_product(kernels, f, &p, row_counts[r]);
                printf("  %zu: %.2f (%.0f)", row_counts[r], ms / one, macs * (double)row_counts[r] / ms / 1e6);
            }
            printf("\n");
            free_product(&p);
        }
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
        return 0;
    }
    struct tally t = {0};
    check_products(&t);
    const struct sk_kernels *k;
    for (size_t i = 0; (k = sk_kernels_at(i)); i++) {
        for (int f = 0; f < N_FLAVOURS; f++) {
            for (size_t n = 2; n <= 1024; n = n * 3 / 2 + 1) check_rows(&t, k, n, (enum flavour)f);
            check_rows(&t, k, 576, (enum flavour)f);
            for (size_t n_queries = 1; n_queries <= 17; n_queries += 3)
                for (size_t d = 8; d <= 128; d += 24) check_attention(&t, k, d, n_queries, (enum flavour)f);
        }
        check_all_halves(&t, k);
    }
    printf("%zu passed, %zu failed\n", t.passed, t.failed);
    return t.failed != 0;
}

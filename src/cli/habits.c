#include "habits.h"

#include <stdint.h>
#include <string.h>

struct pair {
    const char *word, *meaning;
};

/* Names of llama.cpp, vLLM and transformers. Words of one dash (-md) come without it, too. */
static const struct pair options[] = {
    {"temp", "temperature"},
    {"repeat-penalty", "repetition-penalty"},
    {"repeat-last-n", "penalty-window"},
    {"typical", "typical-p"},
    {"n-predict", "max-tokens"},
    {"predict", "max-tokens"},
    {"max-new-tokens", "max-tokens"},
    {"ctx-size", "context"},
    {"max-model-len", "context"},
    {"prompt-file", "file"},
    {"system-prompt", "system"},
    {"sys", "system"},
    {"ignore-eos", "ignore-end"},
    {"chat-template-file", "chat-template"},
    {"model-draft", "draft-model"},
    {"md", "draft-model"},
    {"draft", "draft-max"},
    {"draft-n", "draft-max"},
    {"draft-p-min", "draft-min-p"},
};

static const char no_gpu[] = "is for GPUs; Skipstone computes on the CPU, so there is nothing to offload: leave it out";
static const char one_attention[] = "chooses a way of computing attention; Skipstone has one, always on: leave it out";
static const char own_memory[] =
    "is about how a file lies in memory; Skipstone rearranges the weights as it loads them: leave it out";
static const struct pair refused[] = {
    {"ngl", no_gpu},
    {"gpu-layers", no_gpu},
    {"n-gpu-layers", no_gpu},
    {"ngld", no_gpu},
    {"gpu-layers-draft", no_gpu},
    {"n-gpu-layers-draft", no_gpu},
    {"mg", no_gpu},
    {"main-gpu", no_gpu},
    {"sm", no_gpu},
    {"split-mode", no_gpu},
    {"ts", no_gpu},
    {"tensor-split", no_gpu},
    {"dev", no_gpu},
    {"device", no_gpu},
    {"gpu-memory-utilization", no_gpu},
    {"fa", one_attention},
    {"flash-attn", one_attention},
    {"mlock", own_memory},
    {"no-mmap", own_memory},
};

static const char *look_up(const struct pair *pairs, size_t n_pairs, const char *word, size_t n) {
    for (size_t i = 0; i < n_pairs; i++)
        if (strlen(pairs[i].word) == n && memcmp(pairs[i].word, word, n) == 0) return pairs[i].meaning;
    return NULL;
}

const char *habit_option(const char *word, size_t n) {
    return look_up(options, sizeof options / sizeof *options, word, n);
}

const char *habit_refusal(const char *word, size_t n) {
    return look_up(refused, sizeof refused / sizeof *refused, word, n);
}

enum { MAX_WORD = 40 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t word_distance(const char *a, size_t n_a, const char *b) {
    size_t d[MAX_WORD + 1][MAX_WORD + 1];
    const size_t n_b = strlen(b);
    if (n_a > MAX_WORD || n_b > MAX_WORD) return SIZE_MAX;
    for (size_t i = 0; i <= n_a; i++) d[i][0] = i;
    for (size_t j = 0; j <= n_b; j++) d[0][j] = j;
    for (size_t i = 1; i <= n_a; i++)
        for (size_t j = 1; j <= n_b; j++) {
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n_a][n_b];
}

const char *habit_nearest(const char *word, size_t n, size_t *distance) {
    const char *nearest = NULL;
    *distance = SIZE_MAX;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const size_t d = word_distance(word, n, options[i].word);
        if (d < *distance) *distance = d, nearest = options[i].meaning;
    }
    return nearest;
}

int may_be_slip(size_t distance, size_t n) {
    const size_t most = n / 3 < 1 ? 1 : n / 3 > 3 ? 3 : n / 3;
    return n > 1 && distance <= most;
}

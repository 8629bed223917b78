#include "sampling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t NOT_GIVEN = INT64_MIN;
static const char file_keys[] = "general.sampling.";

enum field_kind { FIELD_NUMBER, FIELD_TOP_K, FIELD_WINDOW };

/* One parameter: its place in struct sampling_options and in struct sk_sampling_params. The keys are those that
 * llama.cpp's converter writes (its pull request 17120). */
struct field {
    const char *name, *label, *key; /* in JSON; for people; in the file, NULL if there is none */
    enum field_kind kind;
    size_t given, param;
};
static const struct field fields[N_SAMPLING_FIELDS] = {
    {"temperature", "temperature", "general.sampling.temp", FIELD_NUMBER,
     offsetof(struct sampling_options, temperature), offsetof(struct sk_sampling_params, temperature)},
    {"top_k", "top-k", "general.sampling.top_k", FIELD_TOP_K, offsetof(struct sampling_options, top_k),
     offsetof(struct sk_sampling_params, top_k)},
    {"top_p", "top-p", "general.sampling.top_p", FIELD_NUMBER, offsetof(struct sampling_options, top_p),
     offsetof(struct sk_sampling_params, top_p)},
    {"min_p", "min-p", "general.sampling.min_p", FIELD_NUMBER, offsetof(struct sampling_options, min_p),
     offsetof(struct sk_sampling_params, min_p)},
    {"typical_p", "typical-p", NULL, FIELD_NUMBER, offsetof(struct sampling_options, typical_p),
     offsetof(struct sk_sampling_params, typical_p)},
    {"repetition_penalty", "repetition penalty", "general.sampling.penalty_repeat", FIELD_NUMBER,
     offsetof(struct sampling_options, repetition_penalty), offsetof(struct sk_sampling_params, repetition_penalty)},
    {"presence_penalty", "presence penalty", NULL, FIELD_NUMBER, offsetof(struct sampling_options, presence_penalty),
     offsetof(struct sk_sampling_params, presence_penalty)},
    {"frequency_penalty", "frequency penalty", NULL, FIELD_NUMBER, offsetof(struct sampling_options, frequency_penalty),
     offsetof(struct sk_sampling_params, frequency_penalty)},
    {"penalty_window", "penalty window", "general.sampling.penalty_last_n", FIELD_WINDOW,
     offsetof(struct sampling_options, penalty_window), offsetof(struct sk_sampling_params, penalty_window)},
};
static const char *const source_names[] = {"default", "file", "option"};

struct sampling_options sampling_unset(void) {
    return (struct sampling_options){.temperature = NAN,
                                     .top_p = NAN,
                                     .min_p = NAN,
                                     .typical_p = NAN,
                                     .repetition_penalty = NAN,
                                     .presence_penalty = NAN,
                                     .frequency_penalty = NAN,
                                     .top_k = NOT_GIVEN,
                                     .penalty_window = NOT_GIVEN,
                                     .params = sk_sampling_defaults()};
}

void sampling_option_rows(struct option_list *list, struct sampling_options *s) {
    const struct option rows[] = {
        {"temperature", 0, OPTION_FLOAT, &s->temperature, "X",
         "0 takes the most likely token (default: the file's, else 0.8)"},
        {"top-k", 0, OPTION_LIMIT, &s->top_k, "N", "only the N most likely tokens; 0 = off (the file's, else 40)"},
        {"top-p", 0, OPTION_FLOAT, &s->top_p, "X",
         "only the most likely tokens of mass X; 1 = off (the file's, else 0.95)"},
        {"min-p", 0, OPTION_FLOAT, &s->min_p, "X",
         "only tokens at least X as likely as the first; 0 = off (the file's, else 0.05)"},
        {"typical-p", 0, OPTION_FLOAT, &s->typical_p, "X", "locally typical sampling; 1 = off (default 1)"},
        {"repetition-penalty", 0, OPTION_FLOAT, &s->repetition_penalty, "X",
         "divides logits of tokens seen; 1 = off (the file's, else 1)"},
        {"presence-penalty", 0, OPTION_FLOAT, &s->presence_penalty, "X", "taken off tokens seen; 0 = off (default 0)"},
        {"frequency-penalty", 0, OPTION_FLOAT, &s->frequency_penalty, "X",
         "taken off for each time seen; 0 = off (default 0)"},
        {"penalty-window", 0, OPTION_LIMIT, &s->penalty_window, "N",
         "last tokens that penalties look at; -1 = all, 0 = none (the file's, else 64)"},
        {"logit-bias", 0, OPTION_STRINGS, &s->bias, "ID=X", "adds X to a token's logit; may be repeated"},
        {"seed", 's', OPTION_SEED, &s->seed, "N", "of the random draws (default: drawn, and shown)"},
        {"stop", 0, OPTION_STRINGS, &s->stops, "TEXT", "ends the answer before TEXT; may be repeated"},
        {0},
    };
    options_add(list, rows);
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* NAN if no option was given. */
static double given_value(const struct sampling_options *s, const struct field *f) {
    const char *at = (const char *)s + f->given;
    if (f->kind == FIELD_NUMBER) return (double)*(const float *)at;
    return *(const int64_t *)at == NOT_GIVEN ? (double)NAN : (double)*(const int64_t *)at;
}

static double param_value(const struct sk_sampling_params *p, const struct field *f) {
    const char *at = (const char *)p + f->param;
    if (f->kind == FIELD_NUMBER) return (double)*(const float *)at;
    const uint32_t n = *(const uint32_t *)at;
    return f->kind == FIELD_WINDOW && n == SK_PENALIZE_ALL ? -1.0 : (double)n;
}

/* A negative top-k is none, a negative window all. */
static void set_param(struct sk_sampling_params *p, const struct field *f, double value) {
    char *at = (char *)p + f->param;
    if (f->kind == FIELD_NUMBER) {
        *(float *)at = (float)value;
        return;
    }
    const uint32_t negative = f->kind == FIELD_WINDOW ? SK_PENALIZE_ALL : 0;
    *(uint32_t *)at = value < 0.0 ? negative : (uint32_t)value;
}

/* ---- where they come from ------------------------------------------------------------------------------- */

static sk_status read_bias(const struct sampling_options *s, struct sk_logit_bias *bias, struct sk_error *err) {
    for (size_t i = 0; i < s->bias.n; i++) {
        char *end;
        const char *text = s->bias.items[i];
        const long id = strtol(text, &end, 10);
        const char *value = *end == '=' ? end + 1 : "";
        bias[i].token = id >= 0 && id <= INT32_MAX ? (int32_t)id : -1;
        bias[i].bias = strtof(value, &end);
        if (!*value || *end) return sk_fail(err, SK_EINVAL, "--logit-bias needs ID=NUMBER, not '%s'", text);
    }
    return SK_OK;
}

sk_status sampling_prepare(struct sampling_options *s, struct sk_logit_bias *bias, struct sk_error *err) {
    const sk_status st = read_bias(s, bias, err);
    if (st) return st;
    for (size_t i = 0; i < N_SAMPLING_FIELDS; i++) {
        const double value = given_value(s, &fields[i]);
        if (isnan(value)) continue;
        set_param(&s->params, &fields[i], value);
        s->from[i] = SAMPLING_OPTION;
    }
    s->params.bias = bias;
    s->params.n_bias = s->bias.n;
    if (!s->seed.given) s->seed = (struct option_seed){true, sk_sampling_draw_seed()};
    s->params.seed = s->seed.value;
    return sk_sampling_check(&s->params, INT32_MAX, err); /* token ids are checked when the vocabulary is known */
}

/* Puts the file's value into *p, if it has one that is possible. */
static sk_status take_key(struct sk_sampling_params *p, const struct field *f, const struct sk_gguf *g,
                          struct sk_error *err) {
    struct sk_sampling_params with = *p;
    float value;
    sk_status st = sk_gguf_f32(g, f->key, 0.0f, &value, err);
    if (st) return st;
    if (f->kind != FIELD_NUMBER && !(value >= -1.0f && value < 1e9f && truncf(value) == value))
        return sk_fail(err, SK_EINVAL, "%s is %g: whole numbers from -1 are possible", f->label, (double)value);
    set_param(&with, f, (double)value);
    if ((st = sk_sampling_check(&with, INT32_MAX, err))) return st;
    *p = with;
    return SK_OK;
}

void sampling_from_file(struct sampling_options *s, const struct sk_gguf *g, const char *path) {
    struct sk_error err;
    for (size_t i = 0; i < N_SAMPLING_FIELDS; i++) {
        const struct field *f = &fields[i];
        if (s->from[i] == SAMPLING_OPTION || !f->key || !sk_gguf_find(g, f->key)) continue;
        if (take_key(&s->params, f, g, &err))
            fprintf(stderr, "skipstone: %s: the key '%s' is not used, %g is: %s\n", path, f->key,
                    param_value(&s->params, f), err.message);
        else
            s->from[i] = SAMPLING_FILE;
    }
}

/* ---- showing them --------------------------------------------------------------------------------------- */

/* A float's value as the shortest number that people would write for it: 0.2, not 0.200000003. */
static double written(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", value);
    return strtod(text, NULL);
}

json_t *sampling_json(const struct sampling_options *s) {
    json_t *o = json_object(), *from = json_object();
    for (size_t i = 0; i < N_SAMPLING_FIELDS; i++) {
        const double value = param_value(&s->params, &fields[i]);
        json_object_set_new(o, fields[i].name,
                            fields[i].kind == FIELD_NUMBER ? json_real(written(value))
                                                           : json_integer((json_int_t)value));
        json_object_set_new(from, fields[i].name, json_string(source_names[s->from[i]]));
    }
    json_object_set_new(o, "from", from);
    return o;
}

static bool is_off(const struct sampling_options *s, const struct field *f) {
    struct sk_sampling_params with = s->params;
    const struct sk_sampling_params plain = {
        .top_p = 1.0f, .typical_p = 1.0f, .repetition_penalty = 1.0f, .penalty_window = SK_PENALIZE_ALL};
    if (f->kind == FIELD_WINDOW) return !sk_sampling_looks_back(&with);
    return f->param != offsetof(struct sk_sampling_params, temperature) &&
           param_value(&s->params, f) == param_value(&plain, f);
}

void sampling_line(const struct sampling_options *s, char *out, size_t cap) {
    size_t n = 0;
    for (size_t i = 0; i < N_SAMPLING_FIELDS && n < cap; i++) {
        if (is_off(s, &fields[i])) continue;
        const int m = snprintf(out + n, cap - n, "%s%s %g (%s)", n ? ", " : "", fields[i].label,
                               param_value(&s->params, &fields[i]), source_names[s->from[i]]);
        n += m > 0 ? (size_t)m : 0;
    }
}

/* ---- the file's keys ------------------------------------------------------------------------------------ */

bool sampling_uses_key(const char *key) {
    for (size_t i = 0; i < N_SAMPLING_FIELDS; i++)
        if (fields[i].key && strcmp(fields[i].key, key) == 0) return true;
    return false;
}

json_t *sampling_file_json(const struct sk_gguf *g) {
    json_t *o = json_object();
    for (size_t i = 0; i < g->n_values; i++) {
        const struct sk_gguf_value *v = &g->values[i];
        struct sk_str text = {"", 0};
        char key[64];
        float number;
        if (v->key.n >= sizeof key || strncmp(v->key.p, file_keys, sizeof file_keys - 1) != 0) continue;
        memcpy(key, v->key.p, v->key.n);
        key[v->key.n] = '\0';
        if (sk_gguf_f32(g, key, 0.0f, &number, NULL) == SK_OK)
            json_object_set_new(o, key,
                                v->type == SK_GGUF_F32 || v->type == SK_GGUF_F64 ? json_real(written((double)number))
                                                                                 : json_integer((json_int_t)number));
        else if (sk_gguf_string(g, key, text, &text, NULL) == SK_OK)
            json_object_set_new(o, key, json_stringn(text.p, text.n));
    }
    return o;
}

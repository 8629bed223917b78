#include "answer.h"

#include <signal.h>
#include <stdio.h>

/* Set by the first Ctrl-C while an answer runs; the second one kills as usual. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
    interrupted = 1;
    signal(signal_number, SIG_DFL);
}

struct sink {
    struct answer *out;
    answer_show *show;
    FILE *trace;
};

static bool take_token(void *ctx, const struct sk_token_event *e) {
    const struct sink *s = ctx;
    if (!sk_tokens_push(&s->out->tokens, e->token)) return false;
    sk_buf_str(&s->out->text, e->text);
    if (s->show && e->text.n) s->show(e->text, e->origin);
    return !interrupted;
}

static void take_window(void *ctx, const struct sk_window_event *e) {
    const struct sink *s = ctx;
    if (s->trace) spec_trace_window(s->trace, e);
}

sk_status answer_run(struct model *m, struct sk_target_session *session, const struct sk_request *request,
                     struct spec_options *spec, answer_show *show, struct answer *out, struct sk_error *err) {
    struct sink sink = {out, show, spec ? spec->trace_file : NULL};
    struct sk_request r = *request;
    struct sk_generation *g;
    r.on_token = take_token;
    r.on_window = take_window;
    r.ctx = &sink;
    sk_status st = spec ? spec_fill_request(spec, &r, err) : SK_OK;
    if (st) {
        if (session) m->target->ops->close(m->target, session);
        return st;
    }
    interrupted = 0;
    struct sigaction handler = {.sa_handler = on_interrupt}, before;
    st = session ? sk_engine_add_to(m->engine, session, &r, &g, err) : sk_engine_add(m->engine, &r, &g, err);
    if (st) return st;
    sigaction(SIGINT, &handler, &before);
    while (sk_engine_step(m->engine))
        if (interrupted) sk_generation_cancel(g);
    sigaction(SIGINT, &before, NULL);
    out->finish = g->finish;
    out->stats = g->stats;
    if (g->speculation) out->speculation = *sk_speculation_stats(g->speculation);
    spec_report(&out->speculation);
    const struct sk_error failure = g->error;
    out->session = sk_engine_detach(m->engine, g);
    return out->finish == SK_FINISH_ERROR ? sk_fail(err, failure.status, "%s", failure.message) : SK_OK;
}

void answer_free(struct answer *a) {
    sk_tokens_free(&a->tokens);
    sk_buf_free(&a->text);
}

double per_second(size_t n, double seconds) {
    return seconds > 0.0 ? (double)n / seconds : 0.0;
}

double decode_rate(const struct sk_generation_stats *s) {
    return per_second(s->n_output > 1 ? s->n_output - 1 : 0, s->decode_s);
}
double prefill_rate(const struct sk_generation_stats *s) {
    return per_second(s->n_prompt - s->n_kept, s->prefill_s);
}

void answer_line(const struct answer *a, uint64_t seed, bool sampled, char *out, size_t cap) {
    const struct sk_generation_stats *s = &a->stats;
    char seed_text[40] = "", kept[48] = "", rate[48] = "", spec[256];
    if (sampled) snprintf(seed_text, sizeof seed_text, ", seed %llu", (unsigned long long)seed);
    if (s->n_kept) snprintf(kept, sizeof kept, " (%zu kept)", s->n_kept);
    if (s->n_output > 1) snprintf(rate, sizeof rate, ", %.1f tokens/s", decode_rate(s));
    spec_line(&a->speculation, spec, sizeof spec);
    snprintf(out, cap, "%zu %s%s%s; prompt %zu %s%s, %.1f tokens/s; %s%s", s->n_output,
             plural(s->n_output, "token", "tokens"), rate, spec, s->n_prompt, plural(s->n_prompt, "token", "tokens"),
             kept, prefill_rate(s), sk_finish_name(a->finish), seed_text);
}

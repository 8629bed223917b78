/* Plugins as shared libraries. Each generation's state lives on a thread of its own, so that a call which takes too
 * long need not be waited for: the host goes on without it, and looks again at the next proposal. */
#include "engine/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"
#include "engine/plugin_internal.h"

/* ---- both kinds ---------------------------------------------------------------------------------------- */

sk_status sk_plugin_open(const char *path, size_t timeout_ms, struct sk_plugin **out, struct sk_error *err) {
    struct stat info;
    sk_status st = SK_OK;
    if (stat(path, &info) != 0) return sk_fail(err, SK_EIO, "cannot open plugin '%s': %s", path, strerror(errno));
    struct sk_plugin *p = sk_calloc(1, sizeof *p);
    if (p) p->path = strdup(path);
    if (!p || !p->path) {
        free(p);
        return sk_fail_memory(err, sizeof *p, "a plugin");
    }
    p->timeout_ms = timeout_ms;
    if (S_ISSOCK(info.st_mode)) {
        *out = p;
        return SK_OK;
    }
    p->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct skipstone_proposer_api *(*get)(void) = NULL;
    if (p->library) *(void **)&get = dlsym(p->library, "skipstone_proposer");
    if (!p->library)
        st = sk_fail(err, SK_EINVAL, "cannot load plugin '%s': %s", path, dlerror());
    else if (!get || !(p->api = get()))
        st = sk_fail(err, SK_EINVAL, "plugin '%s' has no skipstone_proposer()", path);
    else if (p->api->abi != SKIPSTONE_PROPOSER_ABI)
        st = sk_fail(err, SK_EINVAL, "plugin '%s' was built for ABI %u; this is %u", path, p->api->abi,
                     SKIPSTONE_PROPOSER_ABI);
    if (st)
        sk_plugin_close(p);
    else
        *out = p;
    return st;
}

void sk_plugin_close(struct sk_plugin *p) {
    if (!p) return;
    if (p->library) dlclose(p->library);
    free(p->path);
    free(p);
}

sk_status sk_plugin_proposer_create(struct sk_plugin *p, size_t n_prompt, struct sk_proposer **out,
                                    struct sk_error *err) {
    return p->library ? sk_library_proposer_create(p, n_prompt, out, err)
                      : sk_socket_proposer_create(p, n_prompt, out, err);
}

size_t sk_plugin_take(const struct skipstone_proposal *p, size_t limit, struct sk_draft *out) {
    if (p->n_tokens == 0) return 0;
    if (p->n_tokens > SKIPSTONE_MAX_PROPOSAL || p->n_decision_id < 1 || p->n_decision_id > SKIPSTONE_MAX_DECISION_ID)
        return SK_PROPOSE_FAILED;
    const size_t n = p->n_tokens < limit ? p->n_tokens : limit;
    for (size_t i = 0; i < n; i++) out[i] = (struct sk_draft){p->tokens[i], SK_PLUGIN, (uint8_t)(i < 15 ? i : 15)};
    return n;
}

struct skipstone_receipt sk_plugin_receipt(const struct sk_receipt *r, int32_t tokens[SK_MAX_WINDOW],
                                           const char *decision_id, size_t n_decision_id) {
    for (size_t i = 0; i < r->n_proposal; i++) tokens[i] = r->proposal[i].token;
    return (struct skipstone_receipt){.decision_id = decision_id,
                                      .n_decision_id = n_decision_id,
                                      .disposition = (enum skipstone_disposition)r->disposition,
                                      .proposal = tokens,
                                      .n_proposal = r->n_proposal,
                                      .n_rows = r->n_rows,
                                      .n_accepted = r->n_accepted,
                                      .n_committed = r->n_committed,
                                      .predicted = r->predicted,
                                      .n_predicted = r->n_predicted,
                                      .next_token = r->next_token,
                                      .base_position = r->base_position,
                                      .position_after_verification = r->position_after_verification,
                                      .canonical_position = r->canonical_position,
                                      .trimmed_rows = r->trimmed_rows,
                                      .propose_s = r->propose_s,
                                      .verify_s = r->verify_s,
                                      .repair_s = r->repair_s,
                                      .total_s = r->total_s};
}

/* ---- the thread of one generation ---------------------------------------------------------------------- */

enum job { JOB_NONE, JOB_PROPOSE, JOB_OBSERVE, JOB_QUIT };

/* Shared by the host and the thread; whoever lets go last frees it. While `job` is not JOB_NONE the thread owns the
 * fields below the line. */
struct worker {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const struct skipstone_proposer_api *api;
    void *library; /* a reference of its own: a thread that hangs keeps its code */
    enum job job;
    bool host_gone, thread_gone;
    /* ---- */
    void *state;
    int32_t *tokens; /* its own copy: the host's may be gone when a slow call comes to read it */
    size_t n_tokens, cap_tokens, n_prompt, budget;
    struct skipstone_proposal proposal;
    int status;
    struct sk_receipt receipt; /* with copies of what it points to */
    struct sk_draft drafts[SK_MAX_WINDOW];
    int32_t predicted[SK_MAX_WINDOW];
    char decision_id[SKIPSTONE_MAX_DECISION_ID];
    size_t n_decision_id;
};

struct library_proposer {
    struct sk_proposer proposer; /* must be first */
    struct worker *worker;
    size_t timeout_ms;
    char decision_id[SKIPSTONE_MAX_DECISION_ID]; /* of the last proposal */
    size_t n_decision_id;
};

static void free_worker(struct worker *w) {
    void *library = w->library;
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w->tokens);
    free(w);
    if (library) dlclose(library);
}

static void run_job(struct worker *w, enum job job) {
    if (job == JOB_PROPOSE) {
        const struct skipstone_proposal_request r = {w->tokens, w->n_tokens, w->n_prompt, (uint32_t)(w->n_tokens - 1),
                                                     w->budget};
        w->proposal.n_tokens = w->proposal.n_decision_id = 0;
        w->status = w->state ? w->api->propose(w->state, &r, &w->proposal) : -1;
    } else if (job == JOB_OBSERVE && w->state && w->api->observe) {
        int32_t tokens[SK_MAX_WINDOW];
        const struct skipstone_receipt r = sk_plugin_receipt(&w->receipt, tokens, w->decision_id, w->n_decision_id);
        w->api->observe(w->state, &r);
    }
}

static void *worker_main(void *arg) {
    struct worker *w = arg;
    bool last;
    w->state = w->api->open();
    pthread_mutex_lock(&w->lock);
    while (w->job != JOB_QUIT) {
        if (w->job == JOB_NONE) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        const enum job job = w->job;
        pthread_mutex_unlock(&w->lock);
        run_job(w, job);
        pthread_mutex_lock(&w->lock);
        if (w->job != JOB_QUIT) w->job = w->host_gone ? JOB_QUIT : JOB_NONE;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    if (w->state) w->api->close(w->state);
    pthread_mutex_lock(&w->lock);
    w->thread_gone = true;
    last = w->host_gone;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (last) free_worker(w);
    return NULL;
}

/* Waits until the thread has nothing to do, at most so long. The lock is held. */
static bool wait_idle(struct worker *w, size_t timeout_ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(timeout_ms / 1000);
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    while (w->job != JOB_NONE)
        if (pthread_cond_timedwait(&w->changed, &w->lock, &until) == ETIMEDOUT) return w->job == JOB_NONE;
    return true;
}

static size_t propose(struct sk_proposer *proposer, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct library_proposer *p = (struct library_proposer *)proposer;
    struct worker *w = p->worker;
    size_t n = SK_PROPOSE_FAILED;
    pthread_mutex_lock(&w->lock);
    /* A receipt may still be on its way through; a call that overran last time may have ended by now. */
    if (!wait_idle(w, p->timeout_ms)) goto out;
    if (!sk_grow(&w->tokens, &w->cap_tokens, r->n_committed, sizeof *w->tokens)) goto out;
    if (w->n_tokens > r->n_committed) w->n_tokens = 0; /* never: contexts only grow */
    memcpy(w->tokens + w->n_tokens, r->tokens + w->n_tokens, (r->n_committed - w->n_tokens) * sizeof *w->tokens);
    w->n_tokens = r->n_committed;
    w->budget = r->limit;
    w->job = JOB_PROPOSE;
    pthread_cond_broadcast(&w->changed);
    if (!wait_idle(w, p->timeout_ms) || w->status != 0) goto out;
    n = sk_plugin_take(&w->proposal, r->limit, out);
    if (n && n != SK_PROPOSE_FAILED) {
        p->n_decision_id = w->proposal.n_decision_id;
        memcpy(p->decision_id, w->proposal.decision_id, p->n_decision_id);
    }
out:
    pthread_mutex_unlock(&w->lock);
    return n;
}

static void observe(struct sk_proposer *proposer, const struct sk_receipt *r) {
    struct library_proposer *p = (struct library_proposer *)proposer;
    struct worker *w = p->worker;
    if (!r->n_proposal || r->proposal[0].kind != SK_PLUGIN || !w->api->observe) return;
    pthread_mutex_lock(&w->lock);
    if (wait_idle(w, p->timeout_ms)) {
        w->receipt = *r;
        memcpy(w->drafts, r->proposal, r->n_proposal * sizeof *w->drafts);
        memcpy(w->predicted, r->predicted, r->n_predicted * sizeof *w->predicted);
        w->receipt.proposal = w->drafts;
        w->receipt.predicted = w->predicted;
        memcpy(w->decision_id, p->decision_id, p->n_decision_id);
        w->n_decision_id = p->n_decision_id;
        w->job = JOB_OBSERVE;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
}

static void destroy(struct sk_proposer *proposer) {
    struct library_proposer *p = (struct library_proposer *)proposer;
    struct worker *w = p->worker;
    pthread_mutex_lock(&w->lock);
    wait_idle(w, p->timeout_ms); /* the last receipt */
    w->job = JOB_QUIT;
    pthread_cond_broadcast(&w->changed);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    while (!w->thread_gone && pthread_cond_timedwait(&w->changed, &w->lock, &until) != ETIMEDOUT) {
    }
    const bool last = w->thread_gone;
    w->host_gone = true;
    pthread_mutex_unlock(&w->lock);
    if (last) free_worker(w);
    free(p);
}

static const struct sk_proposer_ops library_ops = {SK_PLUGIN, propose, observe, destroy};

sk_status sk_library_proposer_create(struct sk_plugin *plugin, size_t n_prompt, struct sk_proposer **out,
                                     struct sk_error *err) {
    struct library_proposer *p = sk_calloc(1, sizeof *p);
    struct worker *w = sk_calloc(1, sizeof *w);
    pthread_attr_t attributes;
    pthread_t thread;
    if (!p || !w) {
        free(p);
        free(w);
        return sk_fail_memory(err, sizeof *w, "a plugin's state");
    }
    *p = (struct library_proposer){.proposer = {&library_ops}, .worker = w, .timeout_ms = plugin->timeout_ms};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->api = plugin->api;
    w->library = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL);
    w->n_prompt = n_prompt;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const int failed = pthread_create(&thread, &attributes, worker_main, w);
    pthread_attr_destroy(&attributes);
    if (failed) {
        free_worker(w);
        free(p);
        return sk_fail(err, SK_ENOMEM, "the system refused a thread for plugin '%s'", plugin->path);
    }
    *out = &p->proposer;
    return SK_OK;
}

#include "bench_wall.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

extern char **environ;

const size_t wall_lengths[N_WALL_LENGTHS] = {16, 64, 256};

enum { MAX_ARGUMENTS = 32, MAX_RUNS = 64 };

struct command {
    const char *arguments[MAX_ARGUMENTS];
    size_t n;
};

static void add(struct command *c, const char *name, const char *value) {
    if (c->n + 3 > MAX_ARGUMENTS) return;
    c->arguments[c->n++] = name;
    if (value) c->arguments[c->n++] = value;
}

/* Seconds from its start to its end. What it prints is dropped; what it complains of is not. */
static sk_status time_process(const struct command *c, double *seconds, struct sk_error *err) {
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    char *arguments[MAX_ARGUMENTS + 1] = {0};
    for (size_t i = 0; i < c->n; i++) arguments[i] = (char *)(uintptr_t)c->arguments[i]; /* only read */
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const uint64_t start = sk_now_ns();
    const int failed = posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) return sk_fail(err, SK_EIO, "cannot start '%s run': %s", c->arguments[0], strerror(failed));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    *seconds = sk_seconds_since(start);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return SK_OK;
    return sk_fail(err, SK_EIO, "'%s run' failed", c->arguments[0]);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

static sk_status time_prompt(const struct model_options *mo, const struct workload_prompt *p, size_t length,
                             size_t runs, struct wall *out, struct sk_error *err) {
    char most[24], context[24], threads[24], temperature[24];
    struct command c = {.arguments = {"skipstone", "run", "--json", "-m", mo->model}, .n = 5};
    double times[2][MAX_RUNS];
    sk_status st = SK_OK;
    snprintf(most, sizeof most, "%zu", length);
    snprintf(context, sizeof context, "%zu", mo->context);
    snprintf(threads, sizeof threads, "%zu", mo->n_threads);
    snprintf(temperature, sizeof temperature, "%.7g", (double)p->temperature);
    add(&c, "-p", p->text);
    add(&c, "-n", most);
    add(&c, "--temperature", temperature);
    add(&c, "--seed", "1");
    if (p->raw) add(&c, "--raw", NULL);
    if (p->stop[0]) add(&c, "--stop", p->stop);
    if (mo->n_threads) add(&c, "-t", threads);
    if (mo->context) add(&c, "-c", context);
    if (mo->isa) add(&c, "--isa", mo->isa);
    if (mo->mtp_file) add(&c, "--mtp", mo->mtp_file);
    const size_t common = c.n;
    for (size_t i = 0; i < 2 * runs && !st; i++) {
        const bool speculates = (i + i / 2) % 2; /* off auto, auto off, … */
        c.n = common;
        add(&c, "--spec", speculates ? "auto" : "off");
        st = time_process(&c, &times[speculates][i / 2], err);
    }
    if (st) return st;
    out->off_s += median(times[0], runs);
    out->auto_s += median(times[1], runs);
    return SK_OK;
}

sk_status bench_wall(const struct model_options *mo, const struct workload *w, size_t runs,
                     struct wall out[N_WALL_LENGTHS], struct sk_error *err) {
    sk_status st = SK_OK;
    if (runs > MAX_RUNS) return sk_fail(err, SK_EINVAL, "--wall-runs must be from 0 to %d, not %zu", MAX_RUNS, runs);
    memset(out, 0, N_WALL_LENGTHS * sizeof *out);
    for (size_t i = 0; i < w->n && i < WALL_PROMPTS && !st; i++)
        for (size_t k = 0; k < N_WALL_LENGTHS && !st; k++) {
            if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%s: whole processes, prompt %zu ", w->name, i + 1);
            st = time_prompt(mo, &w->prompts[i], wall_lengths[k], runs, &out[k], err);
        }
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%60s\r", "");
    return st;
}

/* Workers spin for a short while after a job, because the next one usually follows within microseconds, and
 * then sleep on a condition variable, so that an idle process takes no processor time. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

enum { MAX_THREADS = 256, SPIN_NS = 200 * 1000, PAUSES_PER_LOOK = 64 };

struct sk_pool {
    size_t n_threads;
    /* The job: written by the caller before `epoch` is raised, read by workers after they saw it raised. */
    void (*fn)(void *, size_t, size_t);
    void *ctx;
    size_t n;
    _Alignas(64) atomic_size_t next;     /* first index that nobody took */
    _Alignas(64) atomic_size_t finished; /* workers that are done with this job */
    _Alignas(64) atomic_uint epoch;      /* number of the current job */
    atomic_bool stop;
    atomic_uint sleepers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct worker {
        struct sk_pool *pool;
        size_t index;
        pthread_t thread;
    } workers[MAX_THREADS];
};

static inline void cpu_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void take_indices(struct sk_pool *pool, size_t thread) {
    for (;;) {
        const size_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (i >= pool->n) return;
        pool->fn(pool->ctx, i, thread);
    }
}

/* Returns when the epoch differs from `seen` (true) or the pool stops (false). */
static bool wait_for_job(struct sk_pool *pool, unsigned seen) {
    const uint64_t until = sk_now_ns() + SPIN_NS;
    do {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(&pool->epoch, memory_order_acquire) != seen) return !atomic_load(&pool->stop);
            cpu_pause();
        }
    } while (sk_now_ns() < until);
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->epoch) == seen) pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
    return !atomic_load(&pool->stop);
}

static void *worker_main(void *arg) {
    const struct worker *w = arg;
    struct sk_pool *pool = w->pool;
    for (unsigned seen = 0; wait_for_job(pool, seen);) {
        seen++;
        take_indices(pool, w->index);
        atomic_fetch_add_explicit(&pool->finished, 1, memory_order_release);
    }
    return NULL;
}

static void raise_epoch(struct sk_pool *pool) {
    atomic_fetch_add(&pool->epoch, 1);
    if (atomic_load(&pool->sleepers) == 0) return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

sk_status sk_pool_create(size_t n_threads, struct sk_pool **out, struct sk_error *err) {
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return sk_fail(err, SK_EINVAL, "%zu threads are not possible: choose 1 to %d", n_threads, MAX_THREADS);
    struct sk_pool *pool = aligned_alloc(64, (sizeof *pool + 63) / 64 * 64);
    if (!pool) return sk_fail_memory(err, sizeof *pool, "the thread pool");
    pool->n_threads = 1;
    pool->fn = NULL;
    pool->ctx = NULL;
    pool->n = 0;
    atomic_init(&pool->next, 0);
    atomic_init(&pool->finished, 0);
    atomic_init(&pool->epoch, 0);
    atomic_init(&pool->stop, false);
    atomic_init(&pool->sleepers, 0);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    for (size_t i = 1; i < n_threads; i++) {
        struct worker *w = &pool->workers[i];
        *w = (struct worker){.pool = pool, .index = i};
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
            sk_pool_destroy(pool);
            return sk_fail(err, SK_ENOMEM, "the system refused thread %zu of %zu", i + 1, n_threads);
        }
        pool->n_threads = i + 1;
    }
    *out = pool;
    return SK_OK;
}

void sk_pool_destroy(struct sk_pool *pool) {
    if (!pool) return;
    atomic_store(&pool->stop, true);
    raise_epoch(pool);
    for (size_t i = 1; i < pool->n_threads; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

size_t sk_pool_threads(const struct sk_pool *pool) { return pool->n_threads; }

void sk_pool_run(struct sk_pool *pool, size_t n, void (*fn)(void *, size_t, size_t), void *ctx) {
    if (pool->n_threads == 1 || n <= 1) {
        for (size_t i = 0; i < n; i++) fn(ctx, i, 0);
        return;
    }
    pool->fn = fn;
    pool->ctx = ctx;
    pool->n = n;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    raise_epoch(pool);
    take_indices(pool, 0);
    /* With more threads than processors a worker may be off the processor: after a while let it on. */
    for (unsigned looks = 0; atomic_load_explicit(&pool->finished, memory_order_acquire) < pool->n_threads - 1; looks++) {
        if (looks < 20000)
            cpu_pause();
        else
            sched_yield();
    }
}

size_t sk_physical_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    size_t cores = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set)) continue;
        /* Of the siblings of one core count the first that we may use. */
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", cpu);
        FILE *f = fopen(path, "re");
        bool counted_before = false;
        if (f) {
            int first = 0, last;
            char separator = 0;
            while (fscanf(f, "%d", &first) == 1) {
                last = first;
                if (fscanf(f, "%c", &separator) == 1 && separator == '-' && fscanf(f, "%d%c", &last, &separator) < 1) break;
                for (int s = first; s <= last && s < (int)cpu; s++)
                    if (s >= 0 && CPU_ISSET((size_t)s, &set)) counted_before = true;
                if (separator != ',') break;
                separator = 0;
            }
            fclose(f);
        }
        if (!counted_before) cores++;
    }
    return cores ? cores : 1;
}

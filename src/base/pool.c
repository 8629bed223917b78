/* Workers spin for a short while after a job, because the next one usually follows within microseconds, and
 * then sleep on a condition variable, so that an idle process takes no processor time.
 *
 * A job is over when all its indices are done; nobody waits for a worker that came too late to take one. To take an
 * index is to raise `ticket`, which holds the job's number too: that a late worker's attempt fails is what makes it
 * safe for it to have read the fields of a job that is over. */
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

typedef void (*sk_pool_fn)(void *, size_t, size_t);

struct sk_pool {
    size_t n_threads;
    _Atomic(sk_pool_fn) fn;
    void *_Atomic ctx;
    atomic_uint n;
    bool oversubscribed;                  /* more threads than processors: to spin is to keep somebody from working */
    _Alignas(64) _Atomic uint64_t ticket; /* job number << 32 | first index that nobody took */
    _Alignas(64) atomic_uint finished;    /* indices done */
    _Alignas(64) atomic_uint epoch;       /* number of the current job */
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

static void take_indices(struct sk_pool *pool, unsigned job, size_t thread) {
    const sk_pool_fn fn = atomic_load_explicit(&pool->fn, memory_order_acquire);
    void *ctx = atomic_load_explicit(&pool->ctx, memory_order_acquire);
    const unsigned n = atomic_load_explicit(&pool->n, memory_order_acquire);
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    while (ticket >> 32 == job && (uint32_t)ticket < n) {
        if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, ticket + 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        fn(ctx, (uint32_t)ticket, thread);
        atomic_fetch_add_explicit(&pool->finished, 1, memory_order_release);
        ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    }
}

static void relax(const struct sk_pool *pool) {
    if (pool->oversubscribed)
        sched_yield();
    else
        cpu_pause();
}

/* Waits until the epoch differs from `seen`; gives the new one. */
static unsigned wait_for_job(struct sk_pool *pool, unsigned seen) {
    const uint64_t until = sk_now_ns() + SPIN_NS;
    unsigned epoch;
    do {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if ((epoch = atomic_load_explicit(&pool->epoch, memory_order_acquire)) != seen) return epoch;
            relax(pool);
        }
    } while (sk_now_ns() < until);
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while ((epoch = atomic_load(&pool->epoch)) == seen) pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
    return epoch;
}

static void *worker_main(void *arg) {
    const struct worker *w = arg;
    unsigned seen = 0;
    while (seen = wait_for_job(w->pool, seen), !atomic_load(&w->pool->stop)) take_indices(w->pool, seen, w->index);
    return NULL;
}

static void raise_epoch(struct sk_pool *pool) {
    atomic_fetch_add(&pool->epoch, 1);
    if (atomic_load(&pool->sleepers) == 0) return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static size_t usable_processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

sk_status sk_pool_create(size_t n_threads, struct sk_pool **out, struct sk_error *err) {
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return sk_fail(err, SK_EINVAL, "%zu threads are not possible: choose 1 to %d", n_threads, MAX_THREADS);
    struct sk_pool *pool = aligned_alloc(64, (sizeof *pool + 63) / 64 * 64);
    if (!pool) return sk_fail_memory(err, sizeof *pool, "the thread pool");
    pool->n_threads = 1;
    pool->oversubscribed = n_threads > usable_processors();
    atomic_init(&pool->fn, NULL);
    atomic_init(&pool->ctx, NULL);
    atomic_init(&pool->n, 0);
    atomic_init(&pool->ticket, 0);
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

size_t sk_pool_threads(const struct sk_pool *pool) {
    return pool->n_threads;
}

void sk_pool_run(struct sk_pool *pool, size_t n, void (*fn)(void *, size_t, size_t), void *ctx) {
    if (pool->n_threads == 1 || n <= 1) {
        for (size_t i = 0; i < n; i++) fn(ctx, i, 0);
        return;
    }
    const unsigned job = atomic_load_explicit(&pool->epoch, memory_order_relaxed) + 1;
    /* Closed before the fields change: who reads a new field then finds the old ticket gone. */
    atomic_store_explicit(&pool->ticket, (uint64_t)job << 32 | UINT32_MAX, memory_order_relaxed);
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->fn, fn, memory_order_release);
    atomic_store_explicit(&pool->ctx, ctx, memory_order_release);
    atomic_store_explicit(&pool->n, (unsigned)n, memory_order_release);
    atomic_store_explicit(&pool->ticket, (uint64_t)job << 32, memory_order_release);
    raise_epoch(pool);
    take_indices(pool, job, 0);
    while (atomic_load_explicit(&pool->finished, memory_order_acquire) < n) relax(pool);
}

/* Processors' worth of time that the control group allows (cgroup v2), rounded up; SIZE_MAX for no limit. */
static size_t processor_quota(void) {
    unsigned long long quota, period;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!f) return SIZE_MAX;
    const bool limited = fscanf(f, "%llu %llu", &quota, &period) == 2 && quota > 0 && period > 0;
    fclose(f);
    return limited ? (size_t)((quota + period - 1) / period) : SIZE_MAX;
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
                if (fscanf(f, "%c", &separator) == 1 && separator == '-' && fscanf(f, "%d%c", &last, &separator) < 1)
                    break;
                for (int s = first; s <= last && s < (int)cpu; s++)
                    if (s >= 0 && CPU_ISSET((size_t)s, &set)) counted_before = true;
                if (separator != ',') break;
                separator = 0;
            }
            fclose(f);
        }
        if (!counted_before) cores++;
    }
    const size_t quota = processor_quota();
    if (cores > quota) cores = quota;
    return cores ? cores : 1;
}

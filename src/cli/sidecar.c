#include "sidecar.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/mtp.h"

enum { MAX_PATH = 4096 };

static struct sk_str architecture_of(const struct sk_gguf *g) {
    struct sk_error ignored;
    struct sk_str name = {"", 0};
    if (sk_gguf_string(g, "general.architecture", name, &name, &ignored)) return (struct sk_str){"", 0};
    return name;
}

bool sidecar_is_needless(const struct sk_gguf *model) {
    struct sk_error ignored;
    const struct sk_str arch = architecture_of(model);
    char key[128];
    uint32_t n = 0;
    snprintf(key, sizeof key, "%.*s.nextn_predict_layers", (int)(arch.n < 64 ? arch.n : 64), arch.p);
    return sk_gguf_u32(model, key, 0, &n, &ignored) == SK_OK && n > 0;
}

static bool belongs(const char *path, struct sk_str arch, const char *fingerprint) {
    struct sk_error ignored;
    struct sk_gguf *g;
    struct sk_str wanted = {"", 0};
    char key[128];
    if (sk_gguf_open(path, &g, &ignored)) return false;
    snprintf(key, sizeof key, "%.*s.nextn.model_fingerprint", (int)(arch.n < 64 ? arch.n : 64), arch.p);
    const bool good = sk_gguf_string(g, key, wanted, &wanted, &ignored) == SK_OK && sk_str_is(wanted, fingerprint);
    sk_gguf_close(g);
    return good;
}

/* A path as a pattern that matches it and nothing else. */
static void quote(const char *path, char out[2 * MAX_PATH]) {
    size_t n = 0;
    for (; *path && n + 2 < 2 * MAX_PATH; path++) {
        if (strchr("*?[\\", *path)) out[n++] = '\\';
        out[n++] = *path;
    }
    out[n] = '\0';
}

static char *find_in(const char *folder, const char *names, struct sk_str arch, const char *fingerprint) {
    char quoted[2 * MAX_PATH], pattern[2 * MAX_PATH + 32];
    char *found = NULL;
    glob_t files;
    quote(folder, quoted);
    snprintf(pattern, sizeof pattern, "%s/%s", quoted, names);
    if (glob(pattern, 0, NULL, &files) != 0) return NULL;
    for (size_t i = 0; i < files.gl_pathc && !found; i++)
        if (belongs(files.gl_pathv[i], arch, fingerprint)) found = strdup(files.gl_pathv[i]);
    globfree(&files);
    return found;
}

static void folder_of(const char *path, char out[MAX_PATH]) {
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(out, MAX_PATH, "%.*s", (int)(slash - path), slash == path ? "/" : path);
    else
        snprintf(out, MAX_PATH, ".");
}

static char *find_in_data_home(struct sk_str arch, const char *fingerprint) {
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char folder[MAX_PATH];
    if (data && *data)
        snprintf(folder, sizeof folder, "%s/skipstone/mtp", data);
    else if (home && *home)
        snprintf(folder, sizeof folder, "%s/.local/share/skipstone/mtp", home);
    else
        return NULL;
    return find_in(folder, "*.gguf", arch, fingerprint);
}

/* Installed: PREFIX/bin/skipstone and PREFIX/share/skipstone/mtp. Built: build/skipstone and share/mtp. */
static char *find_with_program(struct sk_str arch, const char *fingerprint) {
    static const char *const places[] = {"../share/skipstone/mtp", "../share/mtp"};
    char program[MAX_PATH], folder[MAX_PATH], place[2 * MAX_PATH];
    char *found = NULL;
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) return NULL;
    program[n] = '\0';
    folder_of(program, folder);
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        snprintf(place, sizeof place, "%s/%s", folder, places[i]);
        char *whole = realpath(place, NULL);
        if (whole) found = find_in(whole, "*.gguf", arch, fingerprint);
        free(whole);
    }
    return found;
}

char *sidecar_find(const struct sk_gguf *model, const char *model_path) {
    const struct sk_str arch = architecture_of(model);
    char fingerprint[17], folder[MAX_PATH];
    sk_model_fingerprint(model, fingerprint);
    folder_of(model_path, folder);
    char *found = find_in(folder, "*mtp*.gguf", arch, fingerprint);
    if (!found) found = find_in_data_home(arch, fingerprint);
    return found ? found : find_with_program(arch, fingerprint);
}

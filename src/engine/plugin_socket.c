/* Plugins over a Unix socket: one connection for each generation, one JSON object per line, both ways. */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "engine/plugin_internal.h"

enum { MAX_LINE = 1 << 16 };

struct socket_proposer {
    struct sk_proposer proposer;         /* must be first */
    int fd;                              /* -1 once the connection is broken */
    size_t timeout_ms, n_prompt, n_sent; /* context tokens the other side has */
    uint64_t sequence;                   /* of the last request: an answer to an older one came too late */
    struct sk_buf in;
    char decision_id[SKIPSTONE_MAX_DECISION_ID];
    size_t n_decision_id;
};

static void break_connection(struct socket_proposer *p) {
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
}

static int time_left(uint64_t start_ns, size_t timeout_ms) {
    const double left = (double)timeout_ms - sk_seconds_since(start_ns) * 1e3;
    return left > 0.0 ? (int)left + 1 : 0;
}

static bool send_line(struct socket_proposer *p, json_t *o, uint64_t start_ns) {
    char *text = json_dumps(o, JSON_COMPACT);
    const size_t n = text ? strlen(text) : 0;
    size_t sent = 0;
    if (text) text[n] = '\n'; /* over the terminator */
    while (text && sent < n + 1) {
        struct pollfd wait = {p->fd, POLLOUT, 0};
        if (poll(&wait, 1, time_left(start_ns, p->timeout_ms)) != 1) break;
        const ssize_t k = send(p->fd, text + sent, n + 1 - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (k <= 0) break;
        sent += (size_t)k;
    }
    free(text);
    if (sent == n + 1 && text) return true;
    break_connection(p); /* half a line cannot be taken back */
    return false;
}

/* The next line as JSON; NULL if none came in time or it is none. */
static json_t *receive_line(struct socket_proposer *p, uint64_t start_ns) {
    for (;;) {
        char *end = p->in.data ? memchr(p->in.data, '\n', p->in.len) : NULL;
        if (end) {
            const size_t n = (size_t)(end - p->in.data) + 1;
            json_t *o = json_loadb(p->in.data, n, JSON_REJECT_DUPLICATES, NULL);
            memmove(p->in.data, p->in.data + n, p->in.len - n);
            p->in.len -= n;
            if (!o) break_connection(p);
            return o;
        }
        struct pollfd wait = {p->fd, POLLIN, 0};
        const int left = time_left(start_ns, p->timeout_ms), ready = left ? poll(&wait, 1, left) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return NULL;
        char chunk[4096];
        const ssize_t k = recv(p->fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (k > 0) sk_buf_append(&p->in, chunk, (size_t)k);
        if (k == 0 || (k < 0 && errno != EAGAIN) || p->in.len > MAX_LINE || p->in.failed) {
            break_connection(p);
            return NULL;
        }
    }
}

static json_t *token_array(const int32_t *tokens, size_t n) {
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(a, json_integer(tokens[i]));
    return a;
}

static size_t read_proposal(struct socket_proposer *p, json_t *o, size_t limit, struct sk_draft *out) {
    struct skipstone_proposal proposal = {0};
    json_t *tokens = json_object_get(o, "tokens"), *id = json_object_get(o, "decision_id"), *token;
    size_t i;
    if (!json_is_array(tokens) || json_array_size(tokens) > SKIPSTONE_MAX_PROPOSAL) return SK_PROPOSE_FAILED;
    json_array_foreach(tokens, i, token) {
        const json_int_t v = json_integer_value(token);
        if (!json_is_integer(token)) return SK_PROPOSE_FAILED;
        proposal.tokens[proposal.n_tokens++] =
            v < 0 || v > INT32_MAX ? -1 : (int32_t)v; /* -1 is no token: counted and cut later */
    }
    if (json_is_string(id) && json_string_length(id) <= SKIPSTONE_MAX_DECISION_ID) {
        proposal.n_decision_id = json_string_length(id);
        memcpy(proposal.decision_id, json_string_value(id), proposal.n_decision_id);
    }
    const size_t n = sk_plugin_take(&proposal, limit, out);
    if (n && n != SK_PROPOSE_FAILED) {
        p->n_decision_id = proposal.n_decision_id;
        memcpy(p->decision_id, proposal.decision_id, p->n_decision_id);
    }
    return n;
}

static size_t propose(struct sk_proposer *proposer, const struct sk_proposal_request *r, struct sk_draft *out) {
    struct socket_proposer *p = (struct socket_proposer *)proposer;
    const uint64_t start = sk_now_ns();
    if (p->fd < 0) return SK_PROPOSE_FAILED;
    json_t *o = json_pack(
        "{s:s, s:I, s:I, s:o, s:I, s:I, s:I}", "op", "propose", "sequence", (json_int_t)++p->sequence, "from",
        (json_int_t)p->n_sent, "tokens", token_array(r->tokens + p->n_sent, r->n_committed - p->n_sent), "n_prompt",
        (json_int_t)p->n_prompt, "position", (json_int_t)(r->n_committed - 1), "budget", (json_int_t)r->limit);
    const bool sent = o && send_line(p, o, start);
    json_decref(o);
    if (!sent) return SK_PROPOSE_FAILED;
    p->n_sent = r->n_committed;
    for (;;) {
        json_t *answer = receive_line(p, start);
        if (!answer) return SK_PROPOSE_FAILED;
        const bool mine = json_integer_value(json_object_get(answer, "sequence")) == (json_int_t)p->sequence;
        const size_t n = mine ? read_proposal(p, answer, r->limit, out) : 0;
        json_decref(answer);
        if (mine) return n;
    }
}

static void observe(struct sk_proposer *proposer, const struct sk_receipt *r) {
    struct socket_proposer *p = (struct socket_proposer *)proposer;
    int32_t tokens[SK_MAX_WINDOW];
    if (p->fd < 0 || !r->n_proposal || r->proposal[0].kind != SK_PLUGIN) return;
    const struct skipstone_receipt a = sk_plugin_receipt(r, tokens, p->decision_id, p->n_decision_id);
    json_t *o =
        json_pack("{s:s, s:s%, s:s, s:o, s:I, s:I, s:I, s:o, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "op",
                  "receipt", "decision_id", a.decision_id, a.n_decision_id, "disposition",
                  sk_disposition_name(r->disposition), "proposal", token_array(a.proposal, a.n_proposal), "rows",
                  (json_int_t)a.n_rows, "accepted", (json_int_t)a.n_accepted, "committed", (json_int_t)a.n_committed,
                  "predicted", token_array(a.predicted, a.n_predicted), "next_token", a.next_token, "base_position",
                  (json_int_t)a.base_position, "position_after_verification", (json_int_t)a.position_after_verification,
                  "canonical_position", (json_int_t)a.canonical_position, "trimmed_rows", (json_int_t)a.trimmed_rows,
                  "propose_s", a.propose_s, "verify_s", a.verify_s, "repair_s", a.repair_s, "total_s", a.total_s);
    if (o) send_line(p, o, sk_now_ns());
    json_decref(o);
}

static void destroy(struct sk_proposer *proposer) {
    struct socket_proposer *p = (struct socket_proposer *)proposer;
    break_connection(p);
    sk_buf_free(&p->in);
    free(p);
}

static const struct sk_proposer_ops socket_ops = {SK_PLUGIN, propose, observe, destroy};

sk_status sk_socket_proposer_create(struct sk_plugin *plugin, size_t n_prompt, struct sk_proposer **out,
                                    struct sk_error *err) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(plugin->path) >= sizeof address.sun_path)
        return sk_fail(err, SK_EINVAL, "the socket's path '%s' is longer than %zu bytes", plugin->path,
                       sizeof address.sun_path - 1);
    strcpy(address.sun_path, plugin->path);
    struct socket_proposer *p = sk_calloc(1, sizeof *p);
    if (!p) return sk_fail_memory(err, sizeof *p, "a plugin's connection");
    *p = (struct socket_proposer){.proposer = {&socket_ops}, .timeout_ms = plugin->timeout_ms, .n_prompt = n_prompt};
    p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0 || connect(p->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        const int reason = errno;
        destroy(&p->proposer);
        return sk_fail(err, SK_EIO, "cannot connect to plugin '%s': %s", plugin->path, strerror(reason));
    }
    *out = &p->proposer;
    return SK_OK;
}

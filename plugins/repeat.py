#!/usr/bin/env python3
"""An example plugin over a Unix socket: proposes what followed the last occurrence of the context's last three tokens.

    plugins/repeat.py /tmp/repeat.sock &
    skipstone run -m MODEL -p TEXT --spec plugin:/tmp/repeat.sock

Each generation is one connection. Lines in: {"op": "propose", "sequence", "from", "tokens", "n_prompt", "position", "budget"} with the tokens of the
context from index "from" on, and {"op": "receipt", "decision_id", "disposition", …}. Lines out: {"sequence", "tokens", "decision_id"}.
"""
import json, os, socketserver, sys

ANCHOR = 3


class Generation(socketserver.StreamRequestHandler):
    def handle(self):
        context, places, decisions, accepted = [], {}, 0, 0
        for line in self.rfile:
            message = json.loads(line)
            if message["op"] == "receipt":
                accepted += message["accepted"]
                continue
            for token in message["tokens"]:
                context.append(token)
                if len(context) > ANCHOR:  # what ends before the last token has something after it
                    places[tuple(context[-ANCHOR - 1 : -1])] = len(context) - 1
            at = places.get(tuple(context[-ANCHOR:]))
            tokens = context[at : at + min(message["budget"], 256)] if at is not None else []
            decisions += 1
            answer = {"sequence": message["sequence"], "tokens": tokens, "decision_id": f"repeat-{decisions}"}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} SOCKET")
    if os.path.exists(sys.argv[1]):
        os.unlink(sys.argv[1])
    Server(sys.argv[1], Generation).serve_forever()

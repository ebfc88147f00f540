"""Answers only to those who show the key in AUTH_TOKEN. Standard library only."""

import hmac
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Taken out of the environment, so that no child process inherits the key.
EXPECTED = ("Bearer " + os.environ.pop("AUTH_TOKEN")).encode()
REPLICA = os.environ.get("SVC_REPLICA_ID", "?")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self):
        # A body is read even if it is refused: what stays unread would be taken for the next request.
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        shown = self.headers.get("Authorization", "").encode("latin-1")
        # Takes as long for a nearly right key as for a wrong one, so that timing tells nothing.
        if not hmac.compare_digest(shown, EXPECTED):
            self.reply(401, {"error": "Unauthorized"}, {"WWW-Authenticate": "Bearer"})
        else:
            self.reply(200, {"message": "Welcome.", "replica": REPLICA})

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any

    def reply(self, status, content, headers=None):
        body = json.dumps(content, separators=(",", ":")).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    # The default of 5 makes connections wait when many come at once.
    request_queue_size = 128


if __name__ == "__main__":
    Server(("", 8080), Handler).serve_forever()

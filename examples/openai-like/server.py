"""A chat server without a model: it answers with the words it was told, one at a time. Standard library only."""

import json
import os
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "parrot"
STARTED = int(time.time())
REPLICA = os.environ.get("SVC_REPLICA_ID", "?")
WORD_DELAY = float(os.environ.get("WORD_DELAY", "0.05"))
MAX_BODY = 1 << 20


class BadRequest(Exception):
    """What the client sent cannot be answered; the text says why."""


def text_of(content):
    """The text of a message, which may come as a string or in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    raise BadRequest("'content' must be a string or a list of parts.")


def words_for(messages):
    """The answer to a conversation: the last thing the user said, said back, and by which replica."""
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise BadRequest("'messages' must be a list of messages.")
    said = [text_of(message.get("content")) for message in messages if message.get("role") == "user"]
    if not said:
        raise BadRequest("There is no message of a user to answer.")
    return f"You said: {said[-1]} (replica {REPLICA})".split()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/health":
            self.reply(200, {"status": "ok"})
        elif self.path == "/v1/models":
            model = {"id": MODEL, "object": "model", "created": STARTED, "owned_by": "svc-examples"}
            self.reply(200, {"object": "list", "data": [model]})
        else:
            self.refuse(404, f"There is nothing at {self.path}.")

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            # The body is not read, so nothing more can be understood on this connection.
            self.close_connection = True
            self.refuse(413, f"A Content-Length of at most {MAX_BODY} is needed.")
            return
        body = self.rfile.read(int(length))
        if self.path != "/v1/chat/completions":
            self.refuse(404, f"There is nothing at {self.path}.")
            return
        try:
            request = json.loads(body)
            if not isinstance(request, dict):
                raise BadRequest("The body must be a JSON object.")
            words = words_for(request.get("messages"))
        except (ValueError, BadRequest) as error:
            self.refuse(400, str(error))
            return
        if request.get("model") != MODEL:
            self.refuse(404, f"The model '{request.get('model')}' does not exist; there is '{MODEL}'.")
            return
        usage = {"prompt_tokens": len(body) // 4, "completion_tokens": len(words)}
        usage["total_tokens"] = sum(usage.values())
        if request.get("stream"):
            options = request.get("stream_options") or {}
            self.stream(words, usage if options.get("include_usage") else None)
        else:
            time.sleep(WORD_DELAY * len(words))
            message = {"role": "assistant", "content": " ".join(words)}
            choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
            self.reply(200, self.completion("chat.completion", [choice], usage=usage))

    def stream(self, words, usage):
        """Sends one server-sent event for each word, as soon as there is one."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        base = self.completion("chat.completion.chunk", [])
        deltas = [{"role": "assistant", "content": ""}]
        deltas += [{"content": word if at == 0 else f" {word}"} for at, word in enumerate(words)]
        try:
            for delta in deltas:
                self.event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
                time.sleep(WORD_DELAY)
            self.event({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            if usage:
                self.event({**base, "choices": [], "usage": usage})
            self.chunk(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            # The client has left; there is nobody to tell.
            self.close_connection = True

    def completion(self, kind, choices, **more):
        name = f"chatcmpl-{uuid.uuid4().hex}"
        return {"id": name, "object": kind, "created": int(time.time()), "model": MODEL, "choices": choices, **more}

    def event(self, content):
        self.chunk(b"data: " + json.dumps(content).encode() + b"\n\n")

    def chunk(self, content):
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")

    def refuse(self, status, message):
        kind = "invalid_request_error"
        self.reply(status, {"error": {"message": message, "type": kind, "param": None, "code": None}})

    def reply(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    # The default of 5 makes connections wait when many come at once.
    request_queue_size = 128


if __name__ == "__main__":
    Server(("", 8000), Handler).serve_forever()

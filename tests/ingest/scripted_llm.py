"""A language model of the tests' own, importable by name: asks a service on loopback over HTTP."""

import json
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

from llama_index.core.llms import ChatMessage, ChatResponse, CompletionResponse, CustomLLM
from llama_index.core.llms import LLMMetadata as Metadata


class ScriptedLLM(CustomLLM):
    """Speaks the chat completions of OpenAI to ``api_base``."""

    api_base: str
    model: str = "scripted"
    api_key: str = ""

    @property
    def metadata(self):
        return Metadata(model_name=self.model)

    def chat(self, messages, **_):
        body = {
            "model": self.model,
            "messages": [{"role": each.role.value, "content": each.content} for each in messages],
        }
        request = Request(
            f"{self.api_base}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self.api_key}"},
        )
        with urlopen(request, timeout=30) as response:
            content = json.load(response)["choices"][0]["message"]["content"]
        return ChatResponse(message=ChatMessage(role="assistant", content=content))

    def complete(self, prompt, **_) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(self, prompt, **_):
        raise NotImplementedError


class Service:
    """A service that records requests.

    Attributes:
        answer: Gives the answer to a page, or ``None`` for a failure.
        asked: The bodies of all requests.
    """

    def __init__(self, answer: Callable[[str], str | None]) -> None:
        self.answer = answer
        self.asked: list[dict] = []
        self.address = ""

    def pages(self) -> list[str]:
        """The quoted text of each request."""
        return [each["messages"][1]["content"] for each in self.asked]


@contextmanager
def serve(answer: Callable[[str], str | None]):
    """Serve a `Service` on loopback."""
    service = Service(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.asked.append(body)
            content = service.answer(body["messages"][1]["content"])
            self.send_response(500 if content is None else 200)
            self.end_headers()
            answer = {"choices": [{"message": {"role": "assistant", "content": content}}]}
            with suppress(OSError):  # the client was killed
                self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    service.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()


def runner(run_kbkit, folder):
    """Runs commands; gives exit code, output and messages in a line."""

    def call(*arguments):
        code, out, err = run_kbkit("--workspace", folder, *arguments)
        assert "very-secret" not in out + err
        return code, " ".join(out.split()), " ".join(err.split())

    return call

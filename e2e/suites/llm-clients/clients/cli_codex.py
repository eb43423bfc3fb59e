"""Codex CLI, whose API is Responses."""

import json
import os
import sys
import time

from base import *
from cli import BINARIES, Agent, Rejected, always_streams, degrees_in

CODEX = f"{BINARIES}/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"


def agent():
    return Agent({"GATEWAY_KEY": "key-of-the-client", "CODEX_HOME": ""})


def options(provider, effort="none"):
    gateway = f'{{name="gateway",base_url="{provider.url}/v1",env_key="GATEWAY_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}}'
    return [
        *("-c", "model_provider=gateway", "-c", f"model_providers.gateway={gateway}", "-c", f"model={provider.model}"),
        *("-c", f"model_reasoning_effort={effort}", "-c", "model_reasoning_summary=auto", "-c", "check_for_update_on_startup=false"),
        *("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"),
    ]


def ask(provider, prompt, one=None, effort="none", more=(), resume=False):
    one = one or agent()
    one.env["CODEX_HOME"] = os.path.join(one.home, ".codex")
    os.makedirs(one.env["CODEX_HOME"], exist_ok=True)
    _, out, err = one.run(CODEX, "exec", *(["resume", "--last"] if resume else []), *options(provider, effort), *more, "--", prompt)
    events = [json.loads(line) for line in out.split("\n") if line.startswith("{")]
    for event in events:
        if event["type"] in ("turn.failed", "error"):
            message = event.get("message") or event["error"]["message"]
            raise Rejected(message, 400 if "400" in message else 404 if "404" in message else None)
    texts = [event["item"]["text"] for event in events if event["type"] == "item.completed" and event["item"]["type"] == "agent_message"]
    if not texts:
        raise AssertionError(f"no message: {out[-800:]} {err[-800:]}")
    return texts[-1]


text = always_streams


def stream(provider):
    same(ask(provider, HELLO), HELLO_REPLY)


def tools(provider):
    same(degrees_in(ask(provider, TOOLS)), [weather("Paris"), weather("Rome")])


def image(provider):
    one = agent()
    path = os.path.join(one.project, "picture.png")
    with open(path, "wb") as file:
        file.write(PNG)
    # Codex writes the picture anew.
    same("image/png of " in ask(provider, IMAGE, one, more=["-i", path]), True)


def thinking(provider):
    one = agent()
    same(degrees_in(ask(provider, THINKING, one, effort="high")), [weather("Oslo"), weather("Bergen")])
    same(ask(provider, HELLO, one, effort="high", resume=True), HELLO_REPLY)


def schema(provider):
    one = agent()
    path = os.path.join(one.project, "schema.json")
    with open(path, "w") as file:
        json.dump(WEATHER, file)
    same(json.loads(ask(provider, SCHEMA, one, more=["--output-schema", path])), {"city": "Paris", "degrees": 21})


def error(provider):
    try:
        ask(provider, "Fail with 400.")
    except Rejected as raised:
        if "prompt is too long" not in str(raised):
            raise
    else:
        raise AssertionError("no error")


def cancel(provider):
    # An error of the API would end the agent before it is interrupted.
    stream(provider)
    prompt, is_left = provider.endless()
    one = agent()
    one.env["CODEX_HOME"] = one.home
    one.interrupt(lambda line: "turn.started" in line and time.sleep(3) is None, CODEX, "exec", *options(provider), "--", prompt)
    same(is_left(), True)


if __name__ == "__main__":
    with open(f"{BINARIES}/@openai/codex/package.json") as file:
        main(sys.modules[__name__], version=json.load(file)["version"], workers=4)

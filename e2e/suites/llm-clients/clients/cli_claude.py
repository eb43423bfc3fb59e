"""Claude Code, whose API is Messages."""

import json
import sys

from base import *
from cli import BINARIES, Agent, Rejected, always_streams, degrees_in

CLAUDE = f"{BINARIES}/@anthropic-ai/claude-code-linux-x64/claude"


def agent(provider, **env):
    return Agent(
        {
            "ANTHROPIC_BASE_URL": provider.url,
            "ANTHROPIC_API_KEY": "key-of-the-client",
            "ANTHROPIC_MODEL": provider.model,
            "ANTHROPIC_SMALL_FAST_MODEL": provider.model,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": provider.model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            **env,
        }
    )


def ask(one, prompt, *more, stdin=None):
    form = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"] if stdin else ["--output-format", "json"]
    command = [CLAUDE, "-p", *form, "--dangerously-skip-permissions", *more, *([] if stdin else [prompt])]
    _, out, err = one.run(*command, stdin=stdin)
    results = [json.loads(line) for line in out.split("\n") if line.startswith(("{", "["))]
    results = [event for one in results for event in (one if isinstance(one, list) else [one]) if event.get("type") == "result"]
    if not results:
        raise AssertionError(f"no result: {out[-500:]} {err[-500:]}")
    result = results[-1]
    if result["is_error"]:
        raise Rejected(result.get("result") or json.dumps(result), 400 if "400" in str(result.get("result")) else None)
    return result


text = always_streams


def stream(provider):
    same(ask(agent(provider), HELLO)["result"], HELLO_REPLY)


def tools(provider):
    same(degrees_in(ask(agent(provider), TOOLS)["result"]), [weather("Paris"), weather("Rome")])


def image(provider):
    source = {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}
    content = [{"type": "image", "source": source}, {"type": "text", "text": IMAGE}]
    line = json.dumps({"type": "user", "message": {"role": "user", "content": content}})
    same("image/png of " in ask(agent(provider), None, stdin=f"{line}\n")["result"], True)


def thinking(provider):
    one = agent(provider, MAX_THINKING_TOKENS="4000")
    same(degrees_in(ask(one, THINKING)["result"]), [weather("Oslo"), weather("Bergen")])
    same(ask(one, HELLO, "--continue")["result"], HELLO_REPLY)


def schema(provider):
    result = ask(agent(provider), SCHEMA, "--json-schema", json.dumps(WEATHER))
    same(result.get("structured_output") or json.loads(result["result"]), {"city": "Paris", "degrees": 21})


def error(provider):
    try:
        ask(agent(provider), "Fail with 400.")
    except Rejected as raised:
        if "rompt is too long" not in str(raised):
            raise
    else:
        raise AssertionError("no error")


def cancel(provider):
    prompt, is_left = provider.endless()
    form = ["--output-format", "stream-json", "--include-partial-messages", "--verbose"]
    agent(provider).interrupt(lambda line: "one more" in line, CLAUDE, "-p", *form, "--dangerously-skip-permissions", prompt)
    same(is_left(), True)


if __name__ == "__main__":
    with open(f"{BINARIES}/@anthropic-ai/claude-code/package.json") as file:
        main(sys.modules[__name__], version=json.load(file)["version"], workers=4)

"""LiteLLM as a client: its SDK speaks Chat Completions to models `openai/`."""

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
from base import *
from pydantic import BaseModel

litellm.telemetry = False
litellm.suppress_debug_info = True
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "the weather of a city", "parameters": CITY}}


def ask(provider, streamed, messages, **params):
    params = {"model": f"openai/{provider.model}", "api_base": f"{provider.url}/v1", "api_key": "key-of-the-client", "num_retries": 0, **params}
    # LiteLLM knows by the model's name what OpenAI takes; the models here are those of others.
    answer = litellm.completion(messages=messages, stream=streamed, timeout=30, allowed_openai_params=["reasoning_effort", "tools"], **params)
    if not streamed:
        return answer.choices[0].message
    return litellm.stream_chunk_builder(list(answer), messages=messages).choices[0].message


def text(provider):
    messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": HELLO}]
    same(ask(provider, False, messages, max_tokens=500).content, HELLO_REPLY)


def stream(provider):
    message = ask(provider, True, [{"role": "user", "content": HELLO}])
    same(message.content, HELLO_REPLY)


def turn(provider, streamed, messages, **params):
    message = ask(provider, streamed, messages, tools=[TOOL], **params)
    calls = message.tool_calls or []
    messages.append(message)
    messages += [{"role": "tool", "tool_call_id": call.id, "content": weather(json.loads(call.function.arguments)["city"])} for call in calls]
    return message, [json.loads(call.function.arguments)["city"] for call in calls]


def tools(provider):
    none = {"reasoning_effort": "none"} if provider.name == "OpenAI" else {}
    for streamed in (False, True):
        messages = [{"role": "user", "content": TOOLS}]
        same(turn(provider, streamed, messages, **none)[1], ["Paris", "Rome"])
        same(turn(provider, streamed, messages, **none)[0].content, TOOLS_REPLY)


def image(provider):
    content = [{"type": "text", "text": IMAGE}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
    same(ask(provider, False, [{"role": "user", "content": content}]).content, PNG_REPLY)


def thinking(provider):
    for streamed in (False, True):
        messages = [{"role": "user", "content": THINKING}]
        effort = {"reasoning_effort": "high", "max_tokens": 16000}
        for city in ("Oslo", "Bergen"):
            same(turn(provider, streamed, messages, **effort)[1], [city])
        same(turn(provider, streamed, messages, **effort)[0].content, THINKING_REPLY)
        messages.append({"role": "user", "content": HELLO})
        same(turn(provider, streamed, messages, **effort)[0].content, HELLO_REPLY)


class Weather(BaseModel):
    city: str
    degrees: int


def schema(provider):
    content = ask(provider, False, [{"role": "user", "content": SCHEMA}], response_format=Weather).content
    same(Weather.model_validate_json(content), Weather(city="Paris", degrees=21))


def error(provider):
    for streamed in (False, True):
        try:
            ask(provider, streamed, [{"role": "user", "content": ERROR}])
        except litellm.RateLimitError as raised:
            same(ERROR_MESSAGE in raised.message, True)
        else:
            raise AssertionError("no error")


def cancel(provider):
    prompt, is_left = provider.endless()
    chunks = litellm.completion(
        model=f"openai/{provider.model}",
        api_base=f"{provider.url}/v1",
        api_key="key-of-the-client",
        messages=[{"role": "user", "content": prompt}],
        stream=True,
        timeout=30,
    )
    for chunk in chunks:
        if chunk.choices[0].delta.content:
            break
    chunks.completion_stream.close()
    same(is_left(), True)


if __name__ == "__main__":
    main(sys.modules[__name__], "litellm")

"""Anthropic's SDK."""

import json
import sys

import anthropic
from base import *
from pydantic import BaseModel

TOOL = {"name": "get_weather", "description": "the weather of a city", "input_schema": CITY}


def client(provider):
    return anthropic.Anthropic(base_url=provider.url, api_key="key-of-the-client", max_retries=0, timeout=30)


def ask(provider, streamed, messages, **params):
    params = {"max_tokens": 16000, "model": provider.model, "messages": messages, **params}
    if not streamed:
        return client(provider).messages.create(**params)
    with client(provider).messages.stream(**params) as events:
        return events.get_final_message()


def said(message):
    return "".join(block.text for block in message.content if block.type == "text")


def text(provider):
    message = ask(provider, False, [{"role": "user", "content": HELLO}], system="Be short.")
    same((said(message), message.stop_reason, message.usage.input_tokens), (HELLO_REPLY, "end_turn", 20))
    count = client(provider).messages.count_tokens(model=provider.model, messages=[{"role": "user", "content": HELLO}])
    same(1 < count.input_tokens < 30, True)


def stream(provider):
    with client(provider).messages.stream(model=provider.model, max_tokens=500, messages=[{"role": "user", "content": HELLO}]) as events:
        pieces = list(events.text_stream)
        message = events.get_final_message()
    same("".join(pieces), HELLO_REPLY)
    same(len(pieces) > 3, True)
    same(message.usage.output_tokens, len(HELLO_REPLY) + 1)


def turn(provider, streamed, messages, **params):
    message = ask(provider, streamed, messages, tools=[TOOL], **params)
    calls = [block for block in message.content if block.type == "tool_use"]
    messages.append({"role": "assistant", "content": message.content})
    if calls:
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": weather(call.input["city"])} for call in calls]
        messages.append({"role": "user", "content": results})
    return message, [call.input["city"] for call in calls]


def tools(provider):
    for streamed in (False, True):
        messages = [{"role": "user", "content": TOOLS}]
        same(turn(provider, streamed, messages)[1], ["Paris", "Rome"])
        same(said(turn(provider, streamed, messages)[0]), TOOLS_REPLY)


def image(provider):
    source = {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}
    content = [{"type": "image", "source": source}, {"type": "text", "text": IMAGE}]
    same(said(ask(provider, False, [{"role": "user", "content": content}])), PNG_REPLY)


def thinking(provider):
    for streamed in (False, True):
        messages = [{"role": "user", "content": THINKING}]
        budget = {"thinking": {"type": "enabled", "budget_tokens": 4000}}
        for city in ("Oslo", "Bergen"):
            same(turn(provider, streamed, messages, **budget)[1], [city])
        same(said(turn(provider, streamed, messages, **budget)[0]), THINKING_REPLY)
        messages.append({"role": "user", "content": HELLO})
        same(said(turn(provider, streamed, messages, **budget)[0]), HELLO_REPLY)


class Weather(BaseModel):
    city: str
    degrees: int


def schema(provider):
    parsed = client(provider).messages.parse(
        model=provider.model, max_tokens=500, messages=[{"role": "user", "content": SCHEMA}], output_format=Weather
    )
    same(parsed.parsed_output, Weather(city="Paris", degrees=21))


def error(provider):
    for streamed in (False, True):
        try:
            ask(provider, streamed, [{"role": "user", "content": ERROR}])
        except anthropic.RateLimitError as raised:
            same(ERROR_MESSAGE in raised.body["error"]["message"], True)
            same(raised.body["error"]["type"], "rate_limit_error")
        else:
            raise AssertionError("no error")


def cancel(provider):
    prompt, is_left = provider.endless()
    with client(provider).messages.stream(model=provider.model, max_tokens=500, messages=[{"role": "user", "content": prompt}]) as events:
        next(iter(events.text_stream))
    same(is_left(), True)


if __name__ == "__main__":
    main(sys.modules[__name__], "anthropic")

"""OpenAI's SDK, Chat Completions."""

import json
import sys

import openai
from base import *
from pydantic import BaseModel

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "the weather of a city", "parameters": CITY}}


def client(provider):
    return openai.OpenAI(base_url=f"{provider.url}/v1", api_key="key-of-the-client", max_retries=0, timeout=30)


def text(provider):
    completion = client(provider).chat.completions.create(
        model=provider.model, messages=[{"role": "system", "content": "Be short."}, {"role": "user", "content": HELLO}], max_completion_tokens=500
    )
    same(completion.choices[0].message.content, HELLO_REPLY)
    same(completion.choices[0].finish_reason, "stop")
    same(completion.usage.prompt_tokens, 20)


def stream(provider):
    with client(provider).chat.completions.stream(
        model=provider.model, messages=[{"role": "user", "content": HELLO}], stream_options={"include_usage": True}
    ) as events:
        pieces = [event.delta for event in events if event.type == "content.delta"]
        completion = events.get_final_completion()
    same("".join(pieces), HELLO_REPLY)
    same(len(pieces) > 3, True)
    same(completion.usage.prompt_tokens, 20)


def repeat(message):
    """A message as it is sent back: without `index`, which streams have."""
    kept = message.model_dump(exclude_none=True, exclude={"parsed"})
    for call in kept.get("tool_calls", []):
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    return kept


def replay(calls):
    return [{"role": "tool", "tool_call_id": call.id, "content": weather(json.loads(call.function.arguments)["city"])} for call in calls]


def tools(provider):
    for streamed in (False, True):
        messages = [{"role": "user", "content": TOOLS}]
        first = ask(provider, streamed, messages=messages, tools=[TOOL], reasoning_effort="none" if provider.name == "OpenAI" else openai.omit)
        same([json.loads(call.function.arguments) for call in first.tool_calls], [{"city": "Paris"}, {"city": "Rome"}])
        messages += [repeat(first), *replay(first.tool_calls)]
        last = ask(provider, streamed, messages=messages, tools=[TOOL], reasoning_effort="none" if provider.name == "OpenAI" else openai.omit)
        same(last.content, TOOLS_REPLY)


def ask(provider, streamed, **params):
    if not streamed:
        return client(provider).chat.completions.create(model=provider.model, **params).choices[0].message
    with client(provider).chat.completions.stream(model=provider.model, **params) as events:
        return events.get_final_completion().choices[0].message


def image(provider):
    content = [{"type": "text", "text": IMAGE}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
    same(ask(provider, False, messages=[{"role": "user", "content": content}]).content, PNG_REPLY)


def thinking(provider):
    for streamed in (False, True):
        messages = [{"role": "user", "content": THINKING}]
        for city in ("Oslo", "Bergen"):
            message = ask(provider, streamed, messages=messages, tools=[TOOL], reasoning_effort="high", max_completion_tokens=16000)
            same([json.loads(call.function.arguments)["city"] for call in message.tool_calls], [city])
            messages += [repeat(message), *replay(message.tool_calls)]
        message = ask(provider, streamed, messages=messages, tools=[TOOL], reasoning_effort="high", max_completion_tokens=16000)
        same(message.content, THINKING_REPLY)
        messages += [repeat(message), {"role": "user", "content": HELLO}]
        same(ask(provider, streamed, messages=messages, tools=[TOOL], reasoning_effort="high", max_completion_tokens=16000).content, HELLO_REPLY)


class Weather(BaseModel):
    city: str
    degrees: int


def schema(provider):
    parsed = client(provider).chat.completions.parse(model=provider.model, messages=[{"role": "user", "content": SCHEMA}], response_format=Weather)
    same(parsed.choices[0].message.parsed, Weather(city="Paris", degrees=21))
    loose = {"type": "object", "properties": {"city": {"type": "string"}, "degrees": {"type": "integer", "minimum": -90}}}
    message = ask(
        provider,
        False,
        messages=[{"role": "user", "content": SCHEMA}],
        response_format={"type": "json_schema", "json_schema": {"name": "weather", "schema": loose}},
    )
    same(json.loads(message.content), {"city": "Paris", "degrees": 21})


def error(provider):
    for streamed in (False, True):
        try:
            ask(provider, streamed, messages=[{"role": "user", "content": ERROR}])
        except openai.RateLimitError as raised:
            same(ERROR_MESSAGE in raised.message, True)
            same(raised.response.headers["retry-after"], "7")
        else:
            raise AssertionError("no error")


def cancel(provider):
    prompt, is_left = provider.endless()
    events = client(provider).chat.completions.create(model=provider.model, messages=[{"role": "user", "content": prompt}], stream=True)
    for event in events:
        if event.choices and event.choices[0].delta.content:
            break
    events.close()
    same(is_left(), True)


if __name__ == "__main__":
    main(sys.modules[__name__], "openai")

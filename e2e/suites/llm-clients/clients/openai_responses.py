"""OpenAI's SDK, Responses."""

import json
import sys

import openai
from base import *
from pydantic import BaseModel

TOOL = {"type": "function", "name": "get_weather", "description": "the weather of a city", "parameters": CITY, "strict": True}


def client(provider):
    return openai.OpenAI(base_url=f"{provider.url}/v1", api_key="key-of-the-client", max_retries=0, timeout=30)


def ask(provider, streamed, **params):
    if not streamed:
        return client(provider).responses.create(model=provider.model, **params)
    with client(provider).responses.stream(model=provider.model, **params) as events:
        return events.get_final_response()


def text(provider):
    response = ask(provider, False, instructions="Be short.", input=HELLO, max_output_tokens=500)
    same(response.output_text, HELLO_REPLY)
    same(response.status, "completed")
    same(response.usage.input_tokens, 20)


def stream(provider):
    with client(provider).responses.stream(model=provider.model, input=HELLO) as events:
        pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
        response = events.get_final_response()
    same("".join(pieces), HELLO_REPLY)
    same(len(pieces) > 3, True)
    same(response.usage.input_tokens, 20)


def turn(provider, streamed, items, **params):
    response = ask(provider, streamed, input=items, tools=[TOOL], store=False, include=["reasoning.encrypted_content"], **params)
    calls = [item for item in response.output if item.type == "function_call"]
    # What the SDK's documentation shows: the output is the next input.
    items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
    items += [{"type": "function_call_output", "call_id": call.call_id, "output": weather(json.loads(call.arguments)["city"])} for call in calls]
    return response, [json.loads(call.arguments)["city"] for call in calls]


def tools(provider):
    for streamed in (False, True):
        items = [{"role": "user", "content": TOOLS}]
        same(turn(provider, streamed, items)[1], ["Paris", "Rome"])
        same(turn(provider, streamed, items)[0].output_text, TOOLS_REPLY)


def image(provider):
    content = [{"type": "input_text", "text": IMAGE}, {"type": "input_image", "image_url": PNG_URL, "detail": "auto"}]
    same(ask(provider, False, input=[{"role": "user", "content": content}]).output_text, PNG_REPLY)


def thinking(provider):
    for streamed in (False, True):
        items = [{"role": "user", "content": THINKING}]
        effort = {"reasoning": {"effort": "high", "summary": "auto"}, "max_output_tokens": 16000}
        for city in ("Oslo", "Bergen"):
            same(turn(provider, streamed, items, **effort)[1], [city])
        same(turn(provider, streamed, items, **effort)[0].output_text, THINKING_REPLY)
        items.append({"role": "user", "content": HELLO})
        same(turn(provider, streamed, items, **effort)[0].output_text, HELLO_REPLY)


class Weather(BaseModel):
    city: str
    degrees: int


def schema(provider):
    parsed = client(provider).responses.parse(model=provider.model, input=SCHEMA, text_format=Weather)
    same(parsed.output_parsed, Weather(city="Paris", degrees=21))


def error(provider):
    for streamed in (False, True):
        try:
            ask(provider, streamed, input=ERROR)
        except openai.RateLimitError as raised:
            same(ERROR_MESSAGE in raised.message, True)
        else:
            raise AssertionError("no error")


def cancel(provider):
    prompt, is_left = provider.endless()
    events = client(provider).responses.create(model=provider.model, input=prompt, stream=True)
    for event in events:
        if event.type == "response.output_text.delta":
            break
    events.close()
    same(is_left(), True)


if __name__ == "__main__":
    main(sys.modules[__name__], "openai")

"""Google's SDK. Its API is generateContent."""

import functools
import json
import sys

from base import *
from google import genai
from google.genai import errors, types

TOOL = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="get_weather",
            description="the weather of a city",
            parameters=types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")}, required=["city"]),
        )
    ]
)


@functools.cache
def client_of(url, vertexai):
    return genai.Client(api_key="AIzaKeyOfTheClient", vertexai=vertexai, http_options=types.HttpOptions(base_url=url, timeout=30_000))


def client(provider):
    return client_of(provider.url, "Vertex" in provider.name)


def ask(provider, streamed, contents, **config):
    params = {"model": provider.model.removeprefix("google/"), "contents": contents, "config": types.GenerateContentConfig(**config)}
    if not streamed:
        return client(provider).models.generate_content(**params).candidates[0].content
    parts = [part for chunk in client(provider).models.generate_content_stream(**params) for part in chunk.candidates[0].content.parts]
    return types.Content(role="model", parts=parts)


def said(content):
    return "".join(part.text for part in content.parts if part.text and not part.thought)


def text(provider):
    same(said(ask(provider, False, HELLO, system_instruction="Be short.")), HELLO_REPLY)


def stream(provider):
    same(said(ask(provider, True, HELLO)), HELLO_REPLY)


def turn(provider, streamed, contents, **config):
    content = ask(provider, streamed, contents, tools=[TOOL], **config)
    contents.append(content)
    calls = [part.function_call for part in content.parts if part.function_call]
    if calls:
        parts = [types.Part.from_function_response(name=call.name, response={"result": weather(call.args["city"])}) for call in calls]
        contents.append(types.Content(role="user", parts=parts))
    return content, [call.args["city"] for call in calls]


def asked(prompt):
    return types.Content(role="user", parts=[types.Part.from_text(text=prompt)])


def tools(provider):
    for streamed in (False, True):
        contents = [asked(TOOLS)]
        same(turn(provider, streamed, contents)[1], ["Paris", "Rome"])
        same(said(turn(provider, streamed, contents)[0]), TOOLS_REPLY)


def image(provider):
    same(said(ask(provider, False, [types.Part.from_bytes(data=PNG, mime_type="image/png"), IMAGE])), PNG_REPLY)


def thinking(provider):
    for streamed in (False, True):
        contents = [asked(THINKING)]
        config = {"thinking_config": types.ThinkingConfig(include_thoughts=True, thinking_level="HIGH")}
        for city in ("Oslo", "Bergen"):
            same(turn(provider, streamed, contents, **config)[1], [city])
        same(said(turn(provider, streamed, contents, **config)[0]), THINKING_REPLY)
        contents.append(asked(HELLO))
        same(said(turn(provider, streamed, contents, **config)[0]), HELLO_REPLY)


def schema(provider):
    content = ask(provider, False, SCHEMA, response_mime_type="application/json", response_json_schema=WEATHER)
    same(json.loads(said(content)), {"city": "Paris", "degrees": 21})


def error(provider):
    for streamed in (False, True):
        try:
            ask(provider, streamed, ERROR)
        except errors.ClientError as raised:
            if raised.code != 429:
                raise
            same(ERROR_MESSAGE in raised.message, True)
        else:
            raise AssertionError("no error")


def cancel(provider):
    prompt, is_left = provider.endless()
    chunks = client(provider).models.generate_content_stream(model=provider.model.removeprefix("google/"), contents=prompt)
    for chunk in chunks:
        if chunk.text:
            break
    chunks.close()
    same(is_left(), True)


if __name__ == "__main__":
    main(sys.modules[__name__], "google-genai")

"""LangChain with its integration of OpenAI."""

import sys

import openai
from base import *
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return weather(city)


def chat(provider, **more):
    return ChatOpenAI(base_url=f"{provider.url}/v1", api_key="key-of-the-client", model=provider.model, max_retries=0, timeout=30, **more)


def gather(model, messages, streamed):
    if not streamed:
        return model.invoke(messages)
    whole = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


def text(provider):
    message = chat(provider, max_tokens=500).invoke([SystemMessage("Be short."), HumanMessage(HELLO)])
    same((message.text, message.usage_metadata["input_tokens"]), (HELLO_REPLY, 20))


def stream(provider):
    pieces = [chunk.text for chunk in chat(provider).stream(HELLO) if chunk.text]
    same(("".join(pieces), len(pieces) > 3), (HELLO_REPLY, True))


def turn(model, messages, streamed):
    message = gather(model, messages, streamed)
    messages.append(message)
    messages += [ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]) for call in message.tool_calls]
    return message, [call["args"]["city"] for call in message.tool_calls]


def tools(provider, **more):
    none = {"reasoning_effort": "none"} if provider.name == "OpenAI" else {}
    model = chat(provider, **none, **more).bind_tools([get_weather])
    for streamed in (False, True):
        messages = [HumanMessage(TOOLS)]
        same(turn(model, messages, streamed)[1], ["Paris", "Rome"])
        same(turn(model, messages, streamed)[0].text, TOOLS_REPLY)


def image(provider):
    content = [{"type": "text", "text": IMAGE}, {"type": "image", "base64": PNG_BASE64, "mime_type": "image/png"}]
    same(chat(provider).invoke([HumanMessage(content)]).text, PNG_REPLY)


def thinking(provider):
    # OpenAI offers reasoning with tools on its Responses API only, which LangChain uses on request.
    more = {"use_responses_api": True, "output_version": "responses/v1", "store": False, "include": ["reasoning.encrypted_content"]} if provider.name == "OpenAI" else {}
    model = chat(provider, reasoning_effort="high", max_tokens=16000, **more).bind_tools([get_weather])
    for streamed in (False, True):
        messages = [HumanMessage(THINKING)]
        for city in ("Oslo", "Bergen"):
            same(turn(model, messages, streamed)[1], [city])
        same(turn(model, messages, streamed)[0].text, THINKING_REPLY)
        messages.append(HumanMessage(HELLO))
        same(turn(model, messages, streamed)[0].text, HELLO_REPLY)


class Weather(BaseModel):
    """The weather."""

    city: str
    degrees: int


def schema(provider):
    same(chat(provider).with_structured_output(Weather).invoke(SCHEMA), Weather(city="Paris", degrees=21))


def error(provider):
    for streamed in (False, True):
        try:
            gather(chat(provider), ERROR, streamed)
        except openai.RateLimitError as raised:
            same(ERROR_MESSAGE in raised.message, True)
        else:
            raise AssertionError("no error")


def cancel(provider):
    prompt, is_left = provider.endless()
    chunks = chat(provider).stream(prompt)
    for chunk in chunks:
        if chunk.text:
            break
    chunks.close()
    same(is_left(), True)


if __name__ == "__main__":
    main(sys.modules[__name__], "langchain-openai")

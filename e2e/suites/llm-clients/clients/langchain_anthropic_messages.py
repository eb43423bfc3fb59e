"""LangChain with its integration of Anthropic."""

import sys

import anthropic
from base import *
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai_chat import Weather, gather, get_weather, turn


def chat(provider, **more):
    return ChatAnthropic(base_url=provider.url, api_key="key-of-the-client", model=provider.model, max_retries=0, timeout=30, **{"max_tokens": 500, **more})


def text(provider):
    message = chat(provider).invoke([SystemMessage("Be short."), HumanMessage(HELLO)])
    same((message.text, message.usage_metadata["input_tokens"]), (HELLO_REPLY, 20))


def stream(provider):
    pieces = [chunk.text for chunk in chat(provider).stream(HELLO) if chunk.text]
    same(("".join(pieces), len(pieces) > 3), (HELLO_REPLY, True))


def tools(provider):
    model = chat(provider).bind_tools([get_weather])
    for streamed in (False, True):
        messages = [HumanMessage(TOOLS)]
        same(turn(model, messages, streamed)[1], ["Paris", "Rome"])
        same(turn(model, messages, streamed)[0].text, TOOLS_REPLY)


def image(provider):
    content = [{"type": "text", "text": IMAGE}, {"type": "image", "base64": PNG_BASE64, "mime_type": "image/png"}]
    same(chat(provider).invoke([HumanMessage(content)]).text, PNG_REPLY)


def thinking(provider):
    model = chat(provider, thinking={"type": "enabled", "budget_tokens": 4000}, max_tokens=16000).bind_tools([get_weather])
    for streamed in (False, True):
        messages = [HumanMessage(THINKING)]
        for city in ("Oslo", "Bergen"):
            same(turn(model, messages, streamed)[1], [city])
        same(turn(model, messages, streamed)[0].text, THINKING_REPLY)
        messages.append(HumanMessage(HELLO))
        same(turn(model, messages, streamed)[0].text, HELLO_REPLY)


def schema(provider):
    same(chat(provider).with_structured_output(Weather, method="json_schema").invoke(SCHEMA), Weather(city="Paris", degrees=21))


def error(provider):
    for streamed in (False, True):
        try:
            gather(chat(provider), ERROR, streamed)
        except anthropic.RateLimitError as raised:
            same(ERROR_MESSAGE in str(raised), True)
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
    main(sys.modules[__name__], "langchain-anthropic")

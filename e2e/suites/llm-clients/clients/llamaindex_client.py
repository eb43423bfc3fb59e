"""LlamaIndex with its integration of APIs that are like OpenAI's."""

import gc
import sys

import openai
from base import *
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel


def get_weather(city: str) -> str:
    """The weather of a city."""
    return weather(city)


TOOL = FunctionTool.from_defaults(fn=get_weather)


def chat(provider, **more):
    return OpenAILike(
        api_base=f"{provider.url}/v1",
        api_key="key-of-the-client",
        model=provider.model,
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
        timeout=30,
        temperature=1.0,
        **more,
    )


def gather(model, method, streamed, *args, **params):
    if not streamed:
        return getattr(model, method)(*args, **params)
    last = None
    for last in getattr(model, f"stream_{method}")(*args, **params):
        pass
    return last


def text(provider):
    messages = [ChatMessage(role=MessageRole.SYSTEM, content="Be short."), ChatMessage(role=MessageRole.USER, content=HELLO)]
    same(chat(provider).chat(messages).message.content, HELLO_REPLY)


def stream(provider):
    pieces = [chunk.delta for chunk in chat(provider).stream_chat([ChatMessage(HELLO)]) if chunk.delta]
    same(("".join(pieces), len(pieces) > 3), (HELLO_REPLY, True))


def turn(model, messages, streamed):
    response = gather(model, "chat_with_tools", streamed, [TOOL], chat_history=messages, allow_parallel_tool_calls=True)
    calls = model.get_tool_calls_from_response(response, error_on_no_tool_call=False)
    messages.append(response.message)
    for call in calls:
        messages.append(
            ChatMessage(role=MessageRole.TOOL, content=get_weather(**call.tool_kwargs), additional_kwargs={"tool_call_id": call.tool_id, "name": call.tool_name})
        )
    return response.message, [call.tool_kwargs["city"] for call in calls]


def tools(provider):
    model = chat(provider, **({"reasoning_effort": "none"} if provider.name == "OpenAI" else {}))
    for streamed in (False, True):
        messages = [ChatMessage(TOOLS)]
        same(turn(model, messages, streamed)[1], ["Paris", "Rome"])
        same(turn(model, messages, streamed)[0].content, TOOLS_REPLY)


def image(provider):
    message = ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text=IMAGE), ImageBlock(image=PNG, image_mimetype="image/png")])
    same(chat(provider).chat([message]).message.content, PNG_REPLY)


def thinking(provider):
    model = chat(provider, reasoning_effort="high", max_tokens=16000)
    for streamed in (False, True):
        messages = [ChatMessage(THINKING)]
        for city in ("Oslo", "Bergen"):
            same(turn(model, messages, streamed)[1], [city])
        same(turn(model, messages, streamed)[0].content, THINKING_REPLY)
        messages.append(ChatMessage(HELLO))
        same(turn(model, messages, streamed)[0].content, HELLO_REPLY)


class Weather(BaseModel):
    """The weather."""

    city: str
    degrees: int


def schema(provider):
    model = chat(provider, should_use_structured_outputs=True)
    same(model.as_structured_llm(Weather).complete(SCHEMA).raw, Weather(city="Paris", degrees=21))


def error(provider):
    for streamed in (False, True):
        try:
            gather(chat(provider), "chat", streamed, [ChatMessage(ERROR)])
        except openai.RateLimitError as raised:
            same(ERROR_MESSAGE in raised.message, True)
        else:
            raise AssertionError("no error")


def cancel(provider):
    prompt, is_left = provider.endless()
    chunks = chat(provider).stream_chat([ChatMessage(prompt)])
    for chunk in chunks:
        if chunk.delta:
            break
    # LlamaIndex closes the connection with the last reference to the stream.
    del chunk, chunks
    gc.collect()
    same(is_left(), True)


if __name__ == "__main__":
    main(sys.modules[__name__], "llama-index-llms-openai-like")

"""
Tries features of servers with the client of the official Python SDK 1 or 2 (MODE: legacy or auto):
python matrix.py '{"backend": {"url": ..., "prefixes": [...]}}' [MODE] prints a JSON object.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

from mcp import types


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={"name": "me"})


@asynccontextmanager
async def connect(url):
    if len(sys.argv) > 2:
        from mcp import Client

        async with Client(url, mode=sys.argv[2], elicitation_callback=elicit) as client:
            yield client
        return
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (read, write, _):
        async with ClientSession(read, write, elicitation_callback=elicit) as session:
            await session.initialize()
            yield session


def text(result):
    return result.content[0].text


async def try_features(session, names, uris):
    seen = []

    async def on_progress(progress, total, message):
        seen.append(progress)

    async def tools(prefix):
        listed = [tool.name for tool in (await session.list_tools()).tools]
        return f"{prefix}add" in listed and text(await session.call_tool(f"{prefix}add", {"a": 2, "b": 3})) == "5"

    async def progress(prefix):
        seen.clear()
        done = await session.call_tool(f"{prefix}count", {"to": 3}, progress_callback=on_progress)
        return text(done) == "counted to 3" and seen == [1, 2, 3]

    async def elicitation(prefix):
        return json.loads(text(await session.call_tool(f"{prefix}who", {}))) == {"name": "me"}

    async def prompts(prefix):
        return (await session.get_prompt(f"{prefix}ask", {"topic": "life"})).messages[0].content.text == "What is life?"

    async def resources(prefix):
        return (await session.read_resource(f"{prefix}note://x")).contents[0].text == "note x"

    results = {}
    for feature in (tools, progress, elicitation, prompts, resources):
        prefixes = uris if feature is resources else names
        try:
            results[feature.__name__] = all([await asyncio.wait_for(feature(prefix), 30) for prefix in prefixes])
        except Exception as error:
            results[feature.__name__] = f"{type(error).__name__}: {error}"
    return results


async def main():
    results = {}
    for name, backend in json.loads(sys.argv[1]).items():
        async with connect(backend["url"]) as session:
            targets = backend["prefixes"]
            results[name] = await try_features(session, [f"{one}_" for one in targets] or [""], [f"{one}+" for one in targets] or [""])
    print(json.dumps(results))


asyncio.run(main())

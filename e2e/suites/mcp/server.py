"""An MCP server on the official Python SDK: python server.py PORT"""

import sys

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("python", host="127.0.0.1", port=int(sys.argv[1]), instructions="Adds numbers.")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def count(to: int, context: Context) -> str:
    """Counts and reports progress."""
    for done in range(to):
        await context.report_progress(done + 1, to)
    await context.info("counted")
    return f"counted to {to}"


class Person(BaseModel):
    name: str


@server.tool()
async def who(context: Context) -> str:
    """Asks the user for a name."""
    return (await context.elicit("Who?", Person)).data.model_dump_json()


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note."""
    return f"note {name}"


@server.prompt()
def ask(topic: str) -> str:
    """Asks about something."""
    return f"What is {topic}?"


server.run(transport="streamable-http")

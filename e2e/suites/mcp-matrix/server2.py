"""An MCP server on the official Python SDK 2, which speaks all revisions: python server2.py PORT"""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("python2")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def count(to: int, context: Context) -> str:
    """Counts and reports progress."""
    for done in range(to):
        await context.report_progress(done + 1, to)
    return f"counted to {to}"


class Person(BaseModel):
    name: str


async def ask_person() -> Elicit[Person]:
    return Elicit("Who?", Person)


@server.tool()
async def who(person: Annotated[Person, Resolve(ask_person)]) -> str:
    """Asks the user for a name."""
    return person.model_dump_json()


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note."""
    return f"note {name}"


@server.prompt()
def ask(topic: str) -> str:
    """Asks about something."""
    return f"What is {topic}?"


server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))

"""An agent of the Python SDK with a signed card, over JSON-RPC and HTTP+JSON: agent.py PORT KEY_FILE; prints `ready`."""

import sys

import uvicorn
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Role
from a2a.utils.signing import create_agent_card_signer
from starlette.applications import Starlette

port, key_file = int(sys.argv[1]), sys.argv[2]
url = f"http://127.0.0.1:{port}"


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        await event_queue.enqueue_event(new_text_message(f"echo: {context.get_user_input()}", role=Role.ROLE_AGENT))

    async def cancel(self, context, event_queue):
        raise NotImplementedError


card = AgentCard(
    name="echo",
    description="Repeats text, also ünïcode.",
    version="1.0.0",
    supported_interfaces=[
        AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0"),
        AgentInterface(url=f"{url}/rest", protocol_binding="HTTP+JSON", protocol_version="1.0"),
    ],
    capabilities=AgentCapabilities(streaming=False),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[
        AgentSkill(id="echo", name="Echo", description="Repeats text", tags=["text"]),
        AgentSkill(id="admin", name="Admin", description="Administers", tags=["admin"]),
    ],
)
with open(key_file, encoding="utf-8") as file:
    sign = create_agent_card_signer(file.read(), {"alg": "ES256", "kid": "agent", "typ": "JOSE", "jku": None})
card = sign(card)
handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=card)
routes = [
    *create_agent_card_routes(card),
    *create_jsonrpc_routes(handler, "/rpc"),
    *create_rest_routes(handler, path_prefix="/rest"),
]


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("ready", flush=True)


Server(uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="warning")).run()

"""A client of the Python SDK: client.py URL BINDING KEY_FILE [HEADER VALUE]. Prints the skills of the card and the text of the response as JSON."""

import asyncio
import json
import sys

import httpx
from a2a.client import ClientConfig, create_client
from a2a.helpers import get_stream_response_text, new_text_message
from a2a.types import Role, SendMessageRequest
from a2a.utils.signing import create_signature_verifier

url, binding, key_file, *header = sys.argv[1:]


async def main():
    with open(key_file, encoding="utf-8") as file:
        key = file.read()
    verify = create_signature_verifier(lambda kid, jku: key, ["ES256"])
    seen = []

    def check(card):
        verify(card)
        seen.extend(skill.id for skill in card.skills)

    async with httpx.AsyncClient(headers=dict([header]) if header else {}) as http:
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], streaming=False)
        client = await create_client(url, config, signature_verifier=check)
        request = SendMessageRequest(message=new_text_message("hellö", role=Role.ROLE_USER))
        texts = [get_stream_response_text(event) async for event in client.send_message(request)]
    print(json.dumps({"skills": seen, "texts": texts}))


asyncio.run(main())

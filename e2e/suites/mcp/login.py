"""Logs in as a client of the official Python SDK and calls a tool: python login.py URL"""

import asyncio
import sys
from urllib.parse import parse_qs, urlparse

import httpx
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientMetadata

REDIRECT = "http://localhost:1/callback"


class Memory(TokenStorage):
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Login:
    """Follows the redirects of a login that shows no form."""

    redirected = ""

    async def follow(self, url):
        async with httpx.AsyncClient() as http:
            while not url.startswith(REDIRECT):
                response = await http.get(url)
                if "location" not in response.headers:
                    raise RuntimeError(f"{url} responded {response.status_code}: {response.text}")
                url = str(httpx.URL(url).join(response.headers["location"]))
        self.redirected = url

    async def result(self):
        query = parse_qs(urlparse(self.redirected).query)
        return query["code"][0], query["state"][0]


async def main():
    login = Login()
    metadata = OAuthClientMetadata(client_name="e2e", redirect_uris=[REDIRECT], grant_types=["authorization_code"], response_types=["code"])
    auth = OAuthClientProvider(sys.argv[1], metadata, Memory(), redirect_handler=login.follow, callback_handler=login.result)
    async with streamablehttp_client(sys.argv[1], auth=auth) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            result = await session.call_tool("search", {"text": "x"})
            print(result.content[0].text)


asyncio.run(main())

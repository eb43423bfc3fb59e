import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
  UnauthorizedError as UnauthorizedErrorV2,
  type OAuthClientProvider as OAuthClientProviderV2,
} from '@modelcontextprotocol/client'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { logIn, type OAuthSession } from './oauth-client.ts'

/** Takes a user from the authorization URL to the redirect back to the client. */
type Login = (authorizationUrl: URL, redirectUrl: string) => Promise<URL>

const info = { name: 'e2e', version: '1' }

/**
 * Connects a client of the official SDK (major version 1 or 2) that is challenged with 401, logs in and reconnects with a token. Returns the connected
 * client. With `isStrict` the client checks the issuer of the redirect (RFC 9207), which only version 2 supports.
 */
export async function connectWithLogin(url: URL, session: OAuthSession, { sdk = 1, login = logIn, isStrict = false }: LoginOptions = {}): Promise<Client> {
  return sdk === 1 ? connectOlder(url, session, login) : ((await connectToday(url, session, login, isStrict)) as unknown as Client)
}

export interface LoginOptions {
  readonly sdk?: 1 | 2
  readonly login?: Login
  readonly isStrict?: boolean
}

async function connectOlder(url: URL, authProvider: OAuthSession, login: Login): Promise<Client> {
  const open = (): StreamableHTTPClientTransport => new StreamableHTTPClientTransport(url, { authProvider })
  const refused = open()
  await new Client(info).connect(refused).catch((error: unknown) => {
    if (!(error instanceof UnauthorizedError)) throw error
  })
  await refused.finishAuth((await followLogin(authProvider, login)).get('code') ?? '')
  const client = new Client(info)
  await client.connect(open())
  return client
}

async function connectToday(url: URL, session: OAuthSession, login: Login, isStrict: boolean): Promise<ClientV2> {
  const open = (): TransportV2 => new TransportV2(url, { authProvider: session as unknown as OAuthClientProviderV2 })
  const refused = open()
  await new ClientV2(info).connect(refused).catch((error: unknown) => {
    if (!(error instanceof UnauthorizedErrorV2)) throw error
  })
  const redirected = await followLogin(session, login)
  if (isStrict) await refused.finishAuth(redirected)
  else await refused.finishAuth(redirected.get('code') ?? '')
  const client = new ClientV2(info)
  await client.connect(open())
  return client
}

async function followLogin({ authorizationUrl, redirectUrl }: OAuthSession, login: Login): Promise<URLSearchParams> {
  if (authorizationUrl === undefined) throw new Error('the client was not asked to log in')
  const { searchParams } = await login(authorizationUrl, redirectUrl)
  if (!searchParams.has('code')) throw new Error(`no code in the redirect: ${searchParams.toString()}`)
  return searchParams
}

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { OAuthClientProvider, OAuthDiscoveryState } from '@modelcontextprotocol/sdk/client/auth.js'

type Of<M extends 'saveClientInformation' | 'saveTokens'> = Parameters<NonNullable<OAuthClientProvider[M]>>[0]

/** OAuth state of an SDK client during login, in memory. */
export class OAuthSession implements OAuthClientProvider {
  readonly redirectUrl: string
  readonly clientMetadata
  /** URL at which the user logs in; set by the SDK. */
  authorizationUrl: URL | undefined
  client: Of<'saveClientInformation'> | undefined
  granted: Of<'saveTokens'> | undefined
  #verifier = ''
  #discovered: OAuthDiscoveryState | undefined

  constructor(redirectUrl = 'http://127.0.0.1:8976/callback') {
    this.redirectUrl = redirectUrl
    this.clientMetadata = {
      client_name: 'example',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }
  }

  clientInformation = () => this.client
  saveClientInformation = (client: Of<'saveClientInformation'>): void => void (this.client = client)
  tokens = () => this.granted
  saveTokens = (tokens: Of<'saveTokens'>): void => void (this.granted = tokens)
  redirectToAuthorization = (url: URL): void => void (this.authorizationUrl = url)
  saveCodeVerifier = (verifier: string): void => void (this.#verifier = verifier)
  codeVerifier = (): string => this.#verifier
  saveDiscoveryState = (state: OAuthDiscoveryState): void => void (this.#discovered = state)
  discoveryState = () => this.#discovered
}

/** Logs in like a browser: follows redirects and submits every form. Returns the redirect to the client; rejects with the page at which this is not possible. */
export async function logIn(start: URL, redirectUrl: string, username = 'bob', password = 'secret'): Promise<URL> {
  const cookies = new Map<string, string>()
  let next: { url: URL; form?: URLSearchParams } = { url: start }
  for (let step = 0; step < 20; step++) {
    const { url, form } = next
    if (url.href.startsWith(redirectUrl)) return url
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie }, ...(form && { method: 'POST', body: form }) })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const text = await response.text()
    const location = response.headers.get('location')
    const action = /<form[^>]*\baction="([^"]+)"/.exec(text)?.[1]
    if (location !== null) next = { url: new URL(location, url) }
    else if (action !== undefined && response.ok) next = { url: new URL(decode(action), url), form: fillIn(text, username, password) }
    else throw new Error(`cannot log in at ${url.href}: ${response.status} ${text}`)
  }
  throw new Error('the login took too many steps')
}

function fillIn(page: string, username: string, password: string): URLSearchParams {
  const form = new URLSearchParams()
  for (const [input] of page.matchAll(/<input\b[^>]*>/g)) {
    const read = (attribute: string): string => decode(new RegExp(`\\b${attribute}="([^"]*)"`).exec(input)?.[1] ?? '')
    const name = read('name')
    if (name !== '') form.set(name, read('type') === 'password' ? password : /^(login|username)$/.test(name) ? username : read('value'))
  }
  return form
}

const decode = (html: string): string => html.replaceAll('&amp;', '&').replaceAll('&#x2F;', '/').replaceAll('&#x3D;', '=')

/** Starts a server on loopback that waits for the redirect after a login in a browser. */
export async function startCallback(): Promise<{ readonly url: string; readonly redirected: Promise<URL>; close(): Promise<void> }> {
  let arrive: (url: URL) => void
  const redirected = new Promise<URL>((resolve) => (arrive = resolve))
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>done</title>You are logged in.')
    if (request.url?.startsWith('/callback') === true) arrive(new URL(request.url, 'http://127.0.0.1'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`, redirected, close }
}

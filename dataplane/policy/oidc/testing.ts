import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from 'jose'

/** What a provider does wrong, or differently. */
interface Behaviour {
  claims?: JWTPayload
  /** Members of the token response that replace its own; undefined ones are left out. */
  tokens?: Record<string, unknown>
  status?: number
  document?: Record<string, unknown>
}

/** An OpenID provider that logs everyone in, for failures that real ones do not have. */
export async function startProvider() {
  let kid = 0
  let keys = await generateKeyPair('ES256')
  const behaviour: Behaviour = {}
  const requests: { path: string; body: URLSearchParams; authorization: string | undefined }[] = []
  let issuer = ''
  let nonce = ''
  const idToken = async (): Promise<string> => {
    const claims = { nonce, groups: ['staff'], ...behaviour.claims }
    const token = new SignJWT({ sub: 'ann', iss: issuer, aud: 'gateway', ...claims }).setProtectedHeader({ alg: 'ES256', kid: `k${kid}` }).setIssuedAt()
    return token.setExpirationTime(claims.exp ?? '10m').sign(keys.privateKey)
  }
  const answer = async (path: string): Promise<object> => {
    if (path.endsWith('openid-configuration')) {
      const [authorization_endpoint, token_endpoint, jwks_uri, end_session_endpoint] = ['auth', 'token', 'keys', 'logout'].map((name) => `${issuer}/${name}`)
      return { issuer, authorization_endpoint, token_endpoint, jwks_uri, end_session_endpoint, ...behaviour.document }
    }
    if (path.endsWith('/keys')) return { keys: [{ ...(await exportJWK(keys.publicKey)), kid: `k${kid}`, alg: 'ES256', use: 'sig' }] }
    const own = { access_token: `access-${requests.length}`, refresh_token: `refresh-${requests.length}`, expires_in: 300, token_type: 'Bearer' }
    return { ...own, id_token: await idToken(), ...behaviour.tokens }
  }
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      const path = request.url ?? ''
      requests.push({ path, body: new URLSearchParams(text), authorization: request.headers.authorization })
      void answer(path).then((body) => response.writeHead(path.endsWith('/token') ? (behaviour.status ?? 200) : 200).end(JSON.stringify(body)))
    })
  })
  const port = await new Promise<number>((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
  issuer = `http://127.0.0.1:${port}/realm`
  return {
    issuer,
    port,
    behaviour,
    requests,
    /** The user logs in: the URL that the browser returns to. */
    login(authorization: string, change: Record<string, string | undefined> = {}): string {
      const { searchParams } = new URL(authorization)
      nonce = searchParams.get('nonce') ?? ''
      const back = new URL(searchParams.get('redirect_uri') ?? '')
      for (const [name, value] of Object.entries({ code: 'the-code', state: searchParams.get('state') ?? '', ...change }))
        if (value !== undefined) back.searchParams.set(name, value)
      return back.href
    },
    async rotateKeys(): Promise<void> {
      keys = await generateKeyPair('ES256')
      kid++
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

/** Cookies as a browser keeps them. */
export class Jar {
  readonly cookies = new Map<string, string>()

  store(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      const at = pair.indexOf('=')
      if (line.includes('Max-Age=0')) this.cookies.delete(pair.slice(0, at))
      else this.cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
  }

  get header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }
}

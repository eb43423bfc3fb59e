import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SignJWT } from 'jose'

/**
 * A mock of Auth0: the issuer ends in a slash, only requests with an `audience` get a JWT as access token, and users are logged in without a form.
 */
export interface Auth0 {
  readonly port: number
  readonly issuer: string
  /** Method and path of every request, oldest first. */
  readonly requestLog: string[]
  close(): Promise<void>
}

interface Grant {
  readonly audience: string | null
  readonly challenge: string | null
}

export async function startAuth0(): Promise<Auth0> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const grants = new Map<string, Grant>()
  const requestLog: string[] = []
  let issuer = ''

  const redeem = async (form: URLSearchParams): Promise<object | undefined> => {
    const grant = grants.get(form.get('code') ?? '')
    if (
      grant?.challenge !==
      createHash('sha256')
        .update(String(form.get('code_verifier')))
        .digest('base64url')
    )
      return undefined
    if (grant.audience === null) return { access_token: 'opaque', token_type: 'Bearer' }
    const token = new SignJWT({ iss: issuer, aud: grant.audience, sub: 'auth0|bob' }).setProtectedHeader({ alg: 'ES256', kid: 'a' }).setExpirationTime('5m')
    return { access_token: await token.sign(privateKey), token_type: 'Bearer' }
  }
  const respond = async (request: IncomingMessage, { pathname, searchParams }: URL): Promise<[status: number, body: object | string]> => {
    switch (`${request.method} ${pathname}`) {
      case 'GET /.well-known/oauth-authorization-server':
        return [
          200,
          {
            issuer,
            authorization_endpoint: `${issuer}authorize`,
            token_endpoint: `${issuer}oauth/token`,
            registration_endpoint: `${issuer}oidc/register`,
            response_types_supported: ['code'],
            code_challenge_methods_supported: ['S256'],
          },
        ]
      case 'GET /.well-known/jwks.json':
        return [200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'a', alg: 'ES256', use: 'sig' }] }]
      case 'POST /oidc/register':
        return [201, { ...(JSON.parse(await text(request)) as object), client_id: 'dynamic' }]
      case 'GET /authorize': {
        const code = randomUUID()
        grants.set(code, { audience: searchParams.get('audience'), challenge: searchParams.get('code_challenge') })
        return [302, `${searchParams.get('redirect_uri')}?${new URLSearchParams({ code, state: searchParams.get('state') ?? '' }).toString()}`]
      }
      case 'POST /oauth/token': {
        const token = await redeem(new URLSearchParams(await text(request)))
        return token === undefined ? [400, { error: 'invalid_grant' }] : [200, token]
      }
      default:
        return [404, {}]
    }
  }
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    requestLog.push(`${request.method} ${url.pathname}`)
    void respond(request, url).then(([status, body]) => {
      if (typeof body === 'string') response.writeHead(status, { location: body }).end()
      else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  issuer = `http://localhost:${port}/`
  return {
    port,
    issuer,
    requestLog,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

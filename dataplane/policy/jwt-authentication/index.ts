import type { JWTAuthentication } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { setLogField } from '../../observe/telemetry/access-log/access-log.ts'
import { findCredentials, isTokenShaped, removeCredentials } from '../credentials.ts'
import type { PolicyState } from '../state.ts'
import { createIntrospector } from './introspect.ts'
import { createVerifier, jwtError, noToken, type Claims, type VerifyToken } from './verify.ts'
import { variables } from '../../request/exchange/variables.ts'

/**
 * Verifies tokens in `Authorization: Bearer` (traffic.md §8.3): JSON Web Tokens with the keys of the providers, others by introspection. Later policies see the claims as
 * `jwt`; a verified token is removed from the header. `mode` is Strict (default: a token is required), Optional (a token must be valid) or
 * Permissive (requests are never rejected). Without usable keys no token is valid.
 *
 * @param isBesideApiKeys the route has `apiKeyAuthentication` too: credentials without the form of a token are ignored.
 * @throws ProxyError JWT (401), for each rejected request; JWT_UNAVAILABLE (503) if the introspection endpoint fails.
 * @example
 * traffic:
 *   jwtAuthentication:
 *     mode: Strict
 *     providers:
 *       - issuer: https://issuer.example.com
 *         audiences: [shop]
 *         jwks:
 *           inline: '{"keys": […]}'
 */
export function compileJwtAuthentication(config: JWTAuthentication, state: PolicyState, isBesideApiKeys = false): Policy {
  const mode = config.mode ?? 'Strict'
  const opaque = config.providers.find(({ introspection }) => introspection !== undefined)
  const secret = opaque?.introspection?.secretRef.secret === undefined ? undefined : state.secrets.get(opaque.introspection.secretRef.secret)
  const verify = state.kept.get(config, [secret], () => createVerifier(config, state.epochMs, opaque && createIntrospector(opaque, secret?.data, state)))
  // A destination lives as long as the config that asks for it.
  if (opaque?.introspection !== undefined) state.destinations.forPolicy(opaque.introspection.backendRef)
  const isConcerned = isBesideApiKeys ? isTokenShaped : undefined
  const accept = (exchange: Exchange, claims: Claims): void => {
    removeCredentials(exchange.request.headers, 'bearer', isConcerned)
    variables.jwt.set(exchange, claims)
    if (typeof claims['sub'] === 'string') setLogField(exchange, 'jwt.sub', claims['sub'])
  }
  const reject = (error: unknown): void => {
    if (mode !== 'Permissive' || !(error instanceof ProxyError)) throw error
  }
  return withSides({
    request(exchange) {
      const token = findCredentials(exchange.request.headers, 'bearer', isConcerned)
      if (token === undefined) {
        if (mode === 'Strict') throw noToken()
        return
      }
      let verified: ReturnType<VerifyToken>
      try {
        verified = check(verify, token, exchange.connection.remoteAddress)
      } catch (error) {
        return reject(error)
      }
      if (verified instanceof Promise) return verified.then((claims) => accept(exchange, claims), reject)
      accept(exchange, verified)
    },
  })
}

function check(verify: VerifyToken, token: string | null, client: string): ReturnType<VerifyToken> {
  if (token === null || token === '') throw jwtError('malformed authorization header')
  return verify(token, client)
}

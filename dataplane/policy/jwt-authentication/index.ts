import type { JWTAuthentication } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { setLogField } from '../../observe/telemetry/access-log/access-log.ts'
import { findCredentials, isTokenShaped, removeCredentials } from '../credentials.ts'
import type { PolicyState } from '../state.ts'
import { createVerifier, jwtError, noToken, type Claims, type VerifyToken } from './verify.ts'
import { variables } from '../../request/exchange/variables.ts'

/**
 * Verifies JSON Web Tokens in `Authorization: Bearer` (traffic.md §8.3) with the keys of the providers. Later policies see the claims as
 * `jwt`; a verified token is removed from the header. `mode` is Strict (default: a token is required), Optional (a token must be valid) or
 * Permissive (requests are never rejected). Without usable keys no token is valid.
 *
 * @param isBesideApiKeys the route has `apiKeyAuthentication` too: credentials without the form of a token are ignored.
 * @throws ProxyError JWT (401), for each rejected request.
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
export function compileJwtAuthentication(config: JWTAuthentication, { kept, epochMs }: PolicyState, isBesideApiKeys = false): Policy {
  const mode = config.mode ?? 'Strict'
  const verify = kept.get(config, [], () => createVerifier(config, epochMs))
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
        verified = check(verify, token)
      } catch (error) {
        return reject(error)
      }
      if (verified instanceof Promise) return verified.then((claims) => accept(exchange, claims), reject)
      accept(exchange, verified)
    },
  })
}

function check(verify: VerifyToken, token: string | null): ReturnType<VerifyToken> {
  if (token === null || token === '') throw jwtError('malformed authorization header')
  return verify(token)
}

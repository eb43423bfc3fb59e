import type { JWTAuthentication } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../exchange/context.ts'
import { ProxyError } from '../../exchange/error.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { setLogField } from '../../telemetry/access-log/access-log.ts'
import { findCredentials, isTokenShaped, removeCredentials } from '../credentials.ts'
import type { PolicyState } from '../state.ts'
import { createVerifier, refuse, type Claims, type VerifyToken } from './verify.ts'
import { variables } from '../../exchange/variables.ts'

/**
 * JSON Web Tokens in `Authorization: Bearer` (traffic.md §8.3). Verified claims are `jwt` for whoever comes after, and the token
 * goes no further. Without usable keys no token is valid. `isBesideApiKeys`: only what is shaped like a token concerns it; the other
 * bearer credentials are API keys.
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
        if (mode === 'Strict') throw refuse('no bearer token found')
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
  if (token === null || token === '') throw refuse('malformed authorization header')
  return verify(token)
}

import type { JWTAuthentication } from '#gen/config/types.ts'
import type { Policy } from '../../context.ts'
import { ProxyError } from '../../error.ts'
import { setLogField } from '../../telemetry/accesslog.ts'
import { findCredentials, isTokenShaped, removeCredentials } from '../credentials.ts'
import type { PolicyState } from '../state.ts'
import { createVerifier, refuse, type Claims, type VerifyToken } from './verify.ts'

/**
 * JSON Web Tokens in `Authorization: Bearer` (traffic.md §8.3). Verified claims are `jwt` for whoever comes after, and the token
 * goes no further. Without usable keys no token is valid. `isBesideApiKeys`: only what is shaped like a token concerns it; the other
 * bearer credentials are API keys.
 */
export function compileJwtAuthentication(config: JWTAuthentication, { kept, epochMs }: PolicyState, isBesideApiKeys = false): Policy {
  const mode = config.mode ?? 'Strict'
  const verify = kept.get(config, [], () => createVerifier(config, epochMs))
  const isConcerned = isBesideApiKeys ? isTokenShaped : undefined
  return async (c, next) => {
    const { exchange } = c.var
    const { headers } = exchange.request
    const token = findCredentials(headers, 'bearer', isConcerned)
    if (token === undefined) {
      if (mode === 'Strict') throw refuse('no bearer token found')
      return next()
    }
    let claims: Claims
    try {
      const verified = check(verify, token)
      claims = verified instanceof Promise ? await verified : verified
    } catch (error) {
      if (mode === 'Permissive' && error instanceof ProxyError) return next()
      throw error
    }
    removeCredentials(headers, 'bearer', isConcerned)
    exchange.set('jwt', claims)
    if (typeof claims['sub'] === 'string') setLogField(exchange, 'jwt.sub', claims['sub'])
    return next()
  }
}

function check(verify: VerifyToken, token: string | null): ReturnType<VerifyToken> {
  if (token === null || token === '') throw refuse('malformed authorization header')
  return verify(token)
}

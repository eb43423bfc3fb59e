import { Secret } from '#api/cel/index.ts'
import type { APIKeyAuthentication } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { bearerChallenge, findCredentials, isKeyShaped, removeCredentials } from '../credentials.ts'
import type { PolicyState } from '../state.ts'
import { findGoogleKey, removeGoogleKeys } from './google.ts'
import { digestKey, readKeys, type KeyTable } from './keys.ts'
import { variables } from '../../request/exchange/variables.ts'

/**
 * Authenticates clients by API keys in `Authorization: Bearer`, or where clients of Google send them (traffic.md §8.5). Keys are entries of the referenced Secrets. A key
 * whose `expires` has passed is invalid. Later policies see the metadata of the key, and the key as a secret, as `apiKey`; the header is removed. `mode` is Strict (default), Optional
 * or Permissive. Without any keys, all requests are rejected, unless the mode is Permissive.
 *
 * @param isBesideTokens the route has `jwtAuthentication` too: credentials that have the form of a JSON Web Token are ignored.
 * @throws ProxyError API_KEY (401), for each rejected request.
 * @example
 * traffic:
 *   apiKeyAuthentication:
 *     mode: Strict
 *     secretRef:
 *       name: clients
 */
export function compileApiKeyAuthentication(config: APIKeyAuthentication, state: PolicyState, isBesideTokens = false): Policy {
  const mode = config.mode ?? 'Strict'
  const table = compileKeys(config, state)
  const { epochMs } = state
  const isConcerned = isBesideTokens ? isKeyShaped : undefined
  return withSides({
    request(exchange) {
      const { headers } = exchange.request
      const bearer = findCredentials(headers, 'bearer', isConcerned)
      const isGoogle = bearer === undefined
      const key = isGoogle ? findGoogleKey(exchange.request, (found) => table.has(digestKey(found))) : bearer
      // An empty credential authenticates nobody, whatever digests the Secrets have.
      const known = typeof key === 'string' && key !== '' ? table.get(digestKey(key)) : undefined
      if (known === undefined || (known.expiresMs !== Infinity && known.expiresMs <= epochMs())) {
        if (mode === 'Permissive' || (mode === 'Optional' && key === undefined && table.size > 0)) return
        throw key === undefined
          ? new ProxyError('API_KEY', { detail: 'no API Key found', headers: bearerChallenge() })
          : new ProxyError('API_KEY', { detail: 'invalid credentials', headers: bearerChallenge('invalid_token') })
      }
      if (isGoogle) removeGoogleKeys(exchange.request)
      else removeCredentials(headers, 'bearer', isConcerned)
      variables.apiKey.set(exchange, { metadata: known.metadata, ...known.metadata, key: new Secret(key ?? '') })
    },
  })
}

function compileKeys(config: APIKeyAuthentication, { secrets, kept }: PolicyState): KeyTable {
  const names = config.secretSelector?.secrets ?? (config.secretRef?.secret === undefined ? [] : [config.secretRef.secret])
  const found = names.flatMap((name) => secrets.get(name) ?? [])
  return kept.get(config, found, () => readKeys(found))
}

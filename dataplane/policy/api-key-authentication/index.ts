import { Secret } from '#api/cel/index.ts'
import type { APIKeyAuthentication } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../exchange/context.ts'
import { ProxyError } from '../../exchange/error.ts'
import { findCredentials, isKeyShaped, removeCredentials } from '../credentials.ts'
import type { PolicyState } from '../state.ts'
import { digestKey, readKeys, type KeyTable } from './keys.ts'
import { variables } from '../../exchange/variables.ts'

/**
 * API keys in `Authorization: Bearer` (traffic.md §8.5). The metadata of the key is `apiKey` for whoever comes after, with the
 * key as a secret, and the key goes no further. Without any keys nobody passes, unless the mode refuses no one. `isBesideTokens`:
 * what is shaped like a JSON Web Token is one, and no API key.
 */
export function compileApiKeyAuthentication(config: APIKeyAuthentication, state: PolicyState, isBesideTokens = false): Policy {
  const mode = config.mode ?? 'Strict'
  const table = compileKeys(config, state)
  const isConcerned = isBesideTokens ? isKeyShaped : undefined
  return withSides({
    request(exchange) {
      const { headers } = exchange.request
      const key = findCredentials(headers, 'bearer', isConcerned)
      const metadata = typeof key === 'string' ? table.get(digestKey(key)) : undefined
      if (metadata === undefined) {
        if (mode === 'Permissive' || (mode === 'Optional' && key === undefined && table.size > 0)) return
        throw new ProxyError('API_KEY', { detail: key === undefined ? 'no API Key found' : 'invalid credentials' })
      }
      removeCredentials(headers, 'bearer', isConcerned)
      variables.apiKey.set(exchange, { ...metadata, key: new Secret(key ?? '') })
    },
  })
}

function compileKeys(config: APIKeyAuthentication, { secrets, kept }: PolicyState): KeyTable {
  const names = config.secretSelector?.secrets ?? (config.secretRef?.secret === undefined ? [] : [config.secretRef.secret])
  const found = names.flatMap((name) => secrets.get(name) ?? [])
  return kept.get(config, found, () => readKeys(found))
}

import { isUtf8 } from 'node:buffer'
import type { BasicAuthentication } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { findCredentials, removeCredentials } from '../credentials.ts'
import type { PolicyState } from '../state.ts'
import { checkInThread, type CheckPassword } from './checks.ts'
import { createUserVerifier, readUsers, type VerifyUser } from './users.ts'
import { variables } from '../../request/exchange/variables.ts'

/** Entry of the Secret that holds the htpasswd file. */
const ENTRY = '.htaccess'

/**
 * HTTP basic authentication (RFC 7617, traffic.md §8.4). Users are lines of an htpasswd file, inline or in the entry `.htaccess` of a
 * Secret. Later policies see the user as `basicAuth.username`; the header is removed. `mode` is Strict (default) or Optional, `realm`
 * appears in the challenge. Without a list of users, all requests are rejected, whatever the mode.
 *
 * @throws ProxyError BASIC (401), for each rejected request.
 * @example
 * traffic:
 *   basicAuthentication:
 *     realm: Example
 *     secretRef:
 *       name: users
 */
export function compileBasicAuthentication(config: BasicAuthentication, state: PolicyState, check: CheckPassword = checkInThread): Policy {
  const isOptional = config.mode === 'Optional'
  const challenge = `Basic realm="${quote(config.realm ?? 'Restricted')}"`
  const unauthorized = (detail: string): ProxyError => new ProxyError('BASIC', { detail, headers: { 'www-authenticate': challenge } })
  const verify = compileUsers(config, state, check)
  const judge = (exchange: Exchange, username: string, isRight: boolean): void => {
    if (!isRight) throw unauthorized('invalid credentials')
    removeCredentials(exchange.request.headers, 'basic')
    variables.basicAuth.set(exchange, { username })
  }
  return withSides({
    request(exchange) {
      if (verify === undefined) throw unauthorized('no users are known')
      const credentials = findCredentials(exchange.request.headers, 'basic')
      if (credentials === undefined) {
        if (isOptional) return
        throw unauthorized('no basic authentication credentials found')
      }
      const decoded = credentials === null ? undefined : decode(credentials)
      if (decoded === undefined) throw unauthorized('invalid credentials')
      const { username, password } = decoded
      const isRight = verify(username, password, { client: exchange.connection.remoteAddress, onAbort: (callback) => exchange.onAbort(callback) })
      return typeof isRight === 'boolean' ? judge(exchange, username, isRight) : isRight.then((result) => judge(exchange, username, result))
    },
  })
}

function compileUsers(config: BasicAuthentication, { secrets, kept }: PolicyState, check: CheckPassword): VerifyUser | undefined {
  const secret = config.secretRef?.secret === undefined ? undefined : secrets.get(config.secretRef.secret)
  const lines = config.users ?? secret?.data?.[ENTRY]?.split(/\r?\n/)
  return lines === undefined ? undefined : kept.get(config, [secret], () => createUserVerifier(readUsers(lines), check))
}

/** User and password (RFC 7617 §2); undefined if malformed. Neither may contain control characters. */
function decode(credentials: string): { username: string; password: string } | undefined {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(credentials)) return undefined
  const bytes = Buffer.from(credentials, 'base64')
  const text = isUtf8(bytes) ? bytes.toString() : ''
  const colon = text.indexOf(':')
  // An empty user or password authenticates nobody, whatever hashes the file has.
  if (colon < 1 || colon === text.length - 1) return undefined
  // oxlint-disable-next-line no-control-regex -- the expression looks for them
  return /[\0-\x1f\x7f]/.test(text) ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) }
}

/** Content of a quoted-string (RFC 9110 §5.6.4). Characters that are invalid in a header become `?`. */
function quote(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').replaceAll(/["\\]/g, String.raw`\$&`)
}

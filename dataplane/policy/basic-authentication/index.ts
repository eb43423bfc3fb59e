import { isUtf8 } from 'node:buffer'
import type { BasicAuthentication } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../exchange/context.ts'
import { ProxyError } from '../../exchange/error.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { findCredentials, removeCredentials } from '../credentials.ts'
import type { PolicyState } from '../state.ts'
import { checkInThread, type CheckPassword } from './checks.ts'
import { createUserVerifier, readUsers, type VerifyUser } from './users.ts'
import { variables } from '../../exchange/variables.ts'

/** Entry of the Secret that holds the htpasswd file. */
const ENTRY = '.htaccess'

/**
 * HTTP basic authentication (RFC 7617, traffic.md §8.4). The user is `basicAuth.username` for whoever comes after, and the
 * credentials go no further. Without a list of users nobody passes, in no mode.
 */
export function compileBasicAuthentication(config: BasicAuthentication, state: PolicyState, check: CheckPassword = checkInThread): Policy {
  const isOptional = config.mode === 'Optional'
  const challenge = `Basic realm="${quote(config.realm ?? 'Restricted')}"`
  const refuse = (detail: string): ProxyError => new ProxyError('BASIC', { detail, headers: { 'www-authenticate': challenge } })
  const verify = compileUsers(config, state, check)
  const judge = (exchange: Exchange, username: string, isRight: boolean): void => {
    if (!isRight) throw refuse('invalid credentials')
    removeCredentials(exchange.request.headers, 'basic')
    variables.basicAuth.set(exchange, { username })
  }
  return withSides({
    request(exchange) {
      if (verify === undefined) throw refuse('no users are known')
      const credentials = findCredentials(exchange.request.headers, 'basic')
      if (credentials === undefined) {
        if (isOptional) return
        throw refuse('no basic authentication credentials found')
      }
      const decoded = credentials === null ? undefined : decode(credentials)
      if (decoded === undefined) throw refuse('invalid credentials')
      const { username, password } = decoded
      const isRight = verify(username, password)
      return typeof isRight === 'boolean' ? judge(exchange, username, isRight) : isRight.then((result) => judge(exchange, username, result))
    },
  })
}

function compileUsers(config: BasicAuthentication, { secrets, kept }: PolicyState, check: CheckPassword): VerifyUser | undefined {
  const secret = config.secretRef?.secret === undefined ? undefined : secrets.get(config.secretRef.secret)
  const lines = config.users ?? secret?.data?.[ENTRY]?.split(/\r?\n/)
  return lines === undefined ? undefined : kept.get(config, [secret], () => createUserVerifier(readUsers(lines), check))
}

/** User and password of RFC 7617 §2; undefined when they are malformed. Neither may hold control characters. */
function decode(credentials: string): { username: string; password: string } | undefined {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(credentials)) return undefined
  const bytes = Buffer.from(credentials, 'base64')
  const text = isUtf8(bytes) ? bytes.toString() : ''
  const colon = text.indexOf(':')
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  return colon < 0 || /[\0-\x1f\x7f]/.test(text) ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) }
}

/** Inside of a quoted-string (RFC 9110 §5.6.4); what may not stand in a header becomes `?`. */
function quote(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').replaceAll(/["\\]/g, String.raw`\$&`)
}

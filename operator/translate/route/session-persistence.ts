import { createHash } from 'node:crypto'
import { parseDuration } from '#api/duration.ts'
import type { SessionPersistence as Config } from '#gen/config/types.ts'
import type { SessionPersistence } from '../../source/gateway-api.ts'
import { fault, type Fault } from '../../model/conditions.ts'
import type { BackendTarget } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'

/** A field name or cookie name (RFC 9110 §5.6.2, RFC 6265 §4.1.1). */
const NAME = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,128}$/
/** No `;`, which would begin another attribute, and no control character. */
const PATH = /^\/[!-:<-~]{0,1023}$/
/** Headers of responses that have a meaning of their own. */
const TAKEN = /^(?:connection|content-.*|date|host|keep-alive|location|set-cookie2?|te|trailer|transfer-encoding|upgrade|via|www-authenticate|x-forwarded-.*)$/i

/** The config of a rule's session persistence; a text if the field cannot be honoured. `rule` names the rule. */
export function readSessionPersistence(field: SessionPersistence, rule: string): Config | string {
  const { type = 'Cookie', sessionName, absoluteTimeout, cookieConfig, cookie = {}, header = {} } = field
  if (type !== 'Cookie' && type !== 'Header') return `type is "${type}"; write Cookie or Header`
  // Rules have no session in common, so that their cookies must not replace each other.
  const name = (type === 'Cookie' ? cookie.name : header.name) ?? sessionName ?? `proxy-session-${digest(rule)}`
  if (!NAME.test(name)) return `the name "${name}" is no name of a ${type.toLowerCase()}; use letters, digits, - and _`
  if (type === 'Header' && TAKEN.test(name)) return `the header "${name}" has another use; choose another name, such as x-session`
  const { path = '/' } = cookie
  if (type === 'Cookie' && !PATH.test(path)) return `cookie.path is "${path}"; write a path without spaces and semicolons, such as /`
  const timeoutMs = absoluteTimeout === undefined ? 0 : parseDuration(absoluteTimeout)
  if (timeoutMs === undefined) return `absoluteTimeout: ${absoluteTimeout} is not a duration; write for example 1h`
  const isPermanent = type === 'Cookie' && (cookie.lifetimeType ?? cookieConfig?.lifetimeType) === 'Permanent'
  if (isPermanent && timeoutMs === 0) return 'lifetimeType Permanent needs absoluteTimeout'
  return {
    type,
    name,
    ...(type === 'Cookie' && path !== '/' && { path }),
    ...(isPermanent && { isPermanent }),
    ...(timeoutMs > 0 && { absoluteTimeoutMs: timeoutMs }),
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** Gateway API (GEP-1619): a route with both kinds of affinity is rejected. `target` is permitted, so that nothing is revealed of other namespaces. */
export function findAffinity({ snapshot }: Context, { kind, key }: BackendTarget): Fault | undefined {
  const [namespace = '', name = ''] = key.split('/')
  if (kind !== 'Service' || snapshot.get('Service', namespace, name)?.spec.sessionAffinity !== 'ClientIP') return undefined
  return fault('UnsupportedValue', `sessionPersistence together with sessionAffinity of Service ${key}; remove one of them`, 'PX1117')
}

import { randomUUID, X509Certificate } from 'node:crypto'
import type { FrontendHTTP, XForwardedClientCert } from '#gen/config/types.ts'
import type { HeaderList } from '../http/headers.ts'
import { isForwardingHeader, isOwnHeader, ownHeaders } from '../http/own-headers.ts'
import { parseAltNames } from '../net/server/identity.ts'
import { ProxyError } from '../request/exchange/error.ts'
import type { ClientCertificate, Exchange } from '../request/exchange/exchange.ts'
import { compileClientIp } from './client-ip.ts'

const REQUEST_ID = 'x-request-id'
const PREFIX = 'x-forwarded-'
/** What an id of a trusted proxy may be: it is copied to logs and responses. */
const idForm = /^[\w.~+/=:-]{1,128}$/

/** Sets and checks the headers that tell upstreams where a request is from (traffic.md §10). */
export interface Forwarding {
  /**
   * Removes the headers that only the gateway or trusted proxies write, finds the client, and adds the headers of this hop.
   * @throws ProxyError CLIENT_ADDRESS (403) if a trusted proxy does not name the client, unless failureMode is FailOpen
   */
  receive(exchange: Exchange): void
}

/** Compiles `frontend.http` of a Gateway. By default no peer is trusted. */
export function compileForwarding({ clientIP, xForwardedClientCert: certificates }: FrontendHTTP = {}): Forwarding {
  const rules = clientIP && compileClientIp(clientIP)
  const isForged = (name: string): boolean => isOwnHeader(name) || isForwardingHeader(name) || name === rules?.header
  return {
    receive(exchange) {
      const { headers } = exchange.request
      const client = exchange.connection.tls?.clientCertificate
      const certificate = client && certificates && forwardedCertificate(certificates, client, headers)
      const isTrusted = rules?.trusts(exchange.connection.remoteAddress) === true
      exchange.requestId = (isTrusted ? receivedId(headers) : undefined) ?? createRequestId()
      const address = isTrusted ? rules.find(headers) : undefined
      headers.removeWhere(isTrusted ? isReplaced : isForged)
      if (certificate !== undefined) headers.append(ownHeaders.clientCertificate, certificate)
      addHop(exchange, isTrusted)
      if (address === 'invalid') {
        if (rules?.failsOpen !== true) throw new ProxyError('CLIENT_ADDRESS')
      } else if (address !== undefined) {
        const { remoteAddress, remotePort, rawAddress = remoteAddress, rawPort = remotePort } = exchange.connection
        exchange.connection = { ...exchange.connection, remoteAddress: address.address, remotePort: address.port, rawAddress, rawPort }
      }
    },
  }
}

/** Whether a header of a trusted proxy is removed: CGI servers read spellings with underscores as the header, and clients may have sent them. */
const isReplaced = (name: string): boolean => isOwnHeader(name) || (isForwardingHeader(name) && (name === REQUEST_ID || name.includes('_')))

/** Adds this hop. Values of a trusted proxy are those of the client's request: they are kept. */
function addHop({ connection, request, receivedAuthority, requestId = '' }: Exchange, isTrusted: boolean): void {
  const { remoteAddress, localPort, tls } = connection
  const { raw } = request.headers
  const proto = tls === undefined ? 'http' : 'https'
  if (!isTrusted) {
    raw.push('x-forwarded-for', remoteAddress, 'x-forwarded-proto', proto, 'x-forwarded-host', receivedAuthority)
    raw.push('x-forwarded-port', String(localPort), REQUEST_ID, requestId)
    return
  }
  const { headers } = request
  extend(headers, 'x-forwarded-for', remoteAddress, true)
  extend(headers, 'forwarded', remoteAddress.includes(':') ? `for="[${remoteAddress}]"` : `for=${remoteAddress}`, false)
  for (const [field, value] of [['proto', proto] as const, ['host', receivedAuthority] as const, ['port', String(localPort)] as const])
    if (!headers.has(PREFIX + field)) headers.append(PREFIX + field, value)
  headers.append(REQUEST_ID, requestId)
}

/** Adds an element to the last line of a list. */
function extend({ raw }: HeaderList, name: string, element: string, isCreated: boolean): void {
  const at = raw.findLastIndex((field, i) => i % 2 === 0 && field === name)
  if (at === -1) {
    if (isCreated) raw.push(name, element)
  } else raw[at + 1] = raw[at + 1] === '' ? element : `${raw[at + 1]}, ${element}`
}

function receivedId(headers: HeaderList): string | undefined {
  const [id = '', another] = headers.getAll(REQUEST_ID)
  return another === undefined && idForm.test(id) ? id : undefined
}

const COUNTERS = 0x1000
const byteTexts = Array.from({ length: 0x100 }, (_, byte) => byte.toString(16).padStart(2, '0'))
let lastMs = 0
let counter = 0
let head = ''
let tail = ''

/**
 * A UUID of version 7 (RFC 9562 §5.7): the time, a counter (RFC 9562 §6.2, method 1) and random bits, those of a UUID of version 4, which has them in
 * the same places. They are new in each millisecond and after the last value of the counter, so that ids of threads and replicas differ.
 */
export function createRequestId(nowMs = Date.now()): string {
  if (nowMs !== lastMs || ++counter === COUNTERS) {
    const hex = nowMs.toString(16).padStart(12, '0')
    lastMs = nowMs
    counter = 0
    head = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-`
    tail = randomUUID().slice(18)
  }
  // 70 to 7f: the version and the high bits of the counter.
  return head + byteTexts[0x70 + (counter >> 8)] + byteTexts[counter & 0xff] + tail
}

/** Elements of certificates by the fields that they have: a connection has many requests. */
const elements = new WeakMap<ClientCertificate, Map<XForwardedClientCert, string>>()

/** The value of `x-forwarded-client-cert` for a verified certificate; undefined: none. */
function forwardedCertificate(policy: XForwardedClientCert, certificate: ClientCertificate, headers: HeaderList): string | undefined {
  const { mode = 'Sanitize' } = policy
  if (mode === 'Sanitize') return undefined
  let known = elements.get(certificate)
  if (known === undefined) elements.set(certificate, (known = new Map()))
  let element = known.get(policy)
  if (element === undefined) known.set(policy, (element = describeCertificate(certificate, policy.certDetailsToAdd ?? [])))
  return mode === 'SanitizeSet' ? element : [...headers.getAll(ownHeaders.clientCertificate), element].join(',')
}

/** One element, as Envoy writes it: pairs with `;`, values with special characters in quotes, PEM URL-encoded. */
function describeCertificate({ pem, subject, chain = pem }: ClientCertificate, details: NonNullable<XForwardedClientCert['certDetailsToAdd']>): string {
  const { fingerprint256, subjectAltName } = new X509Certificate(pem)
  const names = parseAltNames(subjectAltName)
  const pairs = [`Hash=${fingerprint256.replaceAll(':', '').toLowerCase()}`]
  if (details.includes('Cert')) pairs.push(`Cert="${encodeURIComponent(pem)}"`)
  if (details.includes('Chain')) pairs.push(`Chain="${encodeURIComponent(chain)}"`)
  if (details.includes('Subject')) pairs.push(`Subject="${escape(subject)}"`)
  for (const type of ['URI', 'DNS'] as const)
    if (details.includes(type)) for (const { name } of names.filter((one) => one.type === type)) pairs.push(`${type}=${quote(name)}`)
  return pairs.join(';')
}

/** Text of a certificate may hold any character. */
const escape = (text: string): string => text.replaceAll(/[^ -~]/g, encodeURIComponent).replaceAll(/["\\]/g, '\\$&')
const quote = (text: string): string => (/[,;="\\ ]/.test(text) ? `"${escape(text)}"` : escape(text))

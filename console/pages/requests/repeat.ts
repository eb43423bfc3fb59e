import type { RequestRecord } from '#api/management/requests.ts'
import { emptyDraft, type Draft } from '../../api/draft.ts'

/** What the management API writes in place of credentials. */
const REDACTED = '<redacted>'
/** Set by the client for the body or the connection, not for the request. */
const OWN = new Set(['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding', 'upgrade', 'te', 'x-proxy-trace-id'])

type Repeated = Pick<RequestRecord, 'method' | 'host' | 'path' | 'gateway' | 'listener' | 'requestHeaders' | 'requestBytes'>

/** The request as a draft. Bodies and credentials are not recorded; the note says what is missing. */
export function toDraft({ method, host, path, gateway, listener, requestHeaders, requestBytes }: Repeated): Draft {
  const hidden = requestHeaders.filter(([, value]) => value.includes(REDACTED) || value.includes('\n'))
  const missing = [
    ...hidden.map(([name]) => `the value of ${name}`),
    ...(requestBytes > 0 ? ['the body'] : []),
    ...(path.includes(REDACTED) ? ['part of the URL'] : []),
  ]
  return {
    ...emptyDraft,
    method,
    url: `${host}${path}`,
    listener: gateway === null || listener === null ? '' : `${gateway}.${listener}`,
    headers: requestHeaders
      .filter((header) => !OWN.has(header[0].toLowerCase()) && !hidden.includes(header))
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
    note: `Repeats a recorded request.${missing.length === 0 ? '' : ` Not recorded: ${missing.join(', ')}.`}`,
  }
}

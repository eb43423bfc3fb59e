import { isIP } from 'node:net'
import { checkServerIdentity, createSecureContext, type ConnectionOptions, type PeerCertificate } from 'node:tls'
import type { UpstreamTls } from './types.ts'

/** TLS options of a transport, without ALPN. Throws if its key material cannot be loaded. */
export function tlsOptions(tls: UpstreamTls, host: string): ConnectionOptions {
  const servername = tls.servername ?? (isIP(host) === 0 ? host : '')
  return {
    servername,
    rejectUnauthorized: tls.verify !== 'none',
    checkServerIdentity: tls.verify === 'full' ? (_, certificate) => checkIdentity(tls, host, certificate) : () => undefined,
    secureContext: createSecureContext({
      ...(tls.ca !== undefined && { ca: [...tls.ca] }),
      ...(tls.cert !== undefined && { cert: tls.cert }),
      ...(tls.key !== undefined && { key: tls.key }),
    }),
  }
}

/** Checks that the certificate has one of the configured names, or the server name (BackendTLSPolicy `validation`). */
function checkIdentity(tls: UpstreamTls, host: string, certificate: PeerCertificate): Error | undefined {
  const names = tls.subjectAltNames
  if (names === undefined || names.length === 0) return checkServerIdentity(tls.servername ?? host, certificate)
  const uris = alternativeNames(certificate.subjectaltname ?? '', 'URI')
  const isMatch = names.some(({ type, value }) => (type === 'URI' ? uris.includes(value) : checkServerIdentity(value, certificate) === undefined))
  if (isMatch) return undefined
  // The code of `checkServerIdentity`, by which the failure is recognized as one of TLS.
  return Object.assign(new Error('certificate carries none of the configured subjectAltNames'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
}

/** Parses names of one type in Node's text form of subjectAltName, `DNS:a, URI:"b, c"`; values with special characters are JSON strings. */
function alternativeNames(text: string, type: string): string[] {
  const names: string[] = []
  for (const [, kind, quoted, plain] of text.matchAll(/(?:^|, )([A-Za-z ]+):(?:("(?:[^"\\]|\\.)*")|([^,]*))/g)) {
    if (kind === type) names.push(quoted === undefined ? (plain ?? '') : String(JSON.parse(quoted)))
  }
  return names
}

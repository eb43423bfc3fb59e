import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import type { ClientCertificate, TlsSession } from '../../request/exchange/exchange.ts'

/** Attributes of a TLS session after its handshake. An unverified client certificate is omitted. */
export function describeTlsSession(socket: TLSSocket, sni: string | undefined): TlsSession {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined
  return {
    sni,
    alpn: socket.alpnProtocol || undefined,
    protocol: socket.getProtocol() ?? undefined,
    clientCertificate: certificate && describeCertificate(certificate),
  }
}

function describeCertificate(certificate: X509Certificate): ClientCertificate {
  // Node writes one attribute per line, most general first; RFC 2253 writes them on one line, most specific first.
  const subject = certificate.subject?.split('\n') ?? []
  const commonName = subject.findLast((attribute) => attribute.startsWith('CN='))
  return {
    pem: certificate.toString(),
    subject: subject.toReversed().join(','),
    subjectCn: commonName?.slice(3) ?? '',
    issuer: certificate.issuer.split('\n').toReversed().join(','),
    subjectAltNames: parseAltNames(certificate.subjectAltName).map(({ name }) => name),
    get chain() {
      return chainOf(certificate)
    },
  }
}

/** A root is its own issuer. Clients may send many certificates. */
function chainOf(leaf: X509Certificate): string {
  let chain = ''
  for (let at: X509Certificate | undefined = leaf, depth = 0; at !== undefined && depth < MAX_CHAIN; at = at.issuerCertificate, depth++) chain += at.toString()
  return chain
}
const MAX_CHAIN = 10

/** Parses Node's text form, `DNS:a, URI:"b, c"`; values with special characters are JSON strings. */
export function parseAltNames(text = ''): { readonly type: string; readonly name: string }[] {
  const names = []
  for (const [, type = '', quoted, plain = ''] of text.matchAll(/(?:^|, )([A-Za-z ]+):(?:("(?:[^"\\]|\\.)*")|([^,]*))/g))
    names.push({ type, name: quoted === undefined ? plain : String(JSON.parse(quoted)) })
  return names
}

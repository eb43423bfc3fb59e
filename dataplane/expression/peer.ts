import { Ip } from '#api/cel/index.ts'
import type { Connection } from '../exchange/exchange.ts'

/** `source`: the client, and who its certificate says that it is; without a verified certificate those members are absent. */
export function viewSource({ remoteAddress, remotePort, rawAddress, rawPort, tls }: Connection): Record<string, unknown> {
  const address = Ip.fromSocket(remoteAddress)
  const certificate = tls?.clientCertificate
  const source = { address, port: remotePort, rawAddress: rawAddress === undefined ? address : Ip.fromSocket(rawAddress), rawPort: rawPort ?? remotePort }
  if (certificate === undefined) return source
  const { pem, subject, subjectCn, issuer, subjectAltNames } = certificate
  const spiffeId = subjectAltNames.find((name) => name.startsWith('spiffe://'))
  return { ...source, certificate: pem, subject, subjectCn, issuer, subjectAltNames, spiffeId, identity: spiffeId && parseIdentity(spiffeId) }
}

/** `destination`: where the client connected to; `hostname` is the server name that it asked TLS for. */
export function viewDestination({ localAddress, localPort, tls }: Connection): Record<string, unknown> {
  return { address: Ip.fromSocket(localAddress), port: localPort, hostname: tls?.sni }
}

/** `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`, as Kubernetes workloads have it. */
function parseIdentity(spiffeId: string): Record<string, string> | undefined {
  const [, trustDomain, namespace, serviceAccount] = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(spiffeId) ?? []
  return trustDomain === undefined || namespace === undefined || serviceAccount === undefined ? undefined : { trustDomain, namespace, serviceAccount }
}

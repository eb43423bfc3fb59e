import { Ip } from '#api/cel/index.ts'
import type { Connection } from '../exchange/exchange.ts'

/** The variable `source`: the client and the identity in its certificate. Without a verified certificate those members are absent. */
export function viewSource({ remoteAddress, remotePort, rawAddress, rawPort, tls }: Connection): Record<string, unknown> {
  const address = Ip.fromSocket(remoteAddress)
  const certificate = tls?.clientCertificate
  const source = { address, port: remotePort, rawAddress: rawAddress === undefined ? address : Ip.fromSocket(rawAddress), rawPort: rawPort ?? remotePort }
  if (certificate === undefined) return source
  const { pem, subject, subjectCn, issuer, subjectAltNames } = certificate
  const spiffeId = subjectAltNames.find((name) => name.startsWith('spiffe://'))
  return { ...source, certificate: pem, subject, subjectCn, issuer, subjectAltNames, spiffeId, identity: spiffeId && parseIdentity(spiffeId) }
}

/** The variable `destination`: the address that the client connected to; `hostname` is the SNI. */
export function viewDestination({ localAddress, localPort, tls }: Connection): Record<string, unknown> {
  return { address: Ip.fromSocket(localAddress), port: localPort, hostname: tls?.sni }
}

/** Parses `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`, the form of Kubernetes workloads. */
function parseIdentity(spiffeId: string): Record<string, string> | undefined {
  const [, trustDomain, namespace, serviceAccount] = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(spiffeId) ?? []
  return trustDomain === undefined || namespace === undefined || serviceAccount === undefined ? undefined : { trustDomain, namespace, serviceAccount }
}

import { isIP } from 'node:net'
import { parseTimeout } from '#api/duration.ts'
import type { BackendFull, BackendTLS, BackendTlsValidation, Keepalive, Policy, ResolvedSecret } from '#gen/config/types.ts'
import { compileBackendTransformation } from '../../request/transformation/backend.ts'
import { defaultSettings, type UpstreamSettings } from '../upstream/destination.ts'
import type { TcpProbes, UpstreamTls } from '../upstream/types.ts'
import { compileBackendAuth } from './auth.ts'
import { compileHealth } from './health.ts'
import { compileLoadBalancer } from './load-balancer.ts'
import type { ConfigSnapshot } from '../../config/store.ts'
import { compileTunnel, type FindDestination } from './tunnel.ts'

type Secrets = ConfigSnapshot['secrets']
type TlsSettings = Pick<UpstreamSettings, 'tls' | 'broken'>

/** Properties of a destination besides the attached policies. */
export interface Target {
  /** Default host name of SNI and certificate checks; undefined if there is none. */
  readonly host: string | undefined
  readonly port: number | undefined
  /** `spec.policies` of the backend itself; takes precedence over attached policies, field by field. */
  readonly inline: BackendFull | undefined
  /** Policies of Gateway, listener, route and rule, merged; lowest precedence. */
  readonly outer: BackendFull | undefined
}

const broken = (reason: string): TlsSettings => ({ tls: undefined, broken: reason })

/**
 * Connection settings of a destination. `attached` are the policies on it, oldest first: each section comes completely from the first
 * policy that sets it. `find` resolves the proxy of a tunnel. The tls section of a ProxyPolicy takes precedence over a BackendTLSPolicy,
 * because it is more specific.
 */
export function upstreamSettings(target: Target, attached: readonly Policy[], secrets: Secrets, find: FindDestination): UpstreamSettings {
  const relevant = attached.filter(({ target: selected }) => selected.port === undefined || selected.port === target.port)
  const own = [...(target.inline === undefined ? [] : [target.inline]), ...relevant.flatMap(({ backend }) => backend ?? [])]
  const sections = target.outer === undefined ? own : [...own, target.outer]
  const validation = relevant.find(({ backendTls }) => backendTls !== undefined)?.backendTls
  const tls = (validation === undefined ? sections : own).find((section) => section.tls !== undefined)?.tls
  const http = sections.find((section) => section.http !== undefined)?.http
  const auth = sections.find((section) => section.auth !== undefined)?.auth
  const health = sections.find((section) => section.health !== undefined)?.health
  const loadBalancer = sections.find((section) => section.loadBalancer !== undefined)?.loadBalancer
  const transformation = sections.find((section) => section.transformation !== undefined)?.transformation
  const tunnel = sections.find((section) => section.tunnel !== undefined)?.tunnel
  const tcp = sections.find((section) => section.tcp !== undefined)?.tcp
  return {
    connectMs: parseTimeout(tcp?.connectTimeout) ?? defaultSettings.connectMs,
    probes: tcp?.keepalive && probesOf(tcp.keepalive),
    requestMs: parseTimeout(http?.requestTimeout),
    httpVersion: http?.version,
    health: health && compileHealth(health),
    loadBalancer: loadBalancer && compileLoadBalancer(loadBalancer),
    auth: auth && compileBackendAuth(auth, secrets, find, target.host),
    transformation: transformation && compileBackendTransformation(transformation),
    tunnel: tunnel && compileTunnel(tunnel.backendRef, find),
    ...(tls !== undefined
      ? fromPolicy(tls, target, secrets)
      : validation !== undefined
        ? fromValidation(validation, target, secrets)
        : { tls: undefined, broken: undefined }),
  }
}

/** TCP keepalive settings with the defaults of part 1. */
function probesOf({ time, interval, retries = 9 }: Keepalive): TcpProbes {
  return { timeMs: parseTimeout(time) ?? 180_000, intervalMs: parseTimeout(interval) ?? 180_000, retries }
}

const nameOf = (host: string | undefined): string | undefined => (host !== undefined && isIP(host) === 0 ? host : undefined)

function fromValidation(validation: BackendTlsValidation, target: Target, secrets: Secrets): TlsSettings {
  const ca = validation.caCertificates?.flatMap((key) => secrets.get(key)?.certificate ?? [])
  const client = validation.clientCertificate === undefined ? undefined : secrets.get(validation.clientCertificate)
  if (ca?.length === 0 && validation.insecureSkipVerify !== 'All') return broken('no CA certificate of its TLS policy resolves')
  if (validation.clientCertificate !== undefined && client === undefined) return broken('the client certificate of its TLS policy does not resolve')
  const tls: UpstreamTls = {
    servername: validation.sni ?? nameOf(target.host),
    ca,
    cert: client?.certificate,
    key: client?.privateKey,
    subjectAltNames: validation.subjectAltNames,
    verify: verifyMode(validation.insecureSkipVerify),
    alpn: validation.alpn,
  }
  return { tls, broken: undefined }
}

function fromPolicy(policy: BackendTLS, target: Target, secrets: Secrets): TlsSettings {
  const clientRef = policy.mtlsCertificateRef?.[0]
  const client = lookup(clientRef, secrets)
  if (clientRef !== undefined && client?.privateKey === undefined) return broken(clientRef.invalid ?? 'the Secret of mtlsCertificateRef does not resolve')
  const caRef = policy.caCertificateRefs?.[0]
  const ca = lookup(caRef, secrets)?.certificate ?? client?.data?.['ca.cert']
  if (caRef !== undefined && ca === undefined && policy.insecureSkipVerify !== 'All')
    return broken(caRef.invalid ?? 'the ConfigMap of caCertificateRefs does not resolve')
  const tls: UpstreamTls = {
    servername: policy.sni ?? nameOf(target.host),
    ca: ca === undefined ? undefined : [ca],
    cert: client?.certificate,
    key: client?.privateKey,
    subjectAltNames: policy.verifySubjectAltNames?.map((value) => ({ type: 'Hostname', value })),
    verify: verifyMode(policy.insecureSkipVerify),
    alpn: policy.alpnProtocols,
  }
  return { tls, broken: undefined }
}

function lookup(reference: ResolvedSecret | undefined, secrets: Secrets): ReturnType<Secrets['get']> {
  return reference?.secret === undefined ? undefined : secrets.get(reference.secret)
}

function verifyMode(skip: BackendTLS['insecureSkipVerify']): UpstreamTls['verify'] {
  return skip === 'All' ? 'none' : skip === 'Hostname' ? 'chain' : 'full'
}

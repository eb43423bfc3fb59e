import { isIP } from 'node:net'
import { comparableHost, isApiHost, isListedHost, type Cloud } from '#api/identity-hosts.ts'
import type { UpstreamAuth } from '../upstream/auth.ts'
import type { DestinationConfig, UpstreamSettings } from '../upstream/destination.ts'

/** The cloud and the field of credentials that belong to the process or its machine, not to a Secret of the config. */
function identityOf(auth: UpstreamAuth): { readonly cloud: Cloud; readonly field: string } | undefined {
  if (auth.kind === 'aws' && auth.credentials === undefined) return { cloud: 'AWS', field: 'auth.aws' }
  if (auth.kind === 'azure' && !('secret' in auth.identity)) return { cloud: 'Azure', field: 'auth.azure' }
  return auth.kind === 'google' ? { cloud: 'Google Cloud', field: 'auth.gcp' } : undefined
}

/**
 * Replaces credentials of the process by broken ones if the destination may not receive them (traffic.md §13.3). `permitted`: patterns of hosts that
 * the owner of the process permits; undefined: all.
 */
export function guardIdentity(config: DestinationConfig, permitted: readonly string[] | undefined): DestinationConfig {
  const { auth } = config.settings
  if (auth === undefined || permitted === undefined) return config
  const identity = identityOf(auth)
  const problem = identity && findProblem(config, identity.cloud, permitted)
  if (identity === undefined || problem === undefined) return config
  const reason = 'the credentials of the gateway are not sent to this host'
  const fix = 'use the credentials of a Secret, or permit the host in upstreams.identityHosts of ProxyParameters'
  return { ...config, settings: { ...config.settings, auth: { kind: 'broken', reason, cause: `${identity.field}: ${reason}: ${problem}; ${fix}` } } }
}

function findProblem({ endpoints, hostname, isDynamic, settings }: DestinationConfig, cloud: Cloud, permitted: readonly string[]): string | undefined {
  if (isDynamic) return 'clients choose the host'
  for (const { address } of endpoints) {
    // The endpoints of a Service are addresses, or another name (ExternalName).
    const isListed = isListedHost(permitted, address) || (hostname !== undefined && isAddress(address) && isListedHost(permitted, hostname))
    if (!isListed && !isApiHost(cloud, address)) return `${address} is no API host of ${cloud}`
    // The owner knows how a permitted host is reached, but not who runs a proxy in between.
    const unsafe = isListed && settings.tunnel === undefined ? undefined : findUnsafeTls(settings, address)
    if (unsafe !== undefined) return `${address}: ${unsafe}`
  }
  return undefined
}

const isAddress = (host: string): boolean => isIP(host) !== 0

/** Why a server other than the host could receive the requests. */
function findUnsafeTls({ tls, tunnel }: UpstreamSettings, host: string): string | undefined {
  if (tls === undefined) return 'the connection has no TLS'
  if (tls.verify !== 'full') return 'tls.insecureSkipVerify does not verify the certificate'
  if (tls.servername === undefined || comparableHost(tls.servername) !== comparableHost(host)) return 'tls.sni is another name'
  if (tls.subjectAltNames !== undefined) return 'tls.verifySubjectAltNames accepts certificates of other names'
  if (tunnel !== undefined && tls.ca !== undefined) return 'tls.caCertificateRefs trusts other authorities than those of the system, through a tunnel'
  return undefined
}

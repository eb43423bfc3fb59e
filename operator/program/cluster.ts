import { GATEWAY_CLASS } from '#api/names.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { serveEndpoints } from './endpoints.ts'
import { checkExpression } from './expression.ts'
import { placeStatuses } from './gateway-status.ts'
import { createConfigMapMemory } from '../jwks/config-maps.ts'
import { createKeySets } from '../jwks/index.ts'
import { watchCertificate, type CertificateSource } from '../kube/certificate.ts'
import { connect, type KubeConnection } from '../kube/connection.ts'
import { createGatewayEvents } from '../kube/events.ts'
import { keepGatewayClass } from '../kube/gateway-class.ts'
import { startElection, type Election } from '../kube/lease.ts'
import { watchCluster } from '../kube/source.ts'
import { createTokenAuthentication } from '../kube/token-review.ts'
import { textOf, type Log } from '../runtime/log.ts'
import { createReconcileMetrics, renderGauges, renderProcess } from '../runtime/metrics.ts'
import { createProvisioner } from '../provision/provision.ts'
import { systemClock } from '../serve/debounce.ts'
import type { Nack } from '../serve/nack.ts'
import { createConfigServer, roleOf, type ConfigServer } from '../serve/server.ts'
import type { Settings } from './settings.ts'
import type { ConfigMap } from '../source/objects.ts'
import { createSnapshot, type Snapshot } from '../source/snapshot.ts'
import { createStatusWriter } from '../status/writer.ts'
import type { Translation } from '../model/translation.ts'

export interface ClusterModeOptions {
  readonly settings: Settings
  readonly log: Log
  /** Default: by KUBECONFIG, or as the pod that this is. */
  readonly connection?: KubeConnection
  /** Where config stream, health and metrics listen; default all addresses. */
  readonly host?: string
  /** Times of the election; default 15, 10 and 2 s. */
  readonly leaseTimes?: { readonly leaseMs: number; readonly renewMs: number; readonly retryMs: number }
}

export interface ClusterMode {
  readonly ports: { readonly xds: number; readonly health: number; readonly metrics: number; readonly admin: number }
  close(): Promise<void>
}

/** Name of the Lease that replicas elect their leader on. */
const LEASE = 'proxy-operator'
const now = (): Date => new Date()

/**
 * Runs against an API server: every replica translates and serves the config stream, the leader alone writes (operator.md §7.1).
 * Rejects when the settings cannot work here, with what to do.
 */
export async function runClusterMode({ settings, log, host = '0.0.0.0', ...options }: ClusterModeOptions): Promise<ClusterMode> {
  const clock = systemClock
  const connection = options.connection ?? connect({ kubeconfig: settings.kubeconfig })
  const { namespace } = settings
  const reviews = { requests: 0, successes: 0, failures: 0 }
  const reconciles = createReconcileMetrics(clock.now)
  const ofClasses = reconciles.of('gatewayclass')
  const tellGateway = createGatewayEvents(connection, clock, now)
  let snapshot: Snapshot = createSnapshot([])
  let translation: Translation = { gateways: new Map(), statuses: [] }
  let translations = 0
  let failedTranslations = 0
  let election: Election | undefined
  let isClosed = false
  const isLeader = (): boolean => !isClosed && (settings.isLeaderElected ? (election?.isLeader() ?? false) : true)

  for (const name of settings.classParameters.keys())
    if (name !== GATEWAY_CLASS) log('error', `PROXY_GATEWAY_CLASS_PARAMETERS_REFS names GatewayClass ${name}; only ${GATEWAY_CLASS} is made by this operator`)

  const certificate: CertificateSource | undefined =
    settings.xdsMode === 'tls'
      ? await watchCertificate(connection, namespace, {
          clock,
          onChange() {
            log('info', 'the certificate of the config stream was replaced')
            // The pods have to trust it: their ConfigMaps change, and that rolls them.
            provisioner.reconcileAll()
          },
          onError: (error) => log('error', `certificate of the config stream: ${textOf(error)}`),
        })
      : undefined

  const reportNack = ({ role, resources, message }: Nack): void => {
    // What is wrong with a secret may quote it.
    const refused = resources.map(({ key, error }) => (key.startsWith('secret/') ? key : `${key}: ${error}`)).join('; ') || message
    log('warn', 'a data plane refused part of the config', { role, refused })
    const gateway = snapshot.list('Gateway').find((each) => roleOf(`${each.metadata.namespace}/${each.metadata.name}`) === role)
    if (gateway) tellGateway(gateway, 'ProxyNackError', refused).catch((error: unknown) => log('warn', `Event for Gateway ${role}: ${textOf(error)}`))
  }
  const server: ConfigServer = createConfigServer({
    ...(settings.isXdsAuthenticated ? { authenticate: createTokenAuthentication(connection, reviews) } : { isOpen: true }),
    ...(certificate ? { credentials: certificate.credentials } : {}),
    onNack: reportNack,
  })

  const keySetMemory = createConfigMapMemory({
    connection,
    clock,
    namespace,
    isLeader,
    find: (name) => source.find('ConfigMap', namespace, name)?.object as ConfigMap | undefined,
    list: () => source.list('ConfigMap', namespace),
    onError: (name, error) => log('warn', `ConfigMap ${name}: ${textOf(error)}; the key set is in force, a restart would have to fetch it anew`),
  })
  // Every replica fetches for itself: each must be able to serve the stream alone.
  const keySets = createKeySets({
    isLoopbackAllowed: false,
    memory: keySetMemory,
    onChange: () => take(snapshot),
    onError: (url, error) => log('warn', `key set ${url}: ${textOf(error)}; it is tried again, and what was fetched before stays`),
  })

  /** The latest snapshot in force: statuses and class for the leader, config for everybody. */
  const take = (next: Snapshot): void => {
    snapshot = next
    const startedAt = clock.now()
    try {
      const { backendGrants, isInferenceEnabled, clusterDomain } = settings
      translation = keySets.translate(next, { backendGrants, isInferenceEnabled, clusterDomain, checkExpression })
    } catch (error) {
      // A mistake of ours: users' are statuses. What was right before stays.
      failedTranslations += 1
      log('error', `translation failed; the last config stays: ${textOf(error)}`, { stack: error instanceof Error ? error.stack : undefined })
      return
    }
    translations += 1
    log('debug', 'translated', { gateways: translation.gateways.size, ms: Math.round(clock.now() - startedAt) })
    server.publish(translation)
    provisioner.publish(next, translation)
    publishStatuses()
    gatewayClass.check()
    keySetMemory.tidy()
  }

  const tellAbsent = createAbsenceReport(log)
  const source = watchCluster({
    connection,
    clock,
    namespaceSelectors: settings.namespaceSelectors,
    isInferenceEnabled: settings.isInferenceEnabled,
    onSnapshot(next) {
      tellAbsent(source.kinds.filter((kind) => source.collectionOf(kind) === undefined))
      take(next)
    },
    onStatus: (object) => writer.recheck(object),
    onError: (kind, error) => log('warn', `watch of ${kind}: ${textOf(error)}; it is tried again, and what was read before stays`),
  })
  const writer = createStatusWriter({
    connection,
    clock,
    now,
    isLeader,
    find: source.find,
    onError: (key, error, isTriedAgain) =>
      log('warn', `status of ${key}: ${textOf(error)}; ${isTriedAgain ? 'it is tried again' : 'it is not tried again until it differs'}`),
  })
  const provisioner = createProvisioner({
    connection,
    clock,
    isLeader,
    metrics: reconciles.of('gateway'),
    settings: {
      image: { registry: '', repository: 'proxy', tag: `v${packageJson.version}`, ...settings.proxyImage },
      version: packageJson.version,
      xds: { host: settings.xdsHost, port: settings.xdsPort, isTls: certificate !== undefined },
    },
    xdsSecret: () => certificate && { data: { 'ca.crt': certificate.current().authority.toString('base64') } },
    onOutcome: () => publishStatuses(),
    onNote: (gateway, message) => log('info', `Gateway ${gateway}: ${message}`),
    onError: (what, error) => log('warn', `${what}: ${textOf(error)}; it is tried again`),
  })
  const publishStatuses = (): void => writer.publish(placeStatuses(translation.statuses, snapshot, provisioner.outcomeOf))
  const gatewayClass = keepGatewayClass({
    connection,
    source,
    clock,
    isLeader,
    parametersRef: settings.classParameters.get(GATEWAY_CLASS),
    measure: (work) => ofClasses.measure('', GATEWAY_CLASS, work),
    onError: (error) => log('error', `GatewayClass ${GATEWAY_CLASS}: ${textOf(error)}; it is looked at again in a while`),
  })

  const startWriting = (): void => {
    log('info', 'leading: this replica writes')
    provisioner.reconcileAll()
    writer.recheckAll()
    keySetMemory.recheckAll()
    if (translations > 0) keySetMemory.tidy()
    gatewayClass.check()
  }
  const closeAll = async (): Promise<void> => {
    isClosed = true
    source.close()
    keySets.close()
    keySetMemory.close()
    writer.close()
    provisioner.close()
    gatewayClass.close()
    certificate?.close()
    await election?.close()
    await server.close()
    await endpoints?.close()
    connection.close()
  }

  let endpoints: Awaited<ReturnType<typeof serveEndpoints>> | undefined
  try {
    endpoints = await serveEndpoints({
      host,
      ports: { health: settings.healthPort, metrics: settings.metricsPort, admin: settings.adminPort },
      findMissing: () => [...source.missing(), ...(translations === 0 ? ['translation'] : [])],
      renderMetrics: () => {
        const { streams, nacks } = server.stats()
        const gauges = renderGauges([
          ['xds_auth_rq_total', 'counter', 'Config streams that asked for authentication', reviews.requests],
          ['xds_auth_rq_success_total', 'counter', 'Config streams that were authenticated', reviews.successes],
          ['xds_auth_rq_failure_total', 'counter', 'Config streams that were refused', reviews.failures],
          ['xds_rejects_total', 'counter', 'Responses that a data plane refused, in part or whole', nacks],
          ['xds_streams', 'gauge', 'Open config streams', streams],
          ['translations_total', 'counter', 'Snapshots translated', translations],
          ['translation_failures_total', 'counter', 'Snapshots that could not be translated', failedTranslations],
          ['status_writes_total', 'counter', 'Statuses written', writer.writes()],
          ['applies_total', 'counter', 'Objects of Gateways applied', provisioner.applies()],
          ['leader', 'gauge', 'Whether this replica writes', isLeader() ? 1 : 0],
        ])
        return gauges + reconciles.render() + (settings.isProcessMeasured ? renderProcess() : '')
      },
      dump: () => describeState(translation, snapshot, isLeader()),
      version: packageJson.version,
      log,
    })
    const xds = await server.listen(`${host}:${settings.xdsPort}`)
    const ports = { xds, ...endpoints.ports }
    log('info', 'listening', { ...ports, tls: certificate !== undefined })
    if (settings.isLeaderElected) {
      election = startElection({
        connection,
        namespace,
        clock,
        now,
        name: LEASE,
        identity: `${settings.identity}_${crypto.randomUUID()}`,
        onStart: startWriting,
        onStop: () => log('info', 'not leading any more'),
        onError: (error) => log('warn', `Lease ${namespace}/${LEASE}: ${textOf(error)}; the election goes on`),
        ...(options.leaseTimes ? { times: options.leaseTimes } : {}),
      })
    } else startWriting()
    return { ports, close: closeAll }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** An operator that has nothing to do because nobody installed Gateway API must not look as if all was well: tells each change once. */
function createAbsenceReport(log: Log): (kinds: readonly string[]) => void {
  let told: readonly string[] = []
  return (kinds) => {
    if (kinds.join() === told.join()) return
    told = kinds
    if (kinds.length === 0) log('info', 'every CRD is installed')
    else log('warn', `no CRD for ${kinds.join(', ')}: these kinds count as empty until there is one`)
  }
}

/** Names only: messages and objects hold what Secrets hold. */
function describeState(translation: Translation, snapshot: Snapshot, isLeader: boolean): object {
  return {
    isLeader,
    gateways: Object.fromEntries([...translation.gateways].map(([key, messages]) => [key, messages.map((message) => `${message.kind}/${message.key}`)])),
    statuses: translation.statuses,
    services: snapshot.list('Service').length,
  }
}

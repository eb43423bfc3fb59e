import { X509Certificate } from 'node:crypto'
import { withCode } from '#api/messages/code.ts'
import { GATEWAY_CLASS } from '#api/names.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { serveEndpoints } from './endpoints.ts'
import { checkExpression } from './expression.ts'
import { createStatusPlacement, listParameters } from './gateway-status.ts'
import { createConfigMapMemory, type ConfigMapMemory } from '../remote/config-maps.ts'
import { createRemotes } from '../remote/index.ts'
import { describeImage } from '../remote/plugin-image.ts'
import { watchCertificate, type CertificateSource } from '../kube/certificate.ts'
import { connect, type KubeConnection } from '../kube/connection.ts'
import { createEventRecorder, type EventRecorder } from '../kube/events.ts'
import { keepGatewayClass } from '../kube/gateway-class.ts'
import { startElection, type Election } from '../kube/lease.ts'
import { watchCluster } from '../kube/source.ts'
import { createTokenAuthentication } from '../kube/token-review.ts'
import { textOf, type Log } from '../runtime/log.ts'
import { createFailureLog, type FailureLog } from '../runtime/throttle.ts'
import { createReconcileMetrics, renderGauges, renderProcess, type Gauge } from '../runtime/metrics.ts'
import type { BudgetLimit } from '../quota/limits.ts'
import { createQuotaServer, type QuotaServer } from '../quota/server.ts'
import { createConfigMapStore } from '../quota/store.ts'
import { Provisioner, type ProvisionerOptions } from '../provision/provision.ts'
import { ServerProvisioner } from '../provision/servers.ts'
import { systemClock } from '../serve/debounce.ts'
import type { Nack } from '../serve/nack.ts'
import type { Authenticate } from '../serve/session.ts'
import { createConfigServer, roleOf, type ConfigServer } from '../serve/server.ts'
import { createReported } from '../status/reported.ts'
import { describeChange, RolloutBook, samplesOf } from '../status/rollouts.ts'
import { createServerStatus } from '../status/servers.ts'
import type { Settings } from './settings.ts'
import type { ConfigMap, KubeObject } from '../source/objects.ts'
import { createSnapshot, type Snapshot } from '../source/snapshot.ts'
import { findTransitions, type Transition } from '../status/transitions.ts'
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
/** Time between two decisions about rollouts of models. */
const ROLLOUT_MS = 1000
const clock = systemClock
const now = (): Date => new Date()

/**
 * Runs against an API server: every replica translates and serves the config stream, the leader alone writes (operator.md §7.1).
 * Rejects with a message that names the fix if the settings cannot work in this cluster.
 */
export async function runClusterMode(options: ClusterModeOptions): Promise<ClusterMode> {
  const { settings, log } = options
  for (const name of settings.classParameters.keys())
    if (name !== GATEWAY_CLASS)
      log('error', `PROXY_GATEWAY_CLASS_PARAMETERS_REFS names GatewayClass ${name}; only ${GATEWAY_CLASS} is created by this operator`, { code: 'PX5002' })
  const connection = options.connection ?? connect({ kubeconfig: settings.kubeconfig })
  let onCertificate = (): void => undefined
  const certificate =
    settings.xdsMode === 'tls'
      ? await watchCertificate(connection, settings.namespace, {
          clock,
          onChange: () => onCertificate(),
          onError: (error) => log('error', `certificate of the config stream: ${textOf(error)}`, { code: 'PX5003' }),
        })
      : undefined
  const replica = new Replica(options, connection, certificate)
  onCertificate = () => replica.replaceCertificate()
  try {
    return { ports: await replica.start(), close: () => replica.close() }
  } catch (error) {
    await replica.close()
    throw error
  }
}

/** One replica of the operator: the parts of it, and the state that they share. */
class Replica {
  readonly #options: ClusterModeOptions
  readonly #connection: KubeConnection
  readonly #certificate: CertificateSource | undefined
  readonly #log: Log
  readonly #reviews = { requests: 0, successes: 0, failures: 0 }
  readonly #reconciles = createReconcileMetrics(clock.now)
  readonly #logFailure: FailureLog
  readonly #events: EventRecorder
  readonly #quota: QuotaServer
  readonly #server: ConfigServer
  readonly #memories: Readonly<Record<'keySets' | 'documents' | 'pluginImages', ConfigMapMemory>>
  readonly #remotes: ReturnType<typeof createRemotes>
  readonly #source: ReturnType<typeof watchCluster>
  readonly #writer: ReturnType<typeof createStatusWriter>
  readonly #provisioner: Provisioner
  readonly #servers: ServerProvisioner
  readonly #gatewayClass: ReturnType<typeof keepGatewayClass>
  readonly #placeStatuses = createStatusPlacement()
  readonly #addReported = createReported()
  readonly #addServers = createServerStatus()
  readonly #rollouts = new RolloutBook()
  readonly #rolloutTimer = setInterval(() => this.#advanceRollouts(), ROLLOUT_MS).unref()
  #snapshot: Snapshot = createSnapshot([])
  #translation: Translation = { gateways: new Map(), statuses: [] }
  #translations = 0
  #failedTranslations = 0
  #failedStatusWrites = 0
  #election: Election | undefined
  #endpoints: Awaited<ReturnType<typeof serveEndpoints>> | undefined
  #isClosed = false

  constructor(options: ClusterModeOptions, connection: KubeConnection, certificate: CertificateSource | undefined) {
    this.#options = options
    this.#connection = connection
    this.#certificate = certificate
    this.#log = options.log
    this.#logFailure = createFailureLog(options.log, clock.now)
    this.#events = createEventRecorder({ connection, clock, now, onError: (error) => this.#logFailure('Event', error, 'it is not sent again') })
    const authenticate = this.#options.settings.isXdsAuthenticated ? createTokenAuthentication(connection, this.#reviews) : undefined
    this.#quota = this.#createQuota(authenticate)
    this.#server = this.#createServer(authenticate)
    this.#memories = {
      keySets: this.#createMemory('jwks-store', 'the key set is in force, but a restart would have to fetch it again'),
      documents: this.#createMemory('openapi-store', 'the OpenAPI document is in force, but a restart would have to fetch it again'),
      pluginImages: this.#createMemory('plugin-store', 'the plugin is in force, but a restart would have to fetch it again'),
    }
    this.#remotes = this.#createRemotes()
    this.#source = this.#watchObjects()
    this.#writer = createStatusWriter({
      connection,
      clock,
      now,
      isLeader: this.#isLeader,
      find: this.#source.find,
      onError: (key, error, isRetried) => {
        this.#failedStatusWrites += 1
        this.#logFailure(`status of ${key}`, error, isRetried ? 'it is retried' : 'it is not retried until it differs')
      },
      onWrite: (object, before, after) => {
        for (const transition of findTransitions(before, after)) this.#recordTransition(object, transition)
      },
    })
    this.#provisioner = this.#startProvisioner()
    this.#servers = new ServerProvisioner({ ...this.#provisionerOptions(), metrics: this.#reconciles.of('mcpserver') })
    this.#gatewayClass = keepGatewayClass({
      connection,
      source: this.#source,
      clock,
      isLeader: this.#isLeader,
      parametersRef: options.settings.classParameters.get(GATEWAY_CLASS),
      measure: (work) => this.#reconciles.of('gatewayclass').measure('', GATEWAY_CLASS, work),
      onError: (error) => this.#logFailure(`GatewayClass ${GATEWAY_CLASS}`, error, 'it is retried'),
    })
  }

  /** Opens the ports and stands for election. Rejects if a port cannot be opened. */
  async start(): Promise<ClusterMode['ports']> {
    const { settings, host } = this.#options
    this.#endpoints = await serveEndpoints({
      host,
      ports: { health: settings.healthPort, metrics: settings.metricsPort, admin: settings.adminPort },
      findMissing: () => [...this.#source.missing(), ...(this.#translations === 0 ? ['translation'] : [])],
      renderMetrics: () => this.#renderMetrics(),
      dump: () => describeState(this.#translation, this.#snapshot, this.#isLeader()),
      version: packageJson.version,
      log: this.#log,
    })
    const xds = await this.#listenForStreams(settings.xdsPort, host)
    const ports = { xds, ...this.#endpoints.ports }
    this.#log('info', 'listening', { ...ports, tls: this.#certificate !== undefined })
    if (settings.isLeaderElected) this.#election = this.#startElection()
    else this.#startWriting()
    return ports
  }

  /** Both families if there is no host. A kernel without IPv6 has IPv4 only. */
  async #listenForStreams(port: number, host = '[::]'): Promise<number> {
    try {
      return await this.#server.listen(`${host}:${port}`)
    } catch (error) {
      if (host !== '[::]' || !/EAFNOSUPPORT|EADDRNOTAVAIL/.test(textOf((error as Error).cause))) throw error
      return this.#server.listen(`0.0.0.0:${port}`)
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#rolloutTimer)
    this.#source.close()
    this.#remotes.close()
    for (const memory of Object.values(this.#memories)) memory.close()
    this.#writer.close()
    this.#events.close()
    this.#provisioner.close()
    this.#servers.close()
    this.#gatewayClass.close()
    this.#certificate?.close()
    // While this replica still leads: the counters are stored before another one reads them.
    await this.#quota.close()
    this.#isClosed = true
    await this.#election?.close()
    await this.#server.close()
    await this.#endpoints?.close()
    this.#connection.close()
  }

  /** The certificate of the config stream has changed. Pods trust it by their ConfigMaps, whose change rolls them. */
  replaceCertificate(): void {
    this.#log('info', 'the certificate of the config stream was replaced')
    this.#provisioner.reconcileAll()
  }

  readonly #isLeader = (): boolean => !this.#isClosed && (this.#options.settings.isLeaderElected ? (this.#election?.isLeader() ?? false) : true)

  /** Counters of budgets with scope Gateway. The leader alone divides them. */
  #createQuota(authenticate: Authenticate | undefined): QuotaServer {
    return createQuotaServer({
      authenticate,
      isLeader: this.#isLeader,
      store: createConfigMapStore({
        connection: this.#connection,
        findUid: (gateway) => {
          const slash = gateway.indexOf('/')
          return this.#source.find('Gateway', gateway.slice(0, slash), gateway.slice(slash + 1))?.object.metadata.uid
        },
      }),
      onAlert: (gateway, limit, percent) => this.#recordAlert(gateway, limit, percent),
      onError: (gateway, error) => this.#logFailure(`budgets of Gateway ${gateway}`, error, 'it is retried; replicas use their last shares'),
    })
  }

  #createServer(authenticate: Authenticate | undefined): ConfigServer {
    return createConfigServer({
      ...(authenticate ? { authenticate } : { isOpen: true }),
      services: [this.#quota.service],
      ...(this.#certificate ? { credentials: this.#certificate.credentials } : {}),
      onNack: (nack) => this.#reportNack(nack),
      onReport: () => this.#publishStatuses(),
    })
  }

  /** Every replica fetches key sets and documents itself, because each must be able to serve the stream alone. */
  #createRemotes(): ReturnType<typeof createRemotes> {
    const { keySets, documents, pluginImages } = this.#memories
    return createRemotes({
      isLoopbackAllowed: false,
      onChange: () => this.#translate(this.#snapshot),
      keySets: {
        memory: keySets,
        onError: (url, error) => this.#log('warn', `key set ${url}: ${textOf(error)}; retrying, keys that were fetched before stay in use`, { code: 'PX5004' }),
      },
      documents: {
        memory: documents,
        onError: (url, error) =>
          this.#log('warn', `OpenAPI document ${url}: ${textOf(error)}; retrying, the document that was fetched before stays in use`, { code: 'PX5009' }),
      },
      pluginImages: {
        memory: pluginImages,
        files: this.#options.settings.registryFiles,
        onError: (url, error) => this.#log('warn', `image of a plugin ${describeImage(url)}: ${textOf(error)}; retrying`, { code: 'PX5010' }),
      },
    })
  }

  #createMemory(kind: 'jwks-store' | 'openapi-store' | 'plugin-store', consequence: string): ConfigMapMemory {
    const { namespace } = this.#options.settings
    return createConfigMapMemory({
      kind,
      connection: this.#connection,
      clock,
      namespace,
      isLeader: this.#isLeader,
      find: (name) => this.#source.find('ConfigMap', namespace, name)?.object as ConfigMap | undefined,
      list: () => this.#source.list('ConfigMap', namespace),
      onError: (name, error) => this.#logFailure(`ConfigMap ${name}`, error, consequence),
    })
  }

  #watchObjects(): ReturnType<typeof watchCluster> {
    const { namespaceSelectors, isInferenceEnabled } = this.#options.settings
    const reportAbsentKinds = createAbsenceReport(this.#log)
    return watchCluster({
      connection: this.#connection,
      clock,
      namespaceSelectors,
      isInferenceEnabled,
      onSnapshot: (next) => {
        reportAbsentKinds(this.#source.kinds.filter((kind) => this.#source.collectionOf(kind) === undefined))
        this.#translate(next)
      },
      onStatus: (object) => {
        this.#writer.recheck(object)
        if (object.kind === 'ProxyBackend' && !this.#isLeader()) this.#readRollouts()
      },
      onError: (kind, error) => this.#logFailure(`watch of ${kind}`, error, 'it is retried, and the last state stays'),
    })
  }

  #startProvisioner(): Provisioner {
    return new Provisioner({
      ...this.#provisionerOptions(),
      metrics: this.#reconciles.of('gateway'),
      xdsSecret: () => this.#certificate && { data: { 'ca.crt': this.#certificate.current().authority.toString('base64') } },
      onNote: (gateway, message) => this.#log('info', `Gateway ${gateway}: ${message}`),
    })
  }

  #provisionerOptions(): Omit<ProvisionerOptions, 'metrics' | 'xdsSecret' | 'onNote'> {
    const { settings } = this.#options
    return {
      connection: this.#connection,
      clock,
      isLeader: this.#isLeader,
      settings: {
        image: { registry: '', repository: 'proxy', tag: `v${packageJson.version}`, ...settings.proxyImage },
        version: packageJson.version,
        xds: { host: settings.xdsHost, port: settings.xdsPort, isTls: this.#certificate !== undefined },
      },
      onChange: () => this.#publishStatuses(),
      onError: (subject, error) => this.#logFailure(subject, error, 'it is retried'),
    }
  }

  #startElection(): Election {
    const { settings, leaseTimes } = this.#options
    return startElection({
      connection: this.#connection,
      namespace: settings.namespace,
      clock,
      now,
      name: LEASE,
      identity: `${settings.identity}_${crypto.randomUUID()}`,
      onStart: () => this.#startWriting(),
      onStop: () => this.#log('info', 'not leading any more'),
      onError: (error) => this.#logFailure(`Lease ${settings.namespace}/${LEASE}`, error, 'the election continues'),
      ...(leaseTimes ? { times: leaseTimes } : {}),
    })
  }

  #startWriting(): void {
    this.#log('info', 'leading: this replica writes')
    this.#provisioner.reconcileAll()
    this.#servers.reconcileAll()
    this.#writer.recheckAll()
    for (const memory of Object.values(this.#memories)) {
      memory.recheckAll()
      if (this.#translations > 0) memory.tidy()
    }
    this.#gatewayClass.check()
  }

  /** Puts a snapshot in force: config for data planes, and on the leader statuses, objects of Gateways and the GatewayClass. */
  #translate(next: Snapshot): void {
    this.#snapshot = next
    const startedAt = clock.now()
    try {
      const { backendGrants, isInferenceEnabled, clusterDomain } = this.#options.settings
      this.#translation = this.#remotes.translate(next, { backendGrants, isInferenceEnabled, clusterDomain, checkExpression })
    } catch (error) {
      // A bug of the operator, because mistakes of users become statuses. The last translation stays in force.
      this.#failedTranslations += 1
      this.#log('error', `translation failed; the last config stays: ${textOf(error)}`, {
        code: 'PX5005',
        stack: error instanceof Error ? error.stack : undefined,
      })
      return
    }
    this.#translations += 1
    this.#log('debug', 'translated', { gateways: this.#translation.gateways.size, ms: Math.round(clock.now() - startedAt) })
    this.#quota.publish(this.#translation)
    if (!this.#isLeader() || this.#translations === 1) this.#rollouts.read(this.#snapshot, this.#source.find)
    this.#server.publish(this.#rollouts.serve(this.#translation))
    this.#provisioner.publish(next, this.#translation)
    this.#servers.publish(next, this.#translation)
    this.#publishStatuses()
    this.#gatewayClass.check()
    for (const memory of Object.values(this.#memories)) memory.tidy()
  }

  /** Takes over the states of rollouts that the leader wrote. */
  #readRollouts(): void {
    if (this.#rollouts.read(this.#snapshot, this.#source.find)) this.#server.publish(this.#rollouts.serve(this.#translation))
  }

  /** Moves rollouts on: the leader, for all replicas. */
  #advanceRollouts(): void {
    if (!this.#isLeader() || this.#translations === 0) return
    const reports = this.#server.reports()
    const changes = this.#rollouts.advance(
      this.#translation,
      samplesOf(this.#translation, (gateway) => reports.get(roleOf(gateway))?.rollouts),
      Date.now(),
    )
    if (changes === undefined) return
    this.#server.publish(this.#rollouts.serve(this.#translation))
    this.#publishStatuses()
    for (const { backend, event } of changes.map(describeChange)) {
      const object = this.#source.find('ProxyBackend', ...backend)?.object
      if (object !== undefined) this.#events.record({ object, ...event })
    }
  }

  #publishStatuses(): void {
    const reports = this.#server.reports()
    const statuses = this.#rollouts.addTo(this.#addReported(this.#translation, (gateway) => reports.get(roleOf(gateway))))
    const placed = this.#placeStatuses(statuses, this.#snapshot, this.#provisioner.deployedOf)
    this.#writer.publish(this.#addServers(placed, this.#servers.serversOf))
  }

  /** Records a transition of an object, and one about parameters of a Gateway on its ProxyParameters, too, which have no status. */
  #recordTransition(object: KubeObject, transition: Transition): void {
    this.#events.record({ object, ...transition })
    if (object.kind !== 'Gateway' || transition.reason !== 'InvalidParameters') return
    const { namespace, name } = object.metadata
    const message = `Gateway ${namespace}/${name}: ${transition.message}`
    for (const parameters of listParameters(this.#snapshot, object)) this.#events.record({ ...transition, object: parameters, message })
  }

  #recordAlert(gateway: string, { policy, budget, text }: BudgetLimit, percent: number): void {
    const object = this.#source.find('ProxyPolicy', policy.namespace, policy.name)?.object
    if (object === undefined) return
    // Without the key: it may name a person, and equal Events are one with a count.
    const message = withCode(`budget "${budget}" has reached ${percent} % of ${text} for a key at Gateway ${gateway}`, 'PX4021')
    this.#events.record({ object, type: 'Warning', reason: 'BudgetAlert', message })
  }

  #reportNack({ role, resources, message }: Nack): void {
    // The error of a secret may quote the secret.
    const rejected = resources.map(({ key, error }) => (key.startsWith('secret/') ? key : `${key}: ${error}`)).join('; ') || message
    this.#log('warn', 'a data plane rejected part of the config', { code: 'PX5006', role, rejected })
    const gateway = this.#snapshot.list('Gateway').find((each) => roleOf(`${each.metadata.namespace}/${each.metadata.name}`) === role)
    if (gateway === undefined) return
    this.#events.record({ object: gateway, type: 'Warning', reason: 'ProxyNackError', message: rejected })
  }

  #renderMetrics(): string {
    const { streams, nacks } = this.#server.stats()
    const quota = this.#quota.stats()
    const documents = this.#remotes.documentStats()
    const gauges = renderGauges([
      ['xds_auth_rq_total', 'counter', 'Authentications of config streams', this.#reviews.requests],
      ['xds_auth_rq_success_total', 'counter', 'Config streams that were authenticated', this.#reviews.successes],
      ['xds_auth_rq_failure_total', 'counter', 'Config streams that were rejected', this.#reviews.failures],
      ['xds_rejects_total', 'counter', 'Responses that a data plane rejected, in part or as a whole', nacks],
      ['xds_streams', 'gauge', 'Open config streams', streams],
      ['translations_total', 'counter', 'Snapshots translated', this.#translations],
      ['translation_failures_total', 'counter', 'Snapshots that could not be translated', this.#failedTranslations],
      ['status_writes_total', 'counter', 'Statuses written', this.#writer.writes()],
      ['status_write_errors_total', 'counter', 'Attempts to write a status that failed', this.#failedStatusWrites],
      ['applies_total', 'counter', 'Objects of Gateways and MCP servers applied', this.#provisioner.applies() + this.#servers.applies()],
      ['openapi_fetches_total', 'counter', 'Fetches of OpenAPI documents that succeeded', documents.successes],
      ['openapi_fetch_failures_total', 'counter', 'Fetches of OpenAPI documents that failed', documents.failures],
      ['openapi_documents_failing', 'gauge', 'OpenAPI documents whose last fetch failed', documents.failing],
      ['quota_streams', 'gauge', 'Replicas of data planes that get shares of budgets', quota.streams],
      ['quota_buckets', 'gauge', 'Counters of budgets, one for each limit, key and window', quota.buckets],
      ['quota_reports_total', 'counter', 'Reports of data planes about budgets', quota.reports],
      ['leader', 'gauge', 'Whether this replica writes', this.#isLeader() ? 1 : 0],
      ...(this.#certificate ? [describeExpiry(this.#certificate)] : []),
    ])
    return gauges + this.#reconciles.render() + (this.#options.settings.isProcessMeasured ? renderProcess() : '')
  }
}

function describeExpiry(source: CertificateSource): Gauge {
  const { validToDate } = new X509Certificate(source.current().certificate)
  return ['certificate_expiry_timestamp_seconds', 'gauge', 'When the certificate of the config stream expires, Unix time', validToDate.getTime() / 1000]
}

/** Logs which kinds have no CRD, once per change: without Gateway API the operator has nothing to do and must not look healthy. */
function createAbsenceReport(log: Log): (kinds: readonly string[]) => void {
  let reported: readonly string[] = []
  return (kinds) => {
    if (kinds.join() === reported.join()) return
    reported = kinds
    if (kinds.length === 0) log('info', 'every CRD is installed')
    else log('warn', `no CRD for ${kinds.join(', ')}: these kinds count as empty until there is one`, { code: 'PX5007' })
  }
}

/** The state for debugging. Only names, because messages and objects contain Secrets. */
function describeState(translation: Translation, snapshot: Snapshot, isLeader: boolean): object {
  return {
    isLeader,
    gateways: Object.fromEntries([...translation.gateways].map(([key, messages]) => [key, messages.map((message) => `${message.kind}/${message.key}`)])),
    statuses: translation.statuses,
    services: snapshot.list('Service').length,
  }
}

import { hash } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { logVerbosity, Server, ServerCredentials, setLogVerbosity, status, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { safeName } from '#api/names.ts'
import { sumSamples, type RolloutSample } from '#api/rollout/samples.ts'
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import type { DeltaDiscoveryRequest, DeltaDiscoveryResponse } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { debounce, systemClock, type Clock, type DebounceTimes } from './debounce.ts'
import { createEncoder, type Encode, type ServedMessage } from './encode.ts'
import { EMPTY_REPORT, type DataplaneReport, type Nack, type RefusedPlugin } from './nack.ts'
import { Session, type Authenticate, type DeltaCall } from './session.ts'
import { buildGlobalSnapshot, compareSnapshots, GatewaySnapshot, type Changes, type Snapshot } from './snapshot.ts'

/** The part of a translation that is served: `<namespace>/<name>` of the Gateway -> its messages. */
interface ServedConfig {
  readonly gateways: ReadonlyMap<string, readonly ServedMessage[]>
}

/** A service on the port of the config stream. */
export interface GrpcService {
  readonly definition: ServiceDefinition
  readonly implementation: UntypedServiceImplementation
}

export interface ConfigServerOptions {
  /** Without it every client is served, which only a loopback address may do. */
  readonly authenticate?: Authenticate
  /** Serve other addresses than loopback without authentication. */
  readonly isOpen?: boolean
  /** Default: plaintext. */
  readonly credentials?: ServerCredentials
  readonly onNack?: (nack: Nack) => void
  /** `reports` changed. */
  readonly onReport?: () => void
  /** Default: 10 ms quiet, 1 s at most. */
  readonly debounce?: DebounceTimes
  /** Time for a client to send its first request; default 10 s. */
  readonly openTimeoutMs?: number
  /** Other services on the same port. */
  readonly services?: readonly GrpcService[]
  readonly clock?: Clock
  readonly encode?: Encode
}

interface ConfigServerStats {
  readonly streams: number
  readonly nacks: number
  /** Number of published versions that changed something. */
  readonly version: number
}

export interface ConfigServer {
  /** Listens on `host:port` (port 0: any) and returns the port. Rejects with the address and the cause. */
  listen(address: string): Promise<number>
  /** Serves a translation: the first at once, later ones debounced. Messages are compared by identity, then by content. */
  publish(config: ServedConfig): void
  stats(): ConfigServerStats
  /** What connected data planes reported, each finding once, by the role of their Gateway (`roleOf`). */
  reports(): ReadonlyMap<string, DataplaneReport>
  /** Ends every stream and stops listening. */
  close(): Promise<void>
}

// Errors are returned to the caller; gRPC's own lines on stderr would report them twice.
setLogVerbosity(logVerbosity.NONE)

// Delta only: the state-of-the-world method is not registered, so gRPC answers UNIMPLEMENTED (operator.md §6.1).
const discoveryService = {
  deltaAggregatedResources: {
    path: '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
    requestStream: true,
    responseStream: true,
    requestSerialize: (request: DeltaDiscoveryRequest) => Buffer.from(toBinary(DeltaDiscoveryRequestSchema, request)),
    requestDeserialize: (bytes: Buffer) => fromBinary(DeltaDiscoveryRequestSchema, bytes),
    responseSerialize: (response: DeltaDiscoveryResponse) => toBuffer(toBinary(DeltaDiscoveryResponseSchema, response)),
    responseDeserialize: (bytes: Buffer) => fromBinary(DeltaDiscoveryResponseSchema, bytes),
  },
} satisfies ServiceDefinition

/** `role` of a Gateway's data planes: its namespace and safe name, which its ServiceAccount has too (operator.md §6.2). */
export function roleOf(gateway: string): string {
  const slash = gateway.indexOf('/')
  return `${gateway.slice(0, slash)}~${safeName(gateway.slice(slash + 1), (text) => hash('sha256', text))}`
}

const NO_CHANGES: Changes = new Map()

/** Brings the snapshots of all roles up to date. Returns the changes by role, and whether there are any, or other Gateways. */
function updateSnapshots(
  snapshots: Map<string, GatewaySnapshot>,
  { gateways }: ServedConfig,
  encode: Encode,
): { readonly changes: ReadonlyMap<string, Changes>; readonly isOther: boolean } {
  const changes = new Map<string, Changes>()
  const gone = new Set(snapshots.keys())
  let isOther = false
  for (const [gateway, messages] of gateways) {
    const role = roleOf(gateway)
    if (!gone.delete(role)) isOther = true
    const snapshot = snapshots.get(role) ?? new GatewaySnapshot()
    snapshots.set(role, snapshot)
    changes.set(role, snapshot.update(messages, encode))
  }
  for (const role of gone) {
    changes.set(role, snapshots.get(role)?.update([], encode) ?? NO_CHANGES)
    snapshots.delete(role)
  }
  return { changes, isOther: isOther || gone.size > 0 || changes.values().some(({ size }) => size > 0) }
}

/** Makes the config stream's server (operator.md §6): delta ADS, one snapshot for each Gateway. */
export function createConfigServer(options: ConfigServerOptions = {}): ConfigServer {
  const clock = options.clock ?? systemClock
  const encode = options.encode ?? createEncoder()
  const server = new Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 })
  const sessions = new Set<Session>()
  let snapshots: Map<string, GatewaySnapshot> | undefined
  let globalSnapshot: Snapshot | undefined
  let latest: ServedConfig | undefined
  let version = 0
  let nacks = 0
  let isClosing = false

  const findGlobalSnapshot = (): Snapshot | undefined => (globalSnapshot ??= snapshots && buildGlobalSnapshot(snapshots.values()))
  const flush = (): void => {
    if (latest === undefined) return
    // The services of all Gateways are put together only for clients that want them: none of this project does.
    const isGlobalWanted = sessions.values().some(({ role }) => role === undefined)
    const globalBefore = isGlobalWanted ? findGlobalSnapshot() : undefined
    globalSnapshot = undefined
    const isFirst = snapshots === undefined
    const { changes, isOther } = updateSnapshots((snapshots ??= new Map()), latest, encode)
    if (isFirst || isOther) version += 1
    const globalChanges = isGlobalWanted ? compareSnapshots(globalBefore, findGlobalSnapshot()) : NO_CHANGES
    for (const session of sessions) session.notify((session.role === undefined ? globalChanges : changes.get(session.role)) ?? NO_CHANGES)
  }
  const debounced = debounce(flush, options.debounce ?? { quietMs: 10, maxMs: 1000 }, clock)

  const context = {
    authenticate: options.authenticate,
    clock,
    openTimeoutMs: options.openTimeoutMs ?? 10_000,
    findSnapshot: (role: string | undefined) => (role === undefined ? findGlobalSnapshot() : snapshots?.get(role)),
    version: () => version,
    onNack(nack: Nack) {
      nacks += 1
      options.onNack?.(nack)
    },
    onReport: () => options.onReport?.(),
    onClose(session: Session) {
      sessions.delete(session)
      if (!isDeepStrictEqual(session.report, EMPTY_REPORT)) options.onReport?.()
    },
  }
  server.addService(discoveryService, {
    deltaAggregatedResources(call: DeltaCall) {
      const session = new Session(call, context)
      sessions.add(session)
      if (isClosing) session.end(status.UNAVAILABLE, 'the config server is shutting down')
      else if (snapshots === undefined) session.end(status.UNAVAILABLE, 'the config is not complete yet')
    },
  })

  for (const { definition, implementation } of options.services ?? []) server.addService(definition, implementation)

  return {
    async listen(address) {
      if (options.authenticate === undefined && options.isOpen !== true && !isLoopback(address))
        throw new Error(`config server: ${address} is not a loopback address such as 127.0.0.1:9978; only those are served without authentication`)
      return new Promise((resolve, reject) => {
        server.bindAsync(address, options.credentials ?? ServerCredentials.createInsecure(), (error, port) =>
          error === null ? resolve(port) : reject(new Error(`config server: cannot listen on ${address}: ${describeListenError(error)}`, { cause: error })),
        )
      })
    },
    publish(config) {
      latest = config
      if (snapshots === undefined) flush()
      else debounced.schedule()
    },
    reports: () => mergeReports(sessions),
    stats: () => ({ streams: sessions.size, nacks, version }),
    async close() {
      isClosing = true
      debounced.cancel()
      for (const session of sessions) session.end(status.UNAVAILABLE, 'the config server is shutting down')
      await new Promise<void>((resolve) => {
        // Streams are ended; a client that does not read the end is disconnected.
        const cancel = clock.after(500, () => {
          server.forceShutdown()
          resolve()
        })
        server.tryShutdown(() => {
          cancel()
          resolve()
        })
      })
    },
  }
}

/** Each finding once, by role. */
function mergeReports(sessions: Iterable<Session>): ReadonlyMap<string, DataplaneReport> {
  const byRole = new Map<string, { readonly plugins: Map<string, RefusedPlugin>; readonly heldTools: Set<string>; readonly rollouts: RolloutSample[] }>()
  for (const { role, report } of sessions) {
    if (role === undefined || isDeepStrictEqual(report, EMPTY_REPORT)) continue
    const known = byRole.get(role) ?? { plugins: new Map<string, RefusedPlugin>(), heldTools: new Set<string>(), rollouts: [] }
    byRole.set(role, known)
    for (const refused of report.plugins) known.plugins.set(`${refused.plugin} ${refused.problem}`, refused)
    for (const target of report.heldTools) known.heldTools.add(target)
    known.rollouts.push(...report.rollouts)
  }
  return new Map(
    [...byRole].map(([role, { plugins, heldTools, rollouts }]) => [
      role,
      { plugins: [...plugins.values()], heldTools: [...heldTools], rollouts: sumSamples(rollouts) },
    ]),
  )
}

/** The library wraps the system's error in text of its own. */
function describeListenError({ message }: Error): string {
  if (message.includes('EADDRINUSE')) return 'the port is in use; stop what holds it, or choose another'
  return message.includes('EACCES') ? 'not permitted; choose a port above 1023' : message
}

const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

function isLoopback(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '')
  const family = isIP(host)
  return family === 0 ? host === 'localhost' : loopback.check(host, family === 6 ? 'ipv6' : 'ipv4')
}

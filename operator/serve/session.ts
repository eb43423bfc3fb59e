import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { Metadata, status, type ServerDuplexStream } from '@grpc/grpc-js'
import { create } from '@bufbuild/protobuf'
import { AnySchema } from '@bufbuild/protobuf/wkt'
import { DeltaDiscoveryResponseSchema, ResourceSchema } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { ADDRESS_TYPE } from '#api/names.ts'
import type { DeltaDiscoveryRequest, DeltaDiscoveryResponse } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import type { Clock } from './debounce.ts'
import { EMPTY_REPORT, parseReport, type DataplaneReport, type Nack, type NackedResource } from './nack.ts'
import { TYPE_URLS, type Changes, type Entries, type Snapshot } from './snapshot.ts'
import { Subscription } from './subscription.ts'

export type DeltaCall = ServerDuplexStream<DeltaDiscoveryRequest, DeltaDiscoveryResponse>

/** Outcome of `authenticate`. `message` is sent to the client. */
type Authentication = { readonly isAllowed: true } | { readonly isAllowed: false; readonly message: string }

/**
 * Decides whether a stream may have the config of `role` (`<namespace>~<safe gateway name>`; undefined: only services).
 * A rejected promise refuses the stream with "authentication failed".
 */
export type Authenticate = (metadata: Metadata, role: string | undefined) => Promise<Authentication>

/** The server as a session sees it. */
export interface SessionContext {
  readonly authenticate: Authenticate | undefined
  readonly clock: Clock
  readonly openTimeoutMs: number
  readonly findSnapshot: (role: string | undefined) => Snapshot | undefined
  /** Counter of published versions, for `system_version_info`. */
  readonly version: () => number
  readonly onNack: (nack: Nack) => void
  /** `report` of a session changed. */
  readonly onReport: () => void
  readonly onClose: (session: Session) => void
}

/** One delta stream of one data plane, from its first request to its end. */
export class Session {
  role: string | undefined = undefined
  nodeId = ''
  report: DataplaneReport = EMPTY_REPORT
  readonly #call: DeltaCall
  readonly #context: SessionContext
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #cancelOpenTimer: () => void
  #state: 'opening' | 'authenticating' | 'open' | 'closed' = 'opening'

  constructor(call: DeltaCall, context: SessionContext) {
    this.#call = call
    this.#context = context
    this.#cancelOpenTimer = context.clock.after(context.openTimeoutMs, () =>
      this.end(status.DEADLINE_EXCEEDED, `no first request within ${context.openTimeoutMs} ms; send node and type_url`),
    )
    call.on('data', (request: DeltaDiscoveryRequest) => this.#receive(request))
    call.on('end', () => {
      this.#close()
      call.end()
    })
    call.on('cancelled', () => this.#close())
    call.on('close', () => this.#close())
    call.on('error', () => this.#close())
  }

  /** Sends the changes of the snapshot to the client. */
  notify(changes: Changes): void {
    if (this.#state !== 'open') return
    for (const [typeUrl, names] of changes) this.#subscriptions.get(typeUrl)?.touch(names)
    // Every type, not only the changed ones: an answer that waited for the Gateway to appear may be empty. New addresses go before the routes that
    // need them, old ones after the routes that needed them.
    this.#send(ADDRESS_TYPE, false)
    for (const typeUrl of TYPE_URLS) this.#send(typeUrl)
  }

  /** Ends the stream with a gRPC status. */
  end(code: status, details: string): void {
    if (this.#state === 'closed') return
    this.#close()
    this.#call.emit('error', Object.assign(new Error(details), { code, details }))
  }

  #close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#cancelOpenTimer()
    this.#context.onClose(this)
  }

  #receive(request: DeltaDiscoveryRequest): void {
    if (this.#state === 'open') this.#handle(request)
    else if (this.#state === 'opening') void this.#open(request)
  }

  async #open(first: DeltaDiscoveryRequest): Promise<void> {
    this.#state = 'authenticating'
    this.#cancelOpenTimer()
    // Later requests wait in the stream's own buffer, so that nothing is read for a client that is not known yet.
    this.#call.pause()
    this.nodeId = first.node?.id ?? ''
    const role = first.node?.metadata?.['role']
    if (role !== undefined && typeof role !== 'string') return this.end(status.INVALID_ARGUMENT, 'node metadata: role must be a string `<namespace>~<gateway>`')
    this.role = role === '' ? undefined : role
    const { authenticate } = this.#context
    if (authenticate !== undefined) {
      const outcome = await authenticate(this.#call.metadata, this.role).catch((): Authentication => ({ isAllowed: false, message: 'authentication failed' }))
      if (!outcome.isAllowed) return this.end(status.UNAUTHENTICATED, outcome.message)
    }
    if (this.#isClosed()) return
    this.#state = 'open'
    // Tells the client that it is accepted, even where the first answer waits for its Gateway to appear.
    this.#call.sendMetadata(new Metadata())
    this.#handle(first)
    this.#call.resume()
  }

  #isClosed(): boolean {
    return this.#state === 'closed'
  }

  #handle(request: DeltaDiscoveryRequest): void {
    const { typeUrl } = request
    if (!TYPE_URLS.includes(typeUrl))
      return this.end(status.INVALID_ARGUMENT, `type_url ${JSON.stringify(typeUrl)} is unknown; use one of ${TYPE_URLS.join(', ')}`)
    const subscription = this.#subscriptions.get(typeUrl)
    if (subscription === undefined) this.#subscriptions.set(typeUrl, Subscription.open(request, this.#findEntries(typeUrl)))
    else {
      this.#acknowledge(subscription, request)
      subscription.change(request, this.#findEntries(typeUrl))
    }
    this.#send(typeUrl)
  }

  /** An expired nonce does not concern the response in flight, so only the subscription changes of its request apply. */
  #acknowledge(subscription: Subscription, { typeUrl, responseNonce, errorDetail }: DeltaDiscoveryRequest): void {
    // A request without a nonce concerns no response: it is a report.
    if (responseNonce === '' && errorDetail !== undefined) return this.#takeReport(errorDetail.message)
    if (responseNonce === '' || responseNonce !== subscription.inFlight) return
    subscription.inFlight = undefined
    if (errorDetail === undefined) return
    const { message } = errorDetail
    this.#context.onNack({ role: this.role, nodeId: this.nodeId, typeUrl, nonce: responseNonce, message, resources: parseNackMessage(message) })
  }

  #takeReport(message: string): void {
    const report = parseReport(message)
    if (report === undefined) return
    // Samples are read when a rollout is decided; they change with each request.
    const isSame = isDeepStrictEqual({ ...report, rollouts: [] }, { ...this.report, rollouts: [] })
    this.report = report
    if (!isSame) this.#context.onReport()
  }

  #findEntries(typeUrl: string): Entries | undefined {
    const snapshot = this.#context.findSnapshot(this.role)
    return snapshot === undefined ? undefined : (snapshot.types.get(typeUrl) ?? new Map())
  }

  #send(typeUrl: string, isRemoving = true): void {
    const subscription = this.#subscriptions.get(typeUrl)
    const difference = subscription?.take(this.#findEntries(typeUrl), isRemoving)
    if (subscription === undefined || difference === undefined) return
    const version = String(this.#context.version())
    const nonce = `${version}-${randomUUID()}`
    subscription.inFlight = nonce
    this.#call.write(
      create(DeltaDiscoveryResponseSchema, {
        systemVersionInfo: version,
        typeUrl,
        nonce,
        removedResources: [...difference.removed],
        resources: difference.resources.map((entry) =>
          create(ResourceSchema, { name: entry.name, version: entry.version, resource: create(AnySchema, { typeUrl, value: entry.bytes }) }),
        ),
      }),
    )
  }
}

/** Our data plane lists rejected resources as `[{key, error}]`; any other text is kept in `message`. */
function parseNackMessage(message: string): readonly NackedResource[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(message)
  } catch {
    return []
  }
  if (!Array.isArray(parsed)) return []
  return parsed
    .filter((item): item is NackedResource => typeof item?.key === 'string' && typeof item?.error === 'string')
    .map(({ key, error }) => ({ key, error }))
}

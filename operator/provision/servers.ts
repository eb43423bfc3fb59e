import { withCode } from '#api/messages/code.ts'
import { parametersFor } from '../deploy/parameters.ts'
import { readRollout, type RunningDeployment } from '../deploy/rollout.ts'
import { renderServer } from '../deploy/server/render.ts'
import type { DeploySettings } from '../deploy/types.ts'
import { ApiError } from '../kube/connection.ts'
import { backendOwner, deleteObject, ownerOf, type OwnedObject } from '../kube/owned.ts'
import type { McpServer, Translation } from '../model/translation.ts'
import { textOf } from '../runtime/log.ts'
import type { Gateway, GatewayClass, ProxyBackend } from '../source/objects.ts'
import type { Snapshot } from '../source/snapshot.ts'
import type { RunningServer } from '../status/servers.ts'
import { findParameters, parametersVersion, type Outcome } from './provision.ts'
import { Reconciler, type ReconcilerOptions } from './reconciler.ts'

export interface ServerProvisionerOptions extends ReconcilerOptions {
  readonly settings: DeploySettings
  /** The outcome of a server or the number of its ready pods changed. */
  readonly onChange: () => void
}

/** The servers of one ProxyBackend. `signature` changes with everything that their objects are made from. */
interface Wanted {
  readonly servers: readonly McpServer[]
  readonly signature: string
}

/** Creates, updates and deletes the objects of the MCP servers of every ProxyBackend (mcp.md §2.4), on the leader only. Construction starts its watches. */
export class ServerProvisioner {
  readonly #options: ServerProvisionerOptions
  readonly #reconciler: Reconciler
  readonly #outcomes = new Map<string, ReadonlyMap<string, Outcome>>()
  /** Servers of each ProxyBackend as last reported. */
  readonly #observed = new Map<string, readonly RunningServer[]>()
  /** By key of the ProxyBackend. Undefined before the first translation, when nothing may be deleted. */
  #wanted: ReadonlyMap<string, Wanted> | undefined
  #snapshot: Snapshot | undefined

  constructor(options: ServerProvisionerOptions) {
    this.#options = options
    this.#reconciler = new Reconciler(options, {
      owner: backendOwner,
      exists: (key) => this.#findBackend(key) !== undefined,
      reconcile: (key) => this.#reconcile(key),
      onChange: (backend, object) => {
        this.#add(backend)
        if (object.kind === 'Deployment') this.#record(backend)
      },
      onSynced: () => this.reconcileAll(),
      describe: (backend) => `MCP servers of ProxyBackend ${backend}`,
      describeWatch: (kind) => `watch of ${kind} of MCP servers`,
    })
  }

  /** Reconciles the ProxyBackends whose servers changed. */
  publish(snapshot: Snapshot, { mcpServers = [] }: Translation): void {
    const before = this.#wanted
    const byBackend = Map.groupBy(mcpServers, ({ backend: { namespace, name } }) => `${namespace}/${name}`)
    this.#snapshot = snapshot
    this.#wanted = new Map(
      [...byBackend].map(([key, servers]) => [key, { servers, signature: JSON.stringify(servers.map((each) => [each, versionsOf(snapshot, each)])) }]),
    )
    for (const key of new Set([...(before?.keys() ?? []), ...this.#wanted.keys()])) {
      if (before?.get(key)?.signature === this.#wanted.get(key)?.signature) continue
      this.#reconciler.renew(key)
    }
    for (const key of this.#outcomes.keys()) {
      if (this.#wanted.has(key)) continue
      this.#outcomes.delete(key)
      this.#observed.delete(key)
    }
    this.#reconciler.forgetDeleted()
    // Objects of backends that lost their servers while no operator ran.
    if (before === undefined) this.reconcileAll()
  }

  /** Reconciles every ProxyBackend that has servers, or had: this replica leads now. */
  reconcileAll(): void {
    for (const key of this.#wanted?.keys() ?? []) this.#add(key)
    for (const object of this.#reconciler.owned.listAll()) {
      const name = ownerOf(object, backendOwner)
      if (name !== undefined) this.#add(`${object.metadata.namespace}/${name}`)
    }
  }

  /** The servers of a ProxyBackend that were applied, or failed. The list is the same as long as nothing changes. */
  readonly serversOf = (key: string): readonly RunningServer[] => this.#observed.get(key) ?? []

  /** Number of objects applied since the start. */
  applies(): number {
    return this.#reconciler.applier.applies
  }

  close(): void {
    this.#reconciler.close()
  }

  #add(key: string): void {
    if (this.#wanted !== undefined) this.#reconciler.add(key)
  }

  #findBackend(key: string): ProxyBackend | undefined {
    const [namespace = '', name = ''] = key.split('/')
    return this.#snapshot?.get('ProxyBackend', namespace, name)
  }

  async #reconcile(key: string): Promise<void> {
    // Kubernetes deletes the objects of a ProxyBackend that was deleted; one that this operator does not watch is not its own.
    const backend = this.#findBackend(key)
    if (this.#snapshot === undefined || this.#wanted === undefined || backend === undefined || !this.#options.isLeader()) return
    const { servers = [] } = this.#wanted.get(key) ?? {}
    const outcomes = new Map<string, Outcome>()
    const failures: unknown[] = []
    for (const server of servers) {
      try {
        outcomes.set(server.target, await this.#start(this.#snapshot, server))
      } catch (error) {
        failures.push(error)
        // Without a response from the API server there is nothing to report to the user; the queue tries again.
        if (error instanceof ApiError)
          outcomes.set(server.target, {
            ok: false,
            condition: 'Programmed',
            reason: 'DeploymentFailed',
            message: withCode(textOf(error), 'PX1360'),
            warnings: [],
          })
      }
    }
    await this.#prune(backend, servers)
    if (!this.#options.isLeader()) return
    if (servers.length > 0) this.#outcomes.set(key, outcomes)
    this.#record(key)
    if (failures.length > 0) throw failures[0]
  }

  /** Applies the objects of a server. If its parameters are invalid, existing objects stay. */
  async #start(snapshot: Snapshot, server: McpServer): Promise<Outcome> {
    const found = findServerParameters(snapshot, server)
    const rendered = 'ok' in found ? found : renderServer({ server, parameters: found.levels, settings: this.#options.settings })
    if (!rendered.ok) return { ...rendered, warnings: [] }
    for (const object of rendered.objects) if (this.#options.isLeader()) await this.#reconciler.applier.apply(object)
    return { ok: true, warnings: rendered.warnings }
  }

  /** Deletes the objects of servers that are not wanted. */
  async #prune({ metadata: { namespace, name, uid } }: ProxyBackend, servers: readonly McpServer[]): Promise<void> {
    const wanted = new Set(servers.map((server) => server.name))
    const isOwn = (object: OwnedObject): boolean =>
      ownerOf(object, backendOwner) === name && object.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true
    for (const object of this.#reconciler.owned.list(namespace)) {
      if (!isOwn(object) || wanted.has(object.metadata.name)) continue
      if (this.#options.isLeader()) await deleteObject(this.#options.connection, object)
    }
  }

  /** Reports a change of outcomes or ready pods. */
  #record(key: string): void {
    const outcomes = this.#outcomes.get(key)
    const [namespace = ''] = key.split('/')
    const running = (this.#wanted?.get(key)?.servers ?? []).flatMap(({ target, name }): RunningServer[] => {
      const outcome = outcomes?.get(target)
      if (outcome === undefined) return []
      const deployment = this.#reconciler.owned.find('Deployment', namespace, name) as RunningDeployment | undefined
      return [{ target, name, outcome, rollout: deployment && readRollout(deployment) }]
    })
    if (JSON.stringify(this.#observed.get(key) ?? []) === JSON.stringify(running)) return
    this.#observed.set(key, running)
    this.#options.onChange()
  }
}

/** The Gateway that permits a server, and its class. Translation found both in this snapshot. */
function findGateway(snapshot: Snapshot, { gateway }: McpServer): { readonly gateway: Gateway; readonly gatewayClass: GatewayClass } {
  const [namespace = '', name = ''] = gateway.split('/')
  const found = snapshot.get('Gateway', namespace, name)
  const gatewayClass = found && snapshot.get('GatewayClass', '', found.spec.gatewayClassName)
  if (!found || !gatewayClass) throw new Error(`Gateway ${gateway} does not exist`)
  return { gateway: found, gatewayClass }
}

function findServerParameters(snapshot: Snapshot, server: McpServer): ReturnType<typeof findParameters> {
  const { gateway, gatewayClass } = findGateway(snapshot, server)
  const found = findParameters(snapshot, gateway, gatewayClass)
  return 'ok' in found ? found : { levels: parametersFor(server.gateway, found.levels, server.backend.namespace) }
}

function versionsOf(snapshot: Snapshot, server: McpServer): readonly string[] {
  const { gateway, gatewayClass } = findGateway(snapshot, server)
  return parametersVersion(snapshot, gateway, gatewayClass)
}

import { withCode } from '#api/messages/code.ts'
import { randomBytes } from 'node:crypto'
import { CONTROLLER_NAME } from '#api/names.ts'
import type { Listener } from '#gen/config/types.ts'
import { isTrustDomainOpen, MESH_CONFIG, readTrustDomain } from '../deploy/mesh.ts'
import { managedKeys } from '../deploy/keys.ts'
import { objectName } from '../deploy/metadata.ts'
import { resolveParameters } from '../deploy/parameters.ts'
import { selectPruned } from '../deploy/prune.ts'
import { renderGateway } from '../deploy/render.ts'
import { readRollout, type Rollout, type RunningDeployment } from '../deploy/rollout.ts'
import type { DeployFailure, DeployInput, DeploySettings, KeyName, LevelParameters, SecretData } from '../deploy/types.ts'
import { ApiError } from '../kube/connection.ts'
import { deleteObject, gatewayOwner, ownerOf, readObject, type OwnedObject } from '../kube/owned.ts'
import { textOf } from '../runtime/log.ts'
import type { Gateway, GatewayClass } from '../source/objects.ts'
import type { Snapshot } from '../source/snapshot.ts'
import type { ConfigMessage, Translation } from '../model/translation.ts'
import type { PlacedService } from '../status/addresses.ts'
import { Reconciler, type ReconcilerOptions } from './reconciler.ts'

export interface ProvisionerOptions extends ReconcilerOptions {
  readonly settings: DeploySettings
  /** Secret with the certificate of the config stream, where TLS is on. */
  readonly xdsSecret: () => SecretData | undefined
  /** The outcome of a Gateway, its addresses or the number of its ready pods changed. */
  readonly onChange: () => void
  readonly onNote: (gateway: string, message: string) => void
}

/** Result of applying the objects of one Gateway. `warnings` name ignored fields of its parameters. */
export type Outcome = ({ readonly ok: true } | Pick<DeployFailure, 'ok' | 'condition' | 'reason' | 'message'>) & { readonly warnings: readonly string[] }

/** The objects of one Gateway as last applied, and as they run. */
export interface Deployed {
  readonly outcome: Outcome
  /** Undefined until it was created and watched. */
  readonly service: PlacedService | undefined
  readonly rollout: Rollout | undefined
}

interface Target {
  readonly gateway: Gateway
  readonly gatewayClass: GatewayClass
  readonly listenerSets: readonly { readonly spec: { readonly listeners: readonly { name: string; port: number; protocol: string }[] } }[]
  /** Changes with everything that the objects are made from. */
  readonly signature: string
}

/** Creates, updates and deletes the objects of every Gateway (operator.md §2, §3.4), on the leader only. Construction starts its watches. */
export class Provisioner {
  readonly #options: ProvisionerOptions
  readonly #reconciler: Reconciler
  readonly #outcomes = new Map<string, Outcome>()
  /** Service and rollout of each Gateway as last reported. */
  readonly #observed = new Map<string, string>()
  #snapshot: Snapshot | undefined
  #targets: ReadonlyMap<string, Target> = new Map()

  constructor(options: ProvisionerOptions) {
    this.#options = options
    this.#reconciler = new Reconciler(options, {
      owner: gatewayOwner,
      exists: (key) => this.#targets.has(key),
      reconcile: (key) => this.#reconcile(key),
      onChange: (gateway, object) => {
        if (!this.#targets.has(gateway)) return
        this.#reconciler.add(gateway)
        if (object.kind === 'Service' || object.kind === 'Deployment') this.#recordRun(gateway)
      },
      onSynced: () => this.reconcileAll(),
      describe: (gateway) => `objects of Gateway ${gateway}`,
      describeWatch: (kind) => `watch of ${kind}`,
    })
  }

  /** Reconciles the Gateways of this state that changed. */
  publish(snapshot: Snapshot, translation: Translation): void {
    const before = this.#targets
    this.#snapshot = snapshot
    this.#targets = findTargets(snapshot, translation)
    for (const key of this.#outcomes.keys()) {
      if (this.#targets.has(key)) continue
      this.#outcomes.delete(key)
      this.#observed.delete(key)
    }
    this.#reconciler.forgetDeleted()
    for (const [key, { signature }] of this.#targets) if (before.get(key)?.signature !== signature) this.#reconciler.renew(key)
  }

  /** Reconciles every Gateway: this replica leads now, or the certificate changed. */
  reconcileAll(): void {
    for (const key of this.#targets.keys()) this.#reconciler.add(key)
  }

  /** Undefined until the objects of the Gateway were applied, or failed, for the first time. */
  readonly deployedOf = (key: string): Deployed | undefined => {
    const outcome = this.#outcomes.get(key)
    const gateway = this.#targets.get(key)?.gateway
    return outcome && gateway && { outcome, ...this.#observe(gateway) }
  }

  /** The Service and the Deployment of a Gateway, found by owner. */
  #observe(gateway: Gateway): Omit<Deployed, 'outcome'> {
    const find = (kind: string): OwnedObject | undefined => {
      const object = this.#reconciler.owned.find(kind, gateway.metadata.namespace, objectName(gateway))
      return object && ownerOf(object, gatewayOwner) === gateway.metadata.name ? object : undefined
    }
    const deployment = find('Deployment') as RunningDeployment | undefined
    return { service: find('Service') as unknown as PlacedService | undefined, rollout: deployment && findRollout(deployment) }
  }

  /** Reports a change of addresses or ready pods. */
  #recordRun(key: string): void {
    const gateway = this.#targets.get(key)?.gateway
    if (!gateway) return
    const { service, rollout } = this.#observe(gateway)
    const text = JSON.stringify([service?.spec, service?.status, rollout])
    if (this.#observed.get(key) === text) return
    this.#observed.set(key, text)
    this.#options.onChange()
  }

  /** Kinds that have not been listed yet. */
  missing(): readonly string[] {
    return this.#reconciler.owned.missing()
  }

  /** Number of objects applied since the start. */
  applies(): number {
    return this.#reconciler.applier.applies
  }

  close(): void {
    this.#reconciler.close()
  }

  async #reconcile(key: string): Promise<void> {
    const target = this.#targets.get(key)
    const snapshot = this.#snapshot
    if (!target || !snapshot || !this.#options.isLeader()) return
    const rendered = await this.#render(target, snapshot)
    if (!rendered.ok) return this.#settle(key, { ...toOutcome(rendered), warnings: [] })
    const { warnings } = rendered
    for (const note of rendered.notes) this.#options.onNote(key, note)
    try {
      await this.#applyAll(target.gateway, rendered.objects)
    } catch (error) {
      // Without a response from the API server there is nothing to report to the user; the queue tries again.
      if (error instanceof ApiError)
        this.#settle(key, { ok: false, condition: 'Programmed', reason: 'DeploymentFailed', message: withCode(textOf(error), 'PX1027'), warnings })
      throw error
    }
    if (this.#options.isLeader()) this.#settle(key, { ok: true, warnings })
  }

  async #render({ gateway, gatewayClass, listenerSets }: Target, snapshot: Snapshot): Promise<ReturnType<typeof renderGateway>> {
    const { settings } = this.#options
    const parameters = findParameters(snapshot, gateway, gatewayClass)
    if ('ok' in parameters) return parameters
    const keySecrets = await this.#findKeySecrets(gateway)
    const xdsSecret = this.#options.xdsSecret()
    const meshTrustDomain = findTrustDomain(snapshot, parameters.levels)
    return renderGateway({
      gateway,
      gatewayClass,
      listenerSets,
      parameters: parameters.levels,
      settings: meshTrustDomain === undefined ? settings : { ...settings, meshTrustDomain },
      generateKey: () => randomBytes(32).toString('hex'),
      keySecrets,
      ...(xdsSecret ? { xdsSecret } : {}),
    })
  }

  async #applyAll(gateway: Gateway, objects: readonly OwnedObject[]): Promise<void> {
    for (const object of keysFirst(objects)) {
      if (!this.#options.isLeader()) return
      await this.#reconciler.applier.apply(object)
    }
    for (const object of selectPruned(gateway, objects, this.#reconciler.owned.list(gateway.metadata.namespace)))
      await deleteObject(this.#options.connection, object)
  }

  async #findKeySecrets(gateway: Gateway): Promise<DeployInput['keySecrets']> {
    const { namespace } = gateway.metadata
    const secrets: Partial<Record<KeyName, SecretData>> = {}
    for (const { name, secretName } of managedKeys) {
      const secret = secretName(gateway)
      // Read from the API server if the cache has none: an existing key must never be replaced.
      const found = this.#reconciler.owned.find('Secret', namespace, secret) ?? (await readObject(this.#options.connection, 'Secret', namespace, secret))
      if (found) secrets[name] = found as SecretData
    }
    return secrets
  }

  #settle(key: string, outcome: Outcome): void {
    const isSame = JSON.stringify(this.#outcomes.get(key)) === JSON.stringify(outcome)
    this.#outcomes.set(key, outcome)
    if (!isSame) this.#options.onChange()
  }
}

/**
 * Keys go before the pods that start with them: where another object is refused, each attempt would make a new key, whose
 * checksum rolls the pods, and no pod could start.
 */
const keysFirst = (objects: readonly OwnedObject[]): OwnedObject[] => [
  ...objects.filter(({ kind }) => kind === 'Secret'),
  ...objects.filter(({ kind }) => kind !== 'Secret'),
]
const toOutcome = ({ ok, condition, reason, message }: DeployFailure) => ({ ok, condition, reason, message })

/** The parameters of a Gateway, by level. */
export function findParameters(snapshot: Snapshot, gateway: Gateway, gatewayClass: GatewayClass): { readonly levels: LevelParameters } | DeployFailure {
  const found = resolveParameters(gateway, gatewayClass, (namespace, name) => snapshot.get('ProxyParameters', namespace, name))
  return found.ok ? { levels: found.parameters } : found
}

function findTargets(snapshot: Snapshot, translation: Translation): Map<string, Target> {
  return new Map(
    [...translation.gateways].flatMap(([key, messages]): [string, Target][] => {
      const [namespace = '', name = ''] = key.split('/')
      const gateway = snapshot.get('Gateway', namespace, name)
      const gatewayClass = gateway && snapshot.get('GatewayClass', '', gateway.spec.gatewayClassName)
      if (!gateway || gatewayClass?.spec.controllerName !== CONTROLLER_NAME) return []
      const ofSets = findSetListeners(messages)
      const parameters = findParameters(snapshot, gateway, gatewayClass)
      const signature = JSON.stringify([
        versionOf(gateway),
        gateway.metadata.annotations,
        versionOf(gatewayClass),
        ofSets,
        'ok' in parameters ? parameters.message : [parametersVersion(snapshot, gateway, gatewayClass), findTrustDomain(snapshot, parameters.levels)],
      ])
      return [[key, { gateway, gatewayClass, listenerSets: ofSets.length > 0 ? [{ spec: { listeners: ofSets } }] : [], signature }]]
    }),
  )
}

/** By Deployment, so that an unchanged one has the same rollout. */
const rollouts = new WeakMap<RunningDeployment, Rollout>()

function findRollout(deployment: RunningDeployment): Rollout {
  const known = rollouts.get(deployment) ?? readRollout(deployment)
  rollouts.set(deployment, known)
  return known
}

type SetListeners = readonly { readonly name: string; readonly port: number; readonly protocol: string }[]
/** By list of messages, which is the same one for a Gateway that did not change. */
const setListeners = new WeakMap<readonly ConfigMessage[], SetListeners>()

/** The listeners of ListenerSets among the messages of a Gateway. */
function findSetListeners(messages: readonly ConfigMessage[]): SetListeners {
  const known = setListeners.get(messages)
  if (known) return known
  const listeners = messages.flatMap(({ kind, message }) => (kind === 'listener' ? [message as Listener] : []))
  // A listener's bind is `<port>/<Gateway>`: it has the port that a ListenerSet without one was assigned.
  const found = listeners.flatMap(({ listenerSet, name, bind, protocol }) => (listenerSet ? [{ name, port: Number.parseInt(bind, 10), protocol }] : []))
  setListeners.set(messages, found)
  return found
}

/** The trust domain of the mesh, if the Gateway needs it. */
function findTrustDomain(snapshot: Snapshot, parameters: LevelParameters): string | undefined {
  if (!isTrustDomainOpen(parameters)) return undefined
  return readTrustDomain(snapshot.get('ConfigMap', MESH_CONFIG.namespace, MESH_CONFIG.name)?.data?.[MESH_CONFIG.entry])
}

const versionOf = (object: { metadata: { uid?: string; generation: number } } | undefined): string => `${object?.metadata.uid}/${object?.metadata.generation}`

/** Changes with the ProxyParameters of a Gateway and of its class. */
export function parametersVersion(snapshot: Snapshot, gateway: Gateway, gatewayClass: GatewayClass): string[] {
  const ofClass = gatewayClass.spec.parametersRef
  const own = gateway.spec.infrastructure?.parametersRef
  return [
    ofClass ? versionOf(snapshot.get('ProxyParameters', ofClass.namespace ?? '', ofClass.name)) : '',
    own ? versionOf(snapshot.get('ProxyParameters', gateway.metadata.namespace, own.name)) : '',
  ]
}

import { listHosts, type AuthSection } from '#api/backend-hosts.ts'
import { isApiHost, isListedHost, type Cloud } from '#api/identity-hosts.ts'
import { withCode } from '#api/messages/code.ts'
import type { Backend, Listener, Policy, PolicyTarget, Route } from '#gen/config/types.ts'
import type { ConfigMessage } from '../../model/translation.ts'
import type { GatewayState } from '../gateway/gateway.ts'

/** For each backend of a Gateway, by key, the hosts that do not receive the credentials of the data plane although these are configured. */
export type UnsentIdentities = ReadonlyMap<string, readonly string[]>

/** Finds the hosts of backends in the messages of one Gateway that credentials of the data plane are not sent to (traffic.md §13.3). */
export function findUnsentIdentities(messages: readonly ConfigMessage[], { upstreams }: GatewayState): UnsentIdentities {
  const found = new Map<string, string[]>()
  if (upstreams === undefined) return found
  let policies: AuthPolicies | undefined
  for (const { kind, message } of messages) {
    if (kind !== 'backend') continue
    const backend = message as Backend
    policies ??= new AuthPolicies(messages)
    const problems = findUnsent(backend, policies, upstreams.identityHosts)
    if (problems.length > 0) found.set(backend.key, problems)
  }
  return found
}

/** For each backend, by key, the messages of all Gateways, each once. */
export function mergeIdentities(gateways: Iterable<UnsentIdentities>): UnsentIdentities {
  const merged = new Map<string, readonly string[]>()
  for (const found of gateways) for (const [key, problems] of found) merged.set(key, [...new Set([...(merged.get(key) ?? []), ...problems])].toSorted())
  return merged
}

function findUnsent(backend: Backend, policies: AuthPolicies, permitted: readonly string[]): string[] {
  const inline: AuthSection | undefined = backend.policies
  if (backend.dynamicForwardProxy !== undefined) {
    const identity = [inline, ...policies.on(backend.key, ''), ...policies.above(backend.key)].flatMap(identityOf)[0]
    if (identity === undefined) return []
    const fix = 'use the credentials of a Secret, or a backend with a fixed host'
    return [withCode(`dynamicForwardProxy: requests fail with 500, because ${identity.field} is not sent to hosts that clients choose; ${fix}`, 'PX1362')]
  }
  return listHosts(backend).flatMap(({ path, host, section, policies: ofPart, identity }) => {
    const own = [ofPart, inline, ...policies.on(backend.key, section)].find((level) => level?.auth !== undefined)
    const levels = own === undefined ? [...policies.above(backend.key)] : [own]
    const used = levels.flatMap((level) => (level === undefined ? (identity ? defaultOf(identity) : []) : identityOf(level)))
    const unsent = used.find(({ cloud }) => !isListedHost(permitted, host) && !isApiHost(cloud, host))
    if (unsent === undefined) return []
    const fix = `use the credentials of a Secret, or add ${host} to spec.upstreams.identityHosts in the ProxyParameters of the Gateway or of its class`
    const cause = `${unsent.field} is not sent to ${host}, which is no API host of ${unsent.cloud}`
    return [withCode(`${path}: requests fail with 500, because ${cause}; ${fix}`, 'PX1362')]
  })
}

interface Identity {
  readonly cloud: Cloud
  /** What is not sent. */
  readonly field: string
}

/** Credentials of the process in a section. */
function identityOf(section: AuthSection | undefined): Identity[] {
  const { cloudA, cloudB, cloudC } = section?.auth ?? {}
  if (cloudA !== undefined && cloudA.secretRef === undefined) return [{ cloud: 'AWS', field: 'the identity of auth.aws' }]
  if (cloudB !== undefined && cloudB.secretRef === undefined) return [{ cloud: 'Azure', field: 'the identity of auth.azure' }]
  return cloudC === undefined ? [] : [{ cloud: 'Google Cloud', field: 'the identity of auth.gcp' }]
}

const defaultOf = (cloud: Cloud): Identity => ({ cloud, field: 'the identity of the data plane, the default of auth,' })

interface Target extends Pick<PolicyTarget, 'namespace' | 'name' | 'section'> {
  readonly kind: string
}

/** Policies with `backend.auth` of one Gateway, by what they target. */
class AuthPolicies {
  readonly #byTarget: ReadonlyMap<string, readonly Policy[]>
  readonly #messages: readonly ConfigMessage[]
  #above: ReadonlyMap<string, ReadonlySet<AuthSection | undefined>> | undefined
  readonly #hasOuter: boolean

  constructor(messages: readonly ConfigMessage[]) {
    this.#messages = messages
    const policies = messages.flatMap(({ kind, message }) => (kind === 'policy' && (message as Policy).backend?.auth !== undefined ? [message as Policy] : []))
    this.#byTarget = Map.groupBy(policies.toSorted(compareAge), ({ target }) => keyOf(target))
    this.#hasOuter = policies.some(({ target }) => target.kind !== 'Backend' && target.kind !== 'Service')
  }

  /** Those on a part of a backend, then those on all of it; the first counts. */
  on(backend: string, section: string): (AuthSection | undefined)[] {
    const [namespace = '', name = ''] = backend.split('/')
    return [...new Set([section, ''])].flatMap((part) => this.#at({ kind: 'Backend', namespace, name, section: part }))
  }

  /** What holds for the routes to a backend; undefined: none does for one of them. */
  above(backend: string): ReadonlySet<AuthSection | undefined> {
    if (!this.#hasOuter) return NONE
    this.#above ??= this.#findAbove()
    return this.#above.get(backend) ?? NONE
  }

  #at(target: Target): (AuthSection | undefined)[] {
    return (this.#byTarget.get(keyOf(target)) ?? []).map((policy) => policy.backend)
  }

  #findAbove(): ReadonlyMap<string, ReadonlySet<AuthSection | undefined>> {
    const above = new Map<string, Set<AuthSection | undefined>>()
    const listeners = new Map(this.#messages.flatMap(({ kind, key, message }) => (kind === 'listener' ? [[key, message as Listener] as const] : [])))
    for (const { kind, message } of this.#messages) {
      if (kind !== 'route') continue
      const { route, listeners: keys, backends = [] } = message as Route
      for (const { ref } of backends) {
        if (ref.backend === undefined) continue
        const levels = above.get(ref.backend) ?? new Set()
        above.set(ref.backend, levels)
        for (const key of keys) levels.add(this.#strongest(listeners.get(key), route))
      }
    }
    return above
  }

  /** As in the data plane (dataplane/config/merge.ts), strongest first. */
  #strongest(listener: Listener | undefined, { kind, namespace, name, rule = '' }: Route['route']): AuthSection | undefined {
    const levels: Target[] = [...(rule === '' ? [] : [{ kind, namespace, name, section: rule }]), { kind, namespace, name }]
    if (listener !== undefined) {
      const { gateway, listenerSet, name: section } = listener
      const owner: Target = listenerSet === undefined ? { kind: 'Gateway', ...gateway } : { kind: 'ListenerSet', ...listenerSet }
      levels.push({ ...owner, section }, owner, { kind: 'Gateway', ...gateway })
    }
    return levels.flatMap((level) => this.#at(level))[0]
  }
}

const NONE: ReadonlySet<undefined> = new Set([undefined])

const keyOf = ({ kind, namespace, name, section = '' }: Target): string => `${kind} ${namespace}/${name} ${section}`

/** Oldest first, then by namespace and name. */
function compareAge(a: Policy, b: Policy): number {
  const [one, other] = [a, b].map(({ creationTimestamp = '~', policy }) => `${creationTimestamp} ${policy.namespace}/${policy.name}`)
  return one === other ? 0 : (one ?? '') < (other ?? '') ? -1 : 1
}

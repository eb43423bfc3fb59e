import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import type { ProxyPolicy } from './objects.ts'
import type { Issue, Path } from './validate.ts'

const groupOf: Readonly<Record<string, string>> = {
  Service: '',
  ProxyBackend: GROUP,
  Gateway: GATEWAY_GROUP,
  ListenerSet: GATEWAY_GROUP,
  HTTPRoute: GATEWAY_GROUP,
  GRPCRoute: GATEWAY_GROUP,
  InferencePool: 'inference.networking.k8s.io',
}
const trafficKinds = ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute', 'InferencePool']

interface Target {
  readonly group: string
  readonly kind: string
  readonly sectionName?: string
}

/** What a ProxyPolicy may target (operator.md §4.7); api/v1alpha1/policy.ts says the same in CEL. */
export function checkPolicy({ spec }: ProxyPolicy): Issue[] {
  const lists = { targetRefs: spec.targetRefs ?? [], targetSelectors: spec.targetSelectors ?? [] }
  return Object.entries(lists).flatMap(([field, targets]) =>
    targets.flatMap((target, index) => {
      const path: Path = ['spec', field, index]
      const first = targets[0]
      if (first && target.kind !== first.kind)
        return [{ path, message: `is a ${target.kind}, the first target a ${first.kind}; only one kind of target may be used in one policy` }]
      return checkTarget(spec, target, path)
    }),
  )
}

function checkTarget(spec: ProxyPolicy['spec'], { group, kind, sectionName }: Target, path: Path): Issue[] {
  const refuse = (message: string): Issue[] => [{ path, message }]
  if (!Object.hasOwn(groupOf, kind) || groupOf[kind] !== group) {
    const choices = Object.entries(groupOf).map(([name, own]) => (own === '' ? name : `${own}/${name}`))
    return refuse(`${group === '' ? kind : `${group}/${kind}`} cannot be a target; use ${choices.join(', ')}`)
  }
  const { frontend, traffic, backend } = spec
  if (kind === 'Service' && sectionName !== undefined && !isPort(sectionName))
    return refuse(`sectionName of a Service must be a port number from 1 to 65535, not ${sectionName}`)
  if (frontend && kind !== 'Gateway') return refuse('frontend can only target a Gateway')
  if (frontend && sectionName !== undefined) return refuse('frontend may only target a Gateway, not a listener; remove sectionName')
  if (traffic && !trafficKinds.includes(kind)) return refuse(`traffic can only target ${trafficKinds.join(', ')}`)
  if (traffic?.phase === 'PreRouting' && kind !== 'Gateway' && kind !== 'ListenerSet')
    return refuse('phase PreRouting can only target a Gateway or ListenerSet')
  if (backend?.ai && kind === 'Service') return refuse('backend.ai may not target a Service')
  if (backend?.mcp && (kind === 'Service' || (kind === 'ProxyBackend' && sectionName !== undefined)))
    return refuse('backend.mcp may not target a Service or a part of a ProxyBackend')
  if (backend?.mcp?.authentication && traffic?.jwtAuthentication)
    return refuse('traffic.jwtAuthentication and backend.mcp.authentication may not be used in the same policy')
  return []
}

const isPort = (text: string): boolean => /^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535

import { withCode } from '#api/messages/code.ts'
import { condition } from '../model/conditions.ts'
import type { Condition, ObjectStatus, Translation } from '../model/translation.ts'
import { changeKind } from './kind.ts'

/** Returns the MCP targets (`<namespace>/<backend>/<target>`) whose tools data planes of a Gateway (`<namespace>/<name>`) hold. */
type FindHeld = (gateway: string) => readonly string[]

/**
 * Makes a function that adds to the statuses of ProxyBackends which of their MCP targets have tools that wait for approval (mcp.md §4.9). A status keeps its identity as
 * long as nothing that it depends on changes: the writer compares by it.
 */
export function createHeldTools(): (statuses: readonly ObjectStatus[], gateways: Translation['gateways'], find: FindHeld) => readonly ObjectStatus[] {
  const known = new WeakMap<ObjectStatus, { readonly targets: string; readonly result: ObjectStatus }>()
  return (statuses, gateways, find) => {
    const held = collect(gateways, find)
    if (held.size === 0) return statuses
    return changeKind(statuses, 'ProxyBackend', (status) => {
      const names = held.get(`${status.namespace ?? ''}/${status.name}`)
      if (names === undefined) return status
      const targets = [...names].toSorted().join(', ')
      const last = known.get(status)
      if (last?.targets === targets) return last.result
      const result = { ...status, status: withCondition(status.status, targets) }
      known.set(status, { targets, result })
      return result
    })
  }
}

/** Names of targets by backend. A data plane speaks only for backends that its Gateway reaches. */
function collect(gateways: Translation['gateways'], find: FindHeld): ReadonlyMap<string, ReadonlySet<string>> {
  const byBackend = new Map<string, Set<string>>()
  for (const [gateway, messages] of gateways) {
    const held = find(gateway)
    if (held.length === 0) continue
    const reached = new Set(messages.flatMap(({ kind, key }) => (kind === 'backend' ? [key] : [])))
    for (const path of held) {
      const [namespace = '', name = '', ...target] = path.split('/')
      const backend = `${namespace}/${name}`
      if (!reached.has(backend)) continue
      const names = byBackend.get(backend) ?? new Set<string>()
      byBackend.set(backend, names.add(target.join('/')))
    }
  }
  return byBackend
}

function withCondition(status: object, targets: string): object {
  const { conditions = [] } = status as { readonly conditions?: readonly Condition[] }
  const text = `mcp.toolPins: targets ${targets} have tools that clients do not see until they are approved; proxyctl mcp diff shows them`
  return {
    ...status,
    conditions: [...conditions, condition('ToolsApproved', false, 'ToolsHeld', withCode(text, 'PX1357'), conditions[0]?.observedGeneration ?? 0)],
  }
}

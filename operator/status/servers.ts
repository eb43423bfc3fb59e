import { withCode } from '#api/messages/code.ts'
import type { ConditionReason } from '#api/names.ts'
import { describeReady, type Rollout } from '../deploy/rollout.ts'
import { condition } from '../model/conditions.ts'
import type { Condition, ObjectStatus } from '../model/translation.ts'
import { changeKind } from './kind.ts'

/** An MCP server as last applied, and as it runs. */
export interface RunningServer {
  readonly target: string
  /** Name of its objects. */
  readonly name: string
  /** Result of applying its objects. `warnings` name ignored fields of its parameters. */
  readonly outcome: ({ readonly ok: true } | { readonly ok: false; readonly reason: ConditionReason; readonly message: string }) & {
    readonly warnings: readonly string[]
  }
  /** Undefined until it was created and watched. */
  readonly rollout: Rollout | undefined
}

interface Problem {
  readonly reason: ConditionReason
  readonly text: string
}

/**
 * Makes a function that adds to the statuses of ProxyBackends how their MCP servers run (mcp.md §2.4). A status keeps its identity as long as nothing that it depends on
 * changes: the writer compares by it.
 */
export function createServerStatus(): (statuses: readonly ObjectStatus[], serversOf: (backend: string) => readonly RunningServer[]) => readonly ObjectStatus[] {
  const known = new WeakMap<ObjectStatus, { readonly servers: readonly RunningServer[]; readonly result: ObjectStatus }>()
  return (statuses, serversOf) =>
    changeKind(statuses, 'ProxyBackend', (status) => {
      const { namespace = '', name } = status
      const servers = serversOf(`${namespace}/${name}`)
      if (servers.length === 0) return status
      const last = known.get(status)
      if (last?.servers === servers) return last.result
      const { conditions = [] } = status.status as { readonly conditions?: readonly Condition[] }
      const result = {
        ...status,
        status: { ...status.status, conditions: [...conditions, readiness(namespace, servers, conditions[0]?.observedGeneration ?? 0)] },
      }
      known.set(status, { servers, result })
      return result
    })
}

function readiness(namespace: string, servers: readonly RunningServer[], generation: number): Condition {
  const problems = servers.flatMap((server) => findProblem(namespace, server) ?? [])
  const [first] = problems
  if (first !== undefined) return condition('ServersReady', false, first.reason, problems.map(({ text }) => text).join('; '), generation)
  return condition('ServersReady', true, 'Ready', servers.map(describe).join('; '), generation)
}

/** Why a server has no ready pod, or could not be updated. */
function findProblem(namespace: string, { target, name, outcome, rollout }: RunningServer): Problem | undefined {
  if (!outcome.ok) return { reason: outcome.reason, text: `server of target ${target}: ${outcome.message}` }
  if (rollout !== undefined && rollout.ready > 0) return undefined
  const state = rollout === undefined ? 'its Deployment has not been created yet' : [describeReady(rollout), ...rollout.failures].join(': ')
  const text = `server of target ${target} is not ready: ${state}; kubectl -n ${namespace} describe pods -l app.kubernetes.io/name=${name} shows why`
  return { reason: 'Pending', text: withCode(text, 'PX1359') }
}

function describe({ target, outcome, rollout }: RunningServer): string {
  const failures = rollout !== undefined && rollout.ready < rollout.wanted ? rollout.failures : []
  const warnings = outcome.warnings.map((warning) => withCode(warning, 'PX1023'))
  return [`server of target ${target}: ${rollout === undefined ? '' : describeReady(rollout)}`, ...failures, ...warnings].join(', ')
}

import { withCode } from '#api/messages/code.ts'
import { CONTROLLER_NAME } from '#api/names.ts'
import { condition } from '../model/conditions.ts'
import type { Condition, ObjectStatus } from '../model/translation.ts'
import type { RefusedPlugin } from '../serve/nack.ts'
import { changeKind } from './kind.ts'

interface Entry {
  readonly ancestorRef: { readonly kind?: string; readonly namespace?: string; readonly name: string }
  readonly controllerName: string
  readonly conditions: readonly Condition[]
}

/** Returns the plugins that data planes of a Gateway (`<namespace>/<name>`) cannot load. */
type FindRefused = (gateway: string) => readonly RefusedPlugin[]

/**
 * Makes a function that adds to the statuses of ProxyPolicies which of their plugins data planes could not load (traffic.md §8.13). A status keeps its identity as long as
 * nothing that it depends on changes: the writer compares by it.
 */
export function createRefusals(): (statuses: readonly ObjectStatus[], find: FindRefused) => readonly ObjectStatus[] {
  const known = new WeakMap<ObjectStatus, { readonly problems: string; readonly result: ObjectStatus }>()
  return (statuses, find) =>
    changeKind(statuses, 'ProxyPolicy', (status) => {
      const { ancestors = [] } = status.status as { readonly ancestors?: readonly Entry[] }
      const problems = ancestors.map((entry) => problemsOf(status, entry, find))
      if (problems.every((texts) => texts.length === 0)) return status
      const key = JSON.stringify(problems)
      const last = known.get(status)
      if (last?.problems === key) return last.result
      const entries = ancestors.map((entry, index) => ({ ...entry, conditions: entry.conditions.map((each) => withProblems(each, problems[index] ?? [])) }))
      const result = { ...status, status: { ...status.status, ancestors: entries } }
      known.set(status, { problems: key, result })
      return result
    })
}

function problemsOf({ namespace = '', name }: ObjectStatus, { ancestorRef, controllerName, conditions }: Entry, find: FindRefused): string[] {
  if (ancestorRef.kind !== 'Gateway' || controllerName !== CONTROLLER_NAME) return []
  const prefix = `${namespace}/${name}/`
  return (
    find(`${ancestorRef.namespace ?? namespace}/${ancestorRef.name}`)
      // The operator reports syntax errors itself.
      .filter(({ plugin, problem }) => plugin.startsWith(prefix) && !conditions.some(({ message }) => message.includes(problem)))
      .map(({ plugin, problem }) =>
        withCode(
          `traffic.plugins: plugin ${plugin.slice(prefix.length)} cannot be loaded, and its last good version stays if there is one: ${problem}`,
          'PX1342',
        ),
      )
      .toSorted()
  )
}

function withProblems(each: Condition, problems: readonly string[]): Condition {
  if (each.type !== 'Accepted' || each.status !== 'True' || problems.length === 0) return each
  const own = each.reason === 'Valid' ? [] : [each.message]
  return condition('Accepted', true, 'PartiallyValid', [...own, ...problems].join('; '), each.observedGeneration)
}

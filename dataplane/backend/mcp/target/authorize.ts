import { compilePermissive, environments, fromJson, type Stored } from '#api/cel/index.ts'
import type { Authorization, BackendFull } from '#gen/config/types.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { RequestTrace } from '../../../request/exchange/trace.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import { compileSet, explainRefusal, groupRules, isAllowed, type Rules } from '../../../policy/authorization/rules.ts'
import type { PolicyState } from '../../../policy/state.ts'

/** Kinds of items that rules apply to. */
export type ItemKind = 'tool' | 'prompt' | 'resource' | 'task'

/** A tool, prompt, resource or task that a request refers to. */
export interface Item {
  readonly kind: ItemKind
  readonly target: string
  /** Name, URI or id as the target knows it. */
  readonly name: string
  /** Arguments of a tool call; undefined in lists. */
  readonly arguments?: unknown
}

/** Compiled authorization rules for items. */
export interface ItemRules {
  readonly rules: Rules
  /** A Deny rule that could not be compiled: its effect is unknown, so all items are denied (mcp.md §7). */
  readonly broken: string | undefined
}

/** Combines the rules of all levels (mcp.md §7); undefined if there are none. */
export function compileItemRules(sections: readonly Pick<BackendFull, 'mcp'>[], { kept }: Pick<PolicyState, 'kept'>): ItemRules | undefined {
  const sets = sections.flatMap(({ mcp }) => mcp?.authorization ?? [])
  if (sets.length === 0) return undefined
  return { rules: groupRules(sets, (set) => kept.get(set, [], () => compileSet(set, 'request'))), broken: findBrokenDeny(sets) }
}

function findBrokenDeny(sets: readonly Authorization[]): string | undefined {
  const expressions = sets.flatMap(({ action, policy }) => (action === 'Deny' ? policy.matchExpressions : []))
  return expressions.find((expression) => compilePermissive(expression, environments.request).problems.length > 0)
}

/** An exchange whose variable `mcp` has the item to check and the method of the message (decision D6). */
class ItemView extends ExchangeView {
  item: Item | undefined
  /** Lists evaluate each rule for each item: the trace has the refusals only. */
  isOfList = false

  override get trace(): RequestTrace | undefined {
    return this.isOfList ? undefined : super.trace
  }

  override get(key: string): Stored {
    if (key !== 'mcp') return super.get(key)
    if (this.item === undefined) return null
    const { kind, ...item } = this.item
    const { methodName } = (super.get('mcp') ?? {}) as { methodName?: string }
    return { methodName, [kind]: item }
  }
}

/** Whether one request may use an item. `own` are the rules of the item's target. A trace of the request has the rule that says no. */
export type ItemJudge = (item: Item, own: ItemRules | undefined, isOfList?: boolean) => boolean

/** Returns the judge for one request. `rules` are those of the backend; the rules of the target must allow an item too (decision D1). */
export function judgeItems(exchange: Exchange, rules: ItemRules | undefined): ItemJudge {
  let view: ItemView | undefined
  const passes = (set: ItemRules | undefined, item: Item, isOfList: boolean): boolean => {
    if (set === undefined) return true
    const { trace } = exchange
    if (set.broken !== undefined) {
      trace?.addHidden(item, `a Deny rule is not valid: ${set.broken}`)
      return false
    }
    view ??= new ItemView(exchange)
    view.item = item.arguments === undefined ? item : { ...item, arguments: fromJson(item.arguments) }
    view.isOfList = isOfList
    if (isAllowed(set.rules, view)) return true
    if (trace === undefined) return false
    view.isOfList = true
    trace.addHidden(item, explainRefusal(set.rules, view))
    return false
  }
  return (item, own, isOfList = false) => passes(rules, item, isOfList) && passes(own, item, isOfList)
}

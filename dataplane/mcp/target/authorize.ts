import { compilePermissive, environments, fromJson, type Stored } from '#api/cel/index.ts'
import type { Authorization, BackendFull } from '#gen/config/types.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { ExchangeView } from '../../expression/view.ts'
import { compileSet, groupRules, isAllowed, type Rules } from '../../policy/authorization/rules.ts'
import type { PolicyState } from '../../policy/state.ts'

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
  /** A Deny rule could not be compiled: its effect is unknown, so all items are denied (mcp.md §7). */
  readonly isBroken: boolean
}

/** Combines the rules of all levels (mcp.md §7); undefined if there are none. */
export function compileItemRules(sections: readonly Pick<BackendFull, 'mcp'>[], { kept }: Pick<PolicyState, 'kept'>): ItemRules | undefined {
  const sets = sections.flatMap(({ mcp }) => mcp?.authorization ?? [])
  if (sets.length === 0) return undefined
  return { rules: groupRules(sets, (set) => kept.get(set, [], () => compileSet(set, 'request'))), isBroken: sets.some(isBrokenDeny) }
}

function isBrokenDeny({ action, policy }: Authorization): boolean {
  return action === 'Deny' && policy.matchExpressions.some((expression) => compilePermissive(expression, environments.request).problems.length > 0)
}

/** An exchange whose variable `mcp` has the item to check and the method of the message (decision D6). */
class ItemView extends ExchangeView {
  item: Item | undefined

  override get(key: string): Stored {
    if (key !== 'mcp') return super.get(key)
    if (this.item === undefined) return null
    const { kind, ...item } = this.item
    const { methodName } = (super.get('mcp') ?? {}) as { methodName?: string }
    return { methodName, [kind]: item }
  }
}

/** Whether one request may use an item. `own` are the rules of the item's target. */
export type ItemJudge = (item: Item, own: ItemRules | undefined) => boolean

/** Returns the judge for one request. `rules` are those of the backend; the rules of the target must allow an item too (decision D1). */
export function judgeItems(exchange: Exchange, rules: ItemRules | undefined): ItemJudge {
  let view: ItemView | undefined
  const passes = (set: ItemRules | undefined, item: Item): boolean => {
    if (set === undefined) return true
    if (set.isBroken) return false
    view ??= new ItemView(exchange)
    view.item = item.arguments === undefined ? item : { ...item, arguments: fromJson(item.arguments) }
    return isAllowed(set.rules, view)
  }
  return (item, own) => passes(rules, item) && passes(own, item)
}

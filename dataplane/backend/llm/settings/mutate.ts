import { evalJson, fromJson, type Program } from '#api/cel/index.ts'
import type { BackendAI } from '#gen/config/types.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import type { JsonObject } from '../common/types.ts'
import { variables } from '../../../request/exchange/variables.ts'

/** Policy changes to the top-level fields of a request body, in the order in which they apply. */
export interface Mutations {
  readonly overrides: readonly (readonly [string, unknown])[]
  readonly transformations: readonly (readonly [string, Program])[]
  readonly defaults: readonly (readonly [string, unknown])[]
}

/** Compiles the field mutations of an `ai` section; undefined if there are none. */
export function compileMutations({ overrides = [], transformations = [], defaults = [] }: BackendAI): Mutations | undefined {
  if (overrides.length + transformations.length + defaults.length === 0) return undefined
  return {
    overrides: overrides.map(({ field, value }) => [field, value]),
    transformations: transformations.map(({ field, expression }) => [field, compileExpression(expression, 'llm')]),
    defaults: defaults.map(({ field, value }) => [field, value]),
  }
}

/**
 * Applies overrides, then transformations, then defaults (llm.md §6). Every expression sees `body` without the other changes; one that
 * fails removes its field. A default does not replace a field that the client set to null.
 */
export function mutate(body: JsonObject, { overrides, transformations, defaults }: Mutations, exchange: Exchange): JsonObject {
  const result: Record<string, unknown> = { ...body }
  for (const [field, value] of overrides) setField(result, field, value)
  if (transformations.length > 0) {
    variables.llmRequest.set(exchange, fromJson(body))
    const view = new ExchangeView(exchange)
    for (const [field, program] of transformations) {
      const value = evalJson(program, view)
      if (isJson(value)) setField(result, field, value)
      else delete result[field]
    }
    variables.llmRequest.set(exchange, undefined)
  }
  for (const [field, value] of defaults) if (!Object.hasOwn(result, field)) setField(result, field, value)
  return result
}

/** Assigns by definition, because a plain assignment to `__proto__` sets no field. */
function setField(target: Record<string, unknown>, field: string, value: unknown): void {
  Object.defineProperty(target, field, { value, enumerable: true, configurable: true, writable: true })
}

const isJson = (value: unknown): boolean => value !== undefined && !(value instanceof Uint8Array)

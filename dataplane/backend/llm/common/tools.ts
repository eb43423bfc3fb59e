import { isObject, parseJson, printJson } from './json.ts'
import type { ToolUse } from './neutral.ts'

/** Parses tool arguments: `""` is `{}`, text that is not JSON stays a string (llm.md §7.1). */
export function parseArguments(json: string): unknown {
  if (json.trim() === '') return {}
  try {
    return parseJson(json)
  } catch {
    return json
  }
}

/** The arguments as JSON text. A string input is text that is not JSON and stays as it is. */
export function printArguments({ input, json }: ToolUse): string {
  if (json !== undefined) return json
  if (input === undefined) return '{}'
  return typeof input === 'string' ? input : printJson(input)
}

/** The input of a tool for Converse and Claude, which accept only objects. */
export function objectInput({ input }: ToolUse): object {
  return isObject(input) ? input : {}
}

const budgets: Readonly<Record<string, number>> = { minimal: 1024, low: 1024, medium: 2048, high: 4096, xhigh: 8192, max: 16384 }

/** The thinking budget of a reasoning effort, in tokens; undefined for `none` and unknown efforts (llm.md §7.1). */
export function budgetOfEffort(effort: string | undefined): number | undefined {
  return effort !== undefined && Object.hasOwn(budgets, effort) ? budgets[effort] : undefined
}

/** Whether OpenAI accepts a schema as strict: each object names all its properties as required, and allows no others. */
export function isStrictSchema(schema: unknown): boolean {
  if (Array.isArray(schema)) return (schema as unknown[]).every(isStrictSchema)
  if (!isObject(schema)) return true
  const { type, properties, required, additionalProperties, allOf, oneOf, not, patternProperties } = schema
  if ([allOf, oneOf, not, patternProperties].some((keyword) => keyword !== undefined)) return false
  const names = isObject(properties) ? Object.keys(properties) : []
  if (type === 'object' || isObject(properties)) {
    const demanded = new Set(Array.isArray(required) ? (required as unknown[]) : [])
    if (additionalProperties !== false || !names.every((name) => demanded.has(name))) return false
  }
  const { items, anyOf, $defs: defs } = schema
  return [...(isObject(properties) ? Object.values(properties) : []), ...(isObject(defs) ? Object.values(defs) : []), items, anyOf].every(isStrictSchema)
}

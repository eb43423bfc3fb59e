import { isObject, parseJson, printJson } from './json.ts'
import type { ToolUse } from './neutral.ts'

/** Tool arguments as a value: `""` is `{}`, JSON is itself, anything else stays text (llm.md §7.1). */
export function parseArguments(json: string): unknown {
  if (json.trim() === '') return {}
  try {
    return parseJson(json)
  } catch {
    return json
  }
}

/** Arguments as JSON text. A string input is text that never was JSON. */
export function printArguments({ input, json }: ToolUse): string {
  if (json !== undefined) return json
  if (input === undefined) return '{}'
  return typeof input === 'string' ? input : printJson(input)
}

/** Converse takes objects only. */
export function objectInput({ input }: ToolUse): object {
  return isObject(input) ? input : {}
}

const budgets: Readonly<Record<string, number>> = { minimal: 1024, low: 1024, medium: 2048, high: 4096, xhigh: 8192, max: 16384 }

/** Thinking budget in tokens of a reasoning effort; undefined for none and unknown words (llm.md §7.1). */
export function budgetOfEffort(effort: string | undefined): number | undefined {
  return effort !== undefined && Object.hasOwn(budgets, effort) ? budgets[effort] : undefined
}

import { isObject, type JsonObject } from './json.ts'

/** Capabilities of a server, one letter each, as stored in session ids. */
const OFFERS = { tools: 't', prompts: 'p', resources: 'r', logging: 'l', completions: 'c' } as const
export type Offer = keyof typeof OFFERS

/** The capabilities in the result of `initialize` or `server/discover`. */
export function capabilitiesOf(result: JsonObject): JsonObject {
  return isObject(result['capabilities']) ? result['capabilities'] : {}
}

/** The letters of the capabilities in a result. */
export function offersOf(result: JsonObject): string {
  const capabilities = capabilitiesOf(result)
  return Object.entries(OFFERS)
    .filter(([name]) => capabilities[name] !== undefined)
    .map(([, letter]) => letter)
    .join('')
}

/** Removes client capabilities if requests of servers could not be answered (decision D4). */
export function withoutReverse({ roots: _roots, sampling: _sampling, elicitation: _elicitation, tasks: _tasks, ...capabilities }: JsonObject): JsonObject {
  return capabilities
}

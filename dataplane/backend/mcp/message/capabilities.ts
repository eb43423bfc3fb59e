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

/** Removes the capability to use tasks, whose forms differ between revisions. */
export function withoutTasks({ tasks: _tasks, ...capabilities }: JsonObject): JsonObject {
  return capabilities
}

/** Whether a client with these capabilities responds to a request of a server: elicitation, sampling or roots. */
export function admitsInput(
  { elicitation, sampling, roots }: JsonObject,
  { method, params }: { readonly method: string; readonly params?: JsonObject },
): boolean {
  if (method === 'sampling/createMessage') return isObject(sampling)
  if (method === 'roots/list') return isObject(roots)
  if (method !== 'elicitation/create' || !isObject(elicitation)) return false
  if (params?.['mode'] === 'url') return elicitation['url'] !== undefined
  // Without modes, the capability is that of forms.
  return elicitation['form'] !== undefined || elicitation['url'] === undefined
}

/** Whether a client with these capabilities responds to requests of servers at all. */
export const takesInput = ({ elicitation, sampling, roots }: JsonObject): boolean => isObject(elicitation) || isObject(sampling) || isObject(roots)

/** Removes client capabilities if requests of servers could not be answered (decision D4). */
export function withoutReverse({ roots: _roots, sampling: _sampling, elicitation: _elicitation, tasks: _tasks, ...capabilities }: JsonObject): JsonObject {
  return capabilities
}

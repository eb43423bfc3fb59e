import type { Cooperative } from '../../../runtime/cooperative.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { mergeUnchanged } from './merge.ts'

/** A tool of a list, as the client sees it. */
export interface ListedTool {
  /** Name of the target that has it. */
  readonly server: string
  readonly tool: JsonObject
}

/** Tools between two steps. */
const TOOLS_PER_STEP = 200

/** The list as hooks see it. */
export function* viewTools(tools: readonly ListedTool[]): Cooperative<JsonObject[]> {
  const view: JsonObject[] = []
  for (const { server, tool } of tools) {
    view.push({ ...tool, server })
    if (view.length % TOOLS_PER_STEP === 0) yield
  }
  return view
}

const keyOf = (server: string, name: string): string => JSON.stringify([server, name])

/** What a hook made of the list. Throws an Error that names the tool if it cannot be used. */
export function* readTools(tools: readonly ListedTool[], output: unknown): Cooperative<readonly ListedTool[]> {
  if (!Array.isArray(output)) throw new TypeError('the list of tools is no list')
  const known = new Map<string, ListedTool[]>()
  for (const listed of tools) {
    const key = keyOf(listed.server, String(listed.tool['name']))
    known.set(key, [...(known.get(key) ?? []), listed])
  }
  const changed: ListedTool[] = []
  for (const [nth, item] of (output as unknown[]).entries()) {
    if (!isObject(item) || typeof item['name'] !== 'string' || typeof item['server'] !== 'string')
      throw new TypeError(`tools[${nth}] must be an object with the name and the server of a tool`)
    const { server, ...given } = item as JsonObject & { server: string }
    const name = item['name']
    const [listed, ...rest] = known.get(keyOf(server, name)) ?? []
    if (listed === undefined)
      throw new TypeError(`tools[${nth}]: the list has no tool ${JSON.stringify(name)} of server ${JSON.stringify(server)}, or it is returned twice`)
    known.set(keyOf(server, name), rest)
    changed.push({ server, tool: yield* readTool(listed.tool, given, `tools[${nth}]`) })
  }
  return changed
}

function* readTool(before: JsonObject, given: JsonObject, at: string): Cooperative<JsonObject> {
  // `server` of the hook hides a member of the server with that name.
  const own = Object.hasOwn(before, 'server') ? { ...given, server: before['server'] } : given
  const tool = yield* mergeUnchanged(before, own)
  if (!isObject(tool)) throw new TypeError(`${at} is no object`)
  if (before['inputSchema'] !== undefined && !isObject(tool['inputSchema'])) throw new TypeError(`${at}.inputSchema is no object`)
  if (tool['outputSchema'] !== undefined && tool['outputSchema'] !== before['outputSchema'])
    throw new TypeError(`${at}.outputSchema is changed: keep it, or remove it`)
  return tool
}

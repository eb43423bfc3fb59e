import type { LlmDelta, PluginCaller, PluginHooks } from '#api/plugin/index.ts'
import type { EventInput, EventOutput } from '../../../request/exchange/plugin-hooks.ts'

/** Names of all hooks. */
const hookNames = ['request', 'llm.request', 'llm.event', 'llm.response', 'mcp.list', 'mcp.call', 'mcp.result'] as const
export type HookName = (typeof hookNames)[number]

/** Most characters of JSON that a hook receives or returns. */
export const MAX_HOOK_LENGTH = 4 * 1024 * 1024
/** Most characters of `state` of a request, as JSON. */
const MAX_STATE_LENGTH = 64 * 1024
/** Most characters that a stream holds back for a hook, for each text. */
const MAX_REST_LENGTH = 64 * 1024

/** One call of a hook; all values are JSON text. */
export interface HookCall {
  readonly hook: HookName
  readonly input: string
  /** A PluginCaller without `state`. */
  readonly caller: string
  readonly state: string
}

/** What a hook returned: JSON text, or a response. */
export type HookReturn =
  | { readonly output: string; readonly state: string }
  | { readonly status: number; readonly headers: readonly string[]; readonly body: Uint8Array }

const groups = { llm: ['request', 'event', 'response'], mcp: ['list', 'call', 'result'] } as const

/** Checks what `setup` returned. Throws an Error for the log. */
export function checkHooks(hooks: unknown): PluginHooks {
  if (typeof hooks !== 'object' || hooks === null) throw new Error('setup does not return an object with hooks, such as { request }')
  const given = hooks as Readonly<Record<string, unknown>>
  if (given['request'] !== undefined && typeof given['request'] !== 'function') throw new Error('setup returns a request that is no function')
  for (const [group, names] of Object.entries(groups)) {
    const members = given[group]
    if (members === undefined) continue
    if (typeof members !== 'object' || members === null) throw new Error(`setup returns ${group} that is no object with hooks`)
    for (const [name, hook] of Object.entries(members)) {
      if (!(names as readonly string[]).includes(name)) throw new Error(`setup returns ${group}.${name}; the hooks of ${group} are ${names.join(', ')}`)
      if (hook !== undefined && typeof hook !== 'function') throw new Error(`setup returns ${group}.${name} that is no function`)
    }
  }
  if (listHooks(hooks).length === 0) throw new Error('setup does not return { request }, { llm } or { mcp }')
  return hooks
}

/** Names of the hooks that a plugin has. */
export function listHooks({ request, llm, mcp }: PluginHooks): HookName[] {
  const members: Readonly<Record<HookName, unknown>> = {
    request,
    'llm.request': llm?.request,
    'llm.event': llm?.event,
    'llm.response': llm?.response,
    'mcp.list': mcp?.list,
    'mcp.call': mcp?.call,
    'mcp.result': mcp?.result,
  }
  return hookNames.filter((name) => members[name] !== undefined)
}

/** Runs a hook of a plugin; one that the plugin does not have changes nothing. Rejects with the error of the plugin. */
export async function runHook(hooks: PluginHooks, { hook, input, caller, state }: HookCall): Promise<HookReturn> {
  const who: PluginCaller = { ...(JSON.parse(caller) as Omit<PluginCaller, 'state'>), state: JSON.parse(state) as Record<string, unknown> }
  const value = JSON.parse(input) as unknown
  let output: unknown
  try {
    output = hook === 'llm.event' ? await runEvents(hooks, value as EventInput, who) : ((await callHook(hooks, hook, value, who)) ?? value)
  } catch (thrown) {
    // HTTPException of Hono; a bundled plugin has a class of its own.
    if (typeof thrown !== 'object' || thrown === null || !('getResponse' in thrown) || typeof thrown.getResponse !== 'function') throw thrown
    output = thrown.getResponse()
  }
  if (output instanceof Response) {
    if (hook === 'llm.event' || hook === 'mcp.list') throw new TypeError(`${hook} cannot return a Response`)
    return { status: output.status, headers: [...output.headers].flat(), body: new Uint8Array(await output.arrayBuffer()) }
  }
  return { output: print(output, MAX_HOOK_LENGTH, `${hook} returned`), state: print(who.state, MAX_STATE_LENGTH, 'state is') }
}

function callHook(hooks: PluginHooks, hook: HookName, value: unknown, who: PluginCaller): unknown {
  const { llm, mcp } = hooks as { readonly [Group in 'llm' | 'mcp']?: Readonly<Record<string, (value: unknown, who: PluginCaller) => unknown>> }
  const [group, name = ''] = hook.split('.')
  // As methods, so that `this` is what authors expect.
  return group === 'llm' ? llm?.[name]?.(value, who) : mcp?.[name]?.(value, who)
}

/** Runs `llm.event` for each piece, with the rest of the piece before. */
async function runEvents(hooks: PluginHooks, { deltas, rests }: EventInput, who: PluginCaller): Promise<EventOutput> {
  const held = new Map(Object.entries(rests))
  const texts: string[] = []
  for (const { type, segment, isLast, text } of deltas) {
    const delta: LlmDelta = { type, segment, isLast, text: `${held.get(segment) ?? ''}${text}` }
    const pending = callHook(hooks, 'llm.event', delta, who) as LlmDelta | undefined | Promise<LlmDelta | undefined>
    const returned = (pending instanceof Promise ? await pending : pending) ?? delta
    if ((returned as unknown) instanceof Response) throw new TypeError('llm.event cannot return a Response')
    const { text: changed, rest = '' } = returned
    if (typeof changed !== 'string' || typeof rest !== 'string') throw new TypeError('llm.event returned a delta whose text or rest is no string')
    if (rest.length > MAX_REST_LENGTH) throw new RangeError(`llm.event returned a rest of more than ${MAX_REST_LENGTH} characters`)
    if (isLast && rest !== '') throw new TypeError('llm.event returned a rest with isLast, after which no piece follows')
    texts.push(changed)
    if (rest === '') held.delete(segment)
    else held.set(segment, rest)
  }
  return { texts, rests: Object.fromEntries(held) }
}

function print(value: unknown, limit: number, subject: string): string {
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) throw new TypeError(`${subject} no JSON`)
  if (text.length > limit) throw new RangeError(`${subject} longer than ${limit} characters of JSON`)
  return text
}

import { compact, define, filledText, inside, numberOf, objectOf, objectsOf, without } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import { merge, UnconvertibleError, type Forms, type StreamEvent } from './form.ts'

/** Members of chunks that are repeated in each, or pad them. */
const chunkMembers = ['choices', 'object', 'usage', 'obfuscation']
/** Members of a delta that come whole. Texts of others are joined. */
const wholeMembers: ReadonlySet<string> = new Set(['role', 'id', 'type', 'name'])

interface Choice {
  readonly message: Record<string, unknown>
  readonly calls: { readonly index: number; readonly call: Record<string, unknown> }[]
  readonly more: Record<string, unknown>
}

class CompletionsCollector {
  readonly #head: Record<string, unknown> = {}
  #usage: unknown
  readonly #choices = new Map<number, Choice>()

  add(data: JsonObject): void {
    if (data['error'] !== undefined && data['error'] !== null) throw new UnconvertibleError('the stream has an error')
    // Azure sends a chunk without id and model before the first.
    for (const [key, value] of Object.entries(without(data, ...chunkMembers))) if (isBlank(this.#head[key])) define(this.#head, key, value)
    if (objectOf(data['usage']) !== undefined) this.#usage = data['usage']
    for (const choice of objectsOf(data['choices'])) this.#addChoice(choice)
  }

  #addChoice(choice: JsonObject): void {
    const index = numberOf(choice['index']) ?? 0
    const known = this.#choices.get(index) ?? { message: {}, calls: [], more: {} }
    this.#choices.set(index, known)
    for (const [key, value] of Object.entries(inside(choice['delta']))) {
      if (key === 'tool_calls') for (const [at, call] of objectsOf(value).entries()) addCall(known.calls, numberOf(call['index']) ?? at, call)
      else mergeDelta(known.message, key, value)
    }
    for (const [key, value] of Object.entries(without(choice, 'index', 'delta'))) {
      if (key === 'logprobs') mergeLogprobs(known.more, value)
      else if (value !== null || !Object.hasOwn(known.more, key)) define(known.more, key, value)
    }
  }

  body(): JsonObject {
    if (this.#choices.size === 0) throw new UnconvertibleError('the stream has no choices')
    const choices = [...this.#choices]
      .toSorted(([a], [b]) => a - b)
      .map(([index, { message, calls, more }]) => ({
        index,
        message: compact({
          role: 'assistant',
          content: null,
          ...message,
          tool_calls: calls.length === 0 ? undefined : calls.toSorted((a, b) => a.index - b.index).map(({ call }) => call),
        }),
        logprobs: null,
        ...more,
      }))
    return compact({ ...this.#head, object: 'chat.completion', choices, usage: this.#usage })
  }
}

const isBlank = (value: unknown): boolean => value === undefined || value === null || value === '' || value === 0

function addCall(calls: Choice['calls'], index: number, call: JsonObject): void {
  const known = calls.findLast((one) => one.index === index)?.call
  const id = filledText(call['id'])
  // Some upstreams send parallel calls, each complete, all with index 0.
  const isNext = known === undefined || (known['id'] !== undefined && id !== undefined && id !== known['id'])
  const target = isNext ? {} : known
  if (isNext) calls.push({ index, call: target })
  for (const [key, value] of Object.entries(without(call, 'index'))) {
    const part = objectOf(value)
    if (part === undefined) mergeDelta(target, key, value)
    else {
      const inner: Record<string, unknown> = { ...objectOf(target[key]) }
      for (const [name, text] of Object.entries(part)) mergeDelta(inner, name, text)
      define(target, key, inner)
    }
  }
}

function mergeDelta(target: Record<string, unknown>, key: string, value: unknown): void {
  if (wholeMembers.has(key)) {
    if (value !== null && value !== '') define(target, key, value)
  } else merge(target, key, value)
}

function mergeLogprobs(target: Record<string, unknown>, value: unknown): void {
  const added = objectOf(value)
  if (added === undefined) return
  const merged: Record<string, unknown> = { ...objectOf(target['logprobs']) }
  for (const [key, list] of Object.entries(added)) merge(merged, key, list)
  target['logprobs'] = merged
}

function* expand(body: JsonObject): Iterable<StreamEvent> {
  const head = { ...without(body, 'choices', 'usage'), object: 'chat.completion.chunk' }
  const choices = objectsOf(body['choices'])
  for (const [at, choice] of choices.entries()) {
    const message = inside(choice['message'])
    const calls = objectsOf(message['tool_calls'])
    const delta = compact({ ...without(message, 'tool_calls'), tool_calls: calls.length === 0 ? undefined : calls.map((call, index) => ({ index, ...call })) })
    const index = numberOf(choice['index']) ?? at
    yield { data: { ...head, choices: [{ ...without(choice, 'message'), index, delta, finish_reason: null }] } }
    yield { data: { ...head, choices: [{ index, delta: {}, finish_reason: choice['finish_reason'] ?? 'stop' }] } }
  }
  if (objectOf(body['usage']) !== undefined) yield { data: { ...head, choices: [], usage: body['usage'] } }
}

/** The forms of a chat completion. */
export const completionsForms: Forms = { collector: () => new CompletionsCollector(), expand, terminator: 'data: [DONE]\n\n' }

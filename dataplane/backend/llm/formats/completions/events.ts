import { JsonEvent, RawEvent } from '../../stream/event.ts'
import type { StepWriter } from '../../stream/steps.ts'
import { mergeUsage } from '../../usage/raw.ts'
import type { RawUsage, Step } from '../../common/neutral.ts'
import { compact } from '../../common/read.ts'
import { completionsStops } from '../../common/stops.ts'
import type { ClientEvent, JsonObject, ResponseContext, Stop } from '../../common/types.ts'
import { findCompletionsTexts } from './deltas.ts'
import { writeCompletionsUsage } from './reply.ts'

const DONE = 'data: [DONE]\n\n'

interface CompletionsWriterOptions {
  /** Send the role in a chunk of its own at the start; otherwise it is part of the first delta (llm.md §8.2, §8.4). */
  readonly isRoleFirst: boolean
  /** The id of the response, if the upstream does not send one. */
  readonly id: string
}

/** Writes chat completion chunks from steps (llm.md §8.2, §8.4, §8.5). */
export class CompletionsWriter implements StepWriter {
  readonly #isRoleFirst: boolean
  #id: string
  #model: string
  #tier: string | undefined
  #created: number
  #hasRole = false
  #usage: RawUsage | undefined
  #isFinished = false
  /** By block of the source: index among the tool calls, and whether arguments were received. */
  readonly #tools = new Map<number, { index: number; hasInput: boolean }>()

  constructor(context: ResponseContext, { isRoleFirst, id }: CompletionsWriterOptions) {
    this.#isRoleFirst = isRoleFirst
    this.#id = id
    this.#model = context.memo.model
    this.#created = Math.floor(context.nowMs() / 1000)
  }

  write(step: Step): ClientEvent[] {
    switch (step.type) {
      case 'start':
        this.#id = step.id ?? this.#id
        this.#model = step.model ?? this.#model
        this.#tier = step.tier ?? this.#tier
        this.#created = step.created ?? this.#created
        return this.#isRoleFirst && !this.#hasRole ? [this.#delta({ content: '' })] : []
      case 'text':
        return [this.#delta({ content: step.text })]
      case 'thinking':
        return [this.#delta({ reasoning_content: step.text })]
      case 'signature':
        return [this.#delta({ reasoning_signature: step.text })]
      case 'toolStart': {
        const tool = { index: this.#tools.size, hasInput: false }
        this.#tools.set(step.block, tool)
        return [this.#delta({ tool_calls: [{ index: tool.index, id: step.id, type: 'function', function: { name: step.name, arguments: '' } }] })]
      }
      case 'toolInput':
        return this.#input(step.block, step.json)
      case 'blockStop':
        // Clients parse the arguments as JSON, so a call without any gets an empty object.
        return this.#tools.get(step.block)?.hasInput === false ? this.#input(step.block, '{}') : []
      case 'finish':
        return this.#finish(step.stop)
      case 'usage':
        this.#usage = mergeUsage(this.#usage, step.usage)
        return this.#isFinished ? [this.#chunk([], { usage: writeCompletionsUsage(this.#usage) })] : []
      case 'done':
        return [new RawEvent(DONE)]
      case 'error':
        return [this.#event(writeCompletionsError(step.errorType, step.message))]
      case 'hidden':
      case 'unknown':
        return []
    }
  }

  #input(block: number, json: string): ClientEvent[] {
    const tool = this.#tools.get(block)
    if (tool === undefined) return []
    tool.hasInput = true
    return [this.#delta({ tool_calls: [{ index: tool.index, function: { arguments: json } }] })]
  }

  #finish(stop: Stop): ClientEvent[] {
    this.#isFinished = true
    const role = this.#firstRole()
    return [this.#chunk([writeChoice(role, completionsStops[stop])], this.#usage && { usage: writeCompletionsUsage(this.#usage) })]
  }

  #delta(delta: JsonObject): ClientEvent {
    return this.#chunk([writeChoice({ ...this.#firstRole(), ...delta }, null)])
  }

  /** The role, on the first call only. */
  #firstRole(): JsonObject {
    if (this.#hasRole) return {}
    this.#hasRole = true
    return { role: 'assistant' }
  }

  #chunk(choices: readonly JsonObject[], more?: JsonObject): ClientEvent {
    return this.#event(
      compact({
        id: this.#id,
        object: 'chat.completion.chunk',
        created: this.#created,
        model: this.#model,
        service_tier: this.#tier,
        choices,
        ...more,
      }),
    )
  }

  #event(data: JsonObject): ClientEvent {
    return new JsonEvent(undefined, data, findCompletionsTexts)
  }
}

function writeChoice(delta: JsonObject, finish: string | null): JsonObject {
  return { index: 0, delta, finish_reason: finish }
}

/** An error as a chunk of a stream. */
export function writeCompletionsError(type: string, message: string): JsonObject {
  return { error: { message, type, param: null, code: type } }
}

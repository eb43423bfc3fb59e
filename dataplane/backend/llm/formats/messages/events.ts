import { JsonEvent } from '../../stream/event.ts'
import type { StepWriter } from '../../stream/steps.ts'
import { mergeUsage } from '../../usage/raw.ts'
import type { RawUsage, Step } from '../../common/neutral.ts'
import { ObjectProgress } from '../../common/object-progress.ts'
import { filledText } from '../../common/read.ts'
import { messagesStops } from '../../common/stops.ts'
import type { ClientEvent, JsonObject, ResponseContext, Stop } from '../../common/types.ts'
import { findMessagesTexts } from './deltas.ts'
import { writeMessagesUsage } from './reply.ts'

type Kind = 'text' | 'thinking' | 'tool'

interface OpenBlock {
  readonly source: number
  readonly kind: Kind
  /** Of the arguments of a tool. */
  readonly progress: ObjectProgress | undefined
}

/** A tool call that started while another one was incomplete. */
interface WaitingTool {
  readonly id: string
  readonly name: string
  readonly progress: ObjectProgress
  json: string
  /** The upstream has ended it. */
  isStopped: boolean
}

/** Text that arrived while a tool call was incomplete. */
type HeldText = Extract<Step, { type: 'text' | 'thinking' | 'signature' }>

/**
 * Writes Messages stream events from steps (llm.md §8.3, §8.4): blocks one after the other, and one block per tool call. What arrives for another block
 * while a tool call is incomplete waits for its turn; nothing is dropped.
 */
export class MessagesWriter implements StepWriter {
  readonly #context: ResponseContext
  #isStarted = false
  #isOver = false
  /** The upstream is done; only an error of a guard may follow. */
  #isDone = false
  #open: OpenBlock | undefined
  #count = 0
  readonly #waiting = new Map<number, WaitingTool>()
  readonly #held: HeldText[] = []
  #stop: Stop | undefined
  #stopSequence: string | undefined
  #usage: RawUsage | undefined

  constructor(context: ResponseContext) {
    this.#context = context
  }

  write(step: Step): ClientEvent[] {
    if (step.type === 'done') this.#isDone = true
    if (this.#isOver && !(this.#isDone && step.type === 'error')) return []
    switch (step.type) {
      case 'start':
        return this.#start(step.id, step.model)
      case 'text':
      case 'thinking':
      case 'signature':
        return this.#isBusy() ? this.#hold(step) : this.#writeText(step)
      case 'toolStart':
        return this.#startTool(step.block, { id: step.id, name: step.name, progress: new ObjectProgress(), json: '', isStopped: false })
      case 'toolInput':
        return this.#input(step.block, step.json)
      case 'blockStop':
        return this.#stopBlock(step.block)
      case 'finish':
        this.#stop = step.stop
        this.#stopSequence = step.stopSequence
        return []
      case 'usage':
        // Gemini reports a finish reason and usage with each of several calls: the end waits for the terminator.
        this.#usage = mergeUsage(this.#usage, step.usage)
        return []
      case 'done':
        return this.#end()
      case 'error':
        // The connection broke between the end of the response and its terminator.
        if (!this.#isOver && this.#stop !== undefined && this.#usage !== undefined && connectionErrors.has(step.errorType)) return this.#end()
        this.#isOver = true
        return [event('error', writeMessagesError(step.errorType, step.message))]
      case 'hidden':
      case 'unknown':
        return []
    }
  }

  #start(id?: string, model?: string): ClientEvent[] {
    if (this.#isStarted) return []
    this.#isStarted = true
    const message = {
      id: filledText(id) ?? `msg_${this.#context.hex(24)}`,
      type: 'message',
      role: 'assistant',
      model: model ?? this.#context.memo.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 0, output_tokens: 0 },
    }
    return [event('message_start', { type: 'message_start', message })]
  }

  /** Whether the open block is a tool call whose arguments are incomplete. */
  #isBusy(): boolean {
    return this.#waiting.size > 0 || this.#open?.progress?.isComplete === false
  }

  #hold(step: HeldText): ClientEvent[] {
    const last = this.#held.at(-1)
    if (last?.type === step.type && last.block === step.block) this.#held[this.#held.length - 1] = { ...step, text: last.text + step.text }
    else this.#held.push(step)
    return []
  }

  #writeText({ type, block, text }: HeldText): ClientEvent[] {
    switch (type) {
      case 'text':
        return this.#delta(block, 'text', { type: 'text', text: '' }, { type: 'text_delta', text })
      case 'thinking':
        return this.#delta(block, 'thinking', thinkingBlock, { type: 'thinking_delta', thinking: text })
      case 'signature':
        return this.#delta(block, 'thinking', thinkingBlock, { type: 'signature_delta', signature: text })
    }
  }

  #delta(source: number, kind: Kind, block: JsonObject, delta: JsonObject): ClientEvent[] {
    const events = this.#start()
    if (this.#open?.source !== source || this.#open.kind !== kind) events.push(...this.#close(), this.#openBlock(source, kind, block))
    events.push(this.#deltaEvent(delta))
    return events
  }

  #startTool(source: number, tool: WaitingTool): ClientEvent[] {
    const events = this.#start()
    if (this.#isBusy()) this.#waiting.set(source, tool)
    else events.push(...this.#close(), ...this.#openTool(source, tool))
    return events
  }

  #input(source: number, json: string): ClientEvent[] {
    const waiting = this.#waiting.get(source)
    if (waiting) {
      waiting.json += json
      waiting.progress.add(json)
      return []
    }
    const open = this.#open
    if (open?.source !== source || open.progress === undefined) return this.#rejectInput(json)
    open.progress.add(json)
    const events = [this.#deltaEvent({ type: 'input_json_delta', partial_json: json })]
    if (open.progress.isComplete && (this.#waiting.size > 0 || this.#held.length > 0)) events.push(...this.#closeAndContinue())
    return events
  }

  /** Arguments of a call that is complete or unknown cannot be passed on. */
  #rejectInput(json: string): ClientEvent[] {
    if (json.trim() === '') return []
    this.#isOver = true
    return [event('error', writeMessagesError('api_error', 'the provider sent arguments of a tool call that is not open'))]
  }

  #stopBlock(source: number): ClientEvent[] {
    const waiting = this.#waiting.get(source)
    if (waiting) waiting.isStopped = true
    return this.#open?.source === source ? this.#closeAndContinue() : []
  }

  /** Closes the open block, then opens waiting tool calls up to the first incomplete one, and writes the text that waits for them. */
  #closeAndContinue(): ClientEvent[] {
    const events = this.#close()
    for (const [source, tool] of this.#waiting) {
      this.#waiting.delete(source)
      events.push(...this.#openTool(source, tool))
      if (!tool.isStopped && !tool.progress.isComplete) return events
      if (this.#waiting.size > 0 || this.#held.length > 0 || tool.isStopped) events.push(...this.#close())
    }
    for (const step of this.#held.splice(0)) events.push(...this.#writeText(step))
    return events
  }

  /** Writes all that waits: no more will come. */
  #releaseAll(): ClientEvent[] {
    const events = this.#close()
    for (const [source, tool] of this.#waiting) events.push(...this.#openTool(source, tool), ...this.#close())
    this.#waiting.clear()
    for (const step of this.#held.splice(0)) events.push(...this.#writeText(step))
    return [...events, ...this.#close()]
  }

  #openTool(source: number, { id, name, json, progress }: WaitingTool): ClientEvent[] {
    const events = [this.#openBlock(source, 'tool', { type: 'tool_use', id, name, input: {} }, progress)]
    if (json !== '') events.push(this.#deltaEvent({ type: 'input_json_delta', partial_json: json }))
    return events
  }

  #openBlock(source: number, kind: Kind, block: JsonObject, progress?: ObjectProgress): ClientEvent {
    this.#open = { source, kind, progress }
    return event('content_block_start', { type: 'content_block_start', index: this.#count, content_block: block })
  }

  #deltaEvent(delta: JsonObject): ClientEvent {
    return event('content_block_delta', { type: 'content_block_delta', index: this.#count, delta })
  }

  #close(): ClientEvent[] {
    if (this.#open === undefined) return []
    this.#open = undefined
    return [event('content_block_stop', { type: 'content_block_stop', index: this.#count++ })]
  }

  #end(): ClientEvent[] {
    this.#isOver = true
    return [
      ...this.#start(),
      ...this.#releaseAll(),
      event('message_delta', {
        type: 'message_delta',
        delta: { stop_reason: messagesStops[this.#stop ?? 'end'], stop_sequence: this.#stopSequence ?? null },
        usage: writeMessagesUsage(this.#usage ?? { isCacheExcluded: true }),
      }),
      event('message_stop', { type: 'message_stop' }),
    ]
  }
}

/** Errors of the gateway about the connection to the upstream, not about the content. */
const connectionErrors: ReadonlySet<string> = new Set(['upstream_error', 'timeout_error'])
const thinkingBlock: JsonObject = { type: 'thinking', thinking: '', signature: '' }

function event(name: string, data: JsonObject): ClientEvent {
  return new JsonEvent(name, data, findMessagesTexts)
}

/** Error types of the Messages API, and those of guards. */
const errorTypes: ReadonlySet<string> = new Set([
  'invalid_request_error',
  'authentication_error',
  'billing_error',
  'permission_error',
  'not_found_error',
  'request_too_large',
  'rate_limit_error',
  'timeout_error',
  'api_error',
  'overloaded_error',
  'content_filter',
  'guard_failed',
])

/** Whether Messages clients know an error type. */
export function isMessagesError(type: string | undefined): type is string {
  return type !== undefined && errorTypes.has(type)
}

/** An error, as a body or an event of a stream. Exceptions of Bedrock and types of other APIs become `api_error` (llm.md §8.4, §9). */
export function writeMessagesError(type: string, message: string): JsonObject {
  return { type: 'error', error: { type: isMessagesError(type) ? type : 'api_error', message } }
}

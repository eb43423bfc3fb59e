import { JsonEvent } from '../../stream/event.ts'
import type { StepWriter } from '../../stream/steps.ts'
import { mergeUsage } from '../../usage/raw.ts'
import { splitNamespace } from '../../common/namespaces.ts'
import type { RawUsage, Step } from '../../common/neutral.ts'
import type { ClientEvent, JsonObject, ResponseContext, Stop } from '../../common/types.ts'
import { findResponsesTexts } from './deltas.ts'
import { statusOf, writeCall, writeMessageItem, writeReasoning, writeSummaryPart, writeResponse, writeTextPart } from './reply.ts'

interface TextPart {
  readonly source: number
  text: string
}

interface MessageItem {
  readonly id: string
  readonly index: number
  readonly parts: TextPart[]
  hasOpenPart: boolean
}

interface ReasoningItem {
  readonly id: string
  readonly index: number
  text: string
  signature: string
}

interface CallItem {
  readonly id: string
  readonly name: string
  readonly index: number
  json: string
  isOpen: boolean
}

/** Writes Responses stream events from steps (llm.md §8.4, §8.5). All text is one message item; each tool call and each run of thinking is an item. */
export class ResponsesWriter implements StepWriter {
  readonly #context: ResponseContext
  readonly #isMessageFirst: boolean
  readonly #id: string
  #model: string
  #createdS: number
  #sequenceNumber = 0
  #isStarted = false
  #isOver = false
  #items = 0
  #message: MessageItem | undefined
  #reasoning: ReasoningItem | undefined
  /** Complete reasoning items. */
  readonly #thoughts: { readonly index: number; readonly item: JsonObject }[] = []
  readonly #calls = new Map<number, CallItem>()
  #stop: Stop | undefined
  #usage: RawUsage | undefined

  /** `isMessageFirst`: open the message item before any tool call, even without text (Converse). */
  constructor(context: ResponseContext, isMessageFirst: boolean) {
    this.#context = context
    this.#isMessageFirst = isMessageFirst
    this.#id = `resp_${context.hex(16)}`
    this.#model = context.memo.model
    this.#createdS = Math.floor(context.nowMs() / 1000)
  }

  write(step: Step): ClientEvent[] {
    if (this.#isOver) return []
    switch (step.type) {
      case 'start':
        this.#model = step.model ?? this.#model
        this.#createdS = step.created ?? this.#createdS
        return this.#start()
      case 'text':
        return this.#text(step.block, step.text)
      case 'thinking':
        return this.#think(step.text)
      case 'signature':
        return this.#sign(step.text)
      case 'toolStart':
        return this.#startCall(step.block, step.id, step.name)
      case 'toolInput':
        return this.#input(step.block, step.json)
      case 'blockStop':
        return this.#stopBlock(step.block)
      case 'finish':
        this.#stop = step.stop
        return []
      case 'usage':
        this.#usage = mergeUsage(this.#usage, step.usage)
        return []
      case 'done':
        return this.#end()
      case 'error':
        this.#isOver = true
        return [this.#event('error', { code: step.errorType, message: step.message, param: null })]
      case 'hidden':
      case 'unknown':
        return []
    }
  }

  #start(): ClientEvent[] {
    if (this.#isStarted) return []
    this.#isStarted = true
    const response = this.#response([], undefined)
    return [this.#event('response.created', { response }), this.#event('response.in_progress', { response })]
  }

  #openReasoning(): ClientEvent[] {
    const events = this.#start()
    if (this.#reasoning) return events
    this.#reasoning = { id: `rs_${this.#context.hex(16)}`, index: this.#items++, text: '', signature: '' }
    const { id, index } = this.#reasoning
    events.push(this.#event('response.output_item.added', { output_index: index, item: writeReasoning(id, '', '', 'in_progress') }))
    return events
  }

  #think(text: string): ClientEvent[] {
    const events = this.#openReasoning()
    const open = this.#reasoning
    if (open === undefined || text === '') return events
    if (open.text === '') events.push(this.#event('response.reasoning_summary_part.added', { ...summaryOf(open), part: writeSummaryPart('') }))
    open.text += text
    events.push(this.#event('response.reasoning_summary_text.delta', { ...summaryOf(open), delta: text }))
    return events
  }

  #sign(signature: string): ClientEvent[] {
    const events = this.#openReasoning()
    if (this.#reasoning) this.#reasoning.signature += signature
    return events
  }

  #closeReasoning(): ClientEvent[] {
    const open = this.#reasoning
    if (open === undefined) return []
    this.#reasoning = undefined
    const { id, index, text, signature } = open
    const item = writeReasoning(id, text, signature, 'completed')
    this.#thoughts.push({ index, item })
    const events: ClientEvent[] = []
    if (text !== '')
      events.push(
        this.#event('response.reasoning_summary_text.done', { ...summaryOf(open), text }),
        this.#event('response.reasoning_summary_part.done', { ...summaryOf(open), part: writeSummaryPart(text) }),
      )
    events.push(this.#event('response.output_item.done', { output_index: index, item }))
    return events
  }

  #openMessage(): ClientEvent[] {
    if (this.#message) return []
    this.#message = { id: `msg_${this.#context.hex(16)}`, index: this.#items++, parts: [], hasOpenPart: false }
    const { id, index } = this.#message
    return [this.#event('response.output_item.added', { output_index: index, item: writeMessageItem(id, [], 'in_progress') })]
  }

  #text(source: number, text: string): ClientEvent[] {
    const events = [...this.#start(), ...this.#closeReasoning(), ...this.#openMessage()]
    const message = this.#message
    if (message === undefined) return events
    let part = message.parts.at(-1)
    if (part === undefined || !message.hasOpenPart || part.source !== source) {
      events.push(...this.#closePart())
      part = { source, text: '' }
      message.parts.push(part)
      message.hasOpenPart = true
      events.push(this.#event('response.content_part.added', { ...placeOf(message), part: writeTextPart('') }))
    }
    part.text += text
    events.push(this.#event('response.output_text.delta', { ...placeOf(message), delta: text, logprobs: [] }))
    return events
  }

  #closePart(): ClientEvent[] {
    const message = this.#message
    const part = message?.parts.at(-1)
    if (message === undefined || part === undefined || !message.hasOpenPart) return []
    message.hasOpenPart = false
    return [
      this.#event('response.output_text.done', { ...placeOf(message), text: part.text, logprobs: [] }),
      this.#event('response.content_part.done', { ...placeOf(message), part: writeTextPart(part.text) }),
    ]
  }

  #startCall(source: number, id: string, name: string): ClientEvent[] {
    const events = [...this.#start(), ...this.#closeReasoning()]
    if (this.#isMessageFirst) events.push(...this.#openMessage())
    const call = { id, name, index: this.#items++, json: '', isOpen: true }
    this.#calls.set(source, call)
    events.push(this.#event('response.output_item.added', { output_index: call.index, item: writeCall(id, name, '', 'in_progress') }))
    return events
  }

  #input(source: number, json: string): ClientEvent[] {
    const call = this.#calls.get(source)
    if (call === undefined || !call.isOpen) return []
    call.json += json
    return [this.#event('response.function_call_arguments.delta', { item_id: call.id, output_index: call.index, delta: json })]
  }

  #stopBlock(source: number): ClientEvent[] {
    const call = this.#calls.get(source)
    if (call) return this.#closeCall(call)
    return this.#message?.parts.at(-1)?.source === source ? this.#closePart() : []
  }

  #closeCall(call: CallItem): ClientEvent[] {
    if (!call.isOpen) return []
    call.isOpen = false
    if (call.json === '') call.json = '{}'
    const { id, name, json, index } = call
    return [
      this.#event('response.function_call_arguments.done', { item_id: id, output_index: index, name: splitNamespace(name).name, arguments: json }),
      this.#event('response.output_item.done', { output_index: index, item: writeCall(id, name, json, 'completed') }),
    ]
  }

  #end(): ClientEvent[] {
    const events = [...this.#start(), ...this.#closeReasoning(), ...this.#closePart()]
    if (this.#isMessageFirst) events.push(...this.#openMessage())
    const stop = this.#stop ?? 'end'
    const status = statusOf(stop)
    const output: JsonObject[] = []
    for (const { index, item } of this.#thoughts) output[index] = item
    if (this.#message) {
      const { id, index, parts } = this.#message
      const item = writeMessageItem(
        id,
        parts.map(({ text }) => writeTextPart(text)),
        status === 'completed' ? status : 'incomplete',
      )
      events.push(this.#event('response.output_item.done', { output_index: index, item }))
      output[index] = item
    }
    for (const call of this.#calls.values()) {
      events.push(...this.#closeCall(call))
      output[call.index] = writeCall(call.id, call.name, call.json, 'completed')
    }
    events.push(this.#event(`response.${status}`, { response: this.#response(output, stop) }))
    this.#isOver = true
    return events
  }

  #response(output: readonly JsonObject[], stop: Stop | undefined): JsonObject {
    const usage = stop === undefined ? undefined : (this.#usage ?? { isCacheExcluded: false })
    return writeResponse({ id: this.#id, createdS: this.#createdS, model: this.#model, output, stop, usage })
  }

  /** The SSE event name is the type (llm.md D15). Sequence numbers start at 1. */
  #event(type: string, members: JsonObject): ClientEvent {
    return new JsonEvent(type, { type, sequence_number: ++this.#sequenceNumber, ...members }, findResponsesTexts)
  }
}

/** The place of the last part of a message. */
function placeOf({ id, index, parts }: MessageItem): JsonObject {
  return { item_id: id, output_index: index, content_index: parts.length - 1 }
}

/** The place of the summary of a reasoning item, which has one part. */
function summaryOf({ id, index }: ReasoningItem): JsonObject {
  return { item_id: id, output_index: index, summary_index: 0 }
}

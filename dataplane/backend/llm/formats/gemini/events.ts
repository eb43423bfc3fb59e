import { JsonEvent } from '../../stream/event.ts'
import type { StepWriter } from '../../stream/steps.ts'
import { mergeUsage } from '../../usage/raw.ts'
import type { RawUsage, Step } from '../../common/neutral.ts'
import { writeGoogleFailure } from '../../common/google-status.ts'
import { ObjectProgress } from '../../common/object-progress.ts'
import { geminiStops } from '../../common/stops.ts'
import { parseArguments } from '../../common/tools.ts'
import type { ClientEvent, JsonObject, ResponseContext, Stop } from '../../common/types.ts'
import { findGeminiTexts } from './deltas.ts'
import { writeCall, writeChunk, writeThought } from './reply.ts'

/** A call whose arguments are incomplete. */
interface OpenCall {
  readonly id: string
  readonly name: string
  readonly progress: ObjectProgress
  json: string
}

/** Writes the pieces of a streamGenerateContent response from steps (llm.md §7.16). A call is one piece, so its arguments are collected. */
export class GeminiWriter implements StepWriter {
  #id: string
  #model: string
  readonly #calls = new Map<number, OpenCall>()
  #stop: Stop | undefined
  #usage: RawUsage | undefined
  #isOver = false

  constructor(context: ResponseContext) {
    this.#id = context.hex(24)
    this.#model = context.memo.model
  }

  write(step: Step): ClientEvent[] {
    // A guard that held back a complete stream may still reject it.
    if (this.#isOver && step.type !== 'error') return []
    switch (step.type) {
      case 'start':
        this.#id = step.id ?? this.#id
        this.#model = step.model ?? this.#model
        return []
      case 'text':
        return [this.#piece({ text: step.text })]
      case 'thinking':
        return [this.#piece(writeThought(step.text, ''))]
      case 'signature':
        return [this.#piece(writeThought('', step.text))]
      case 'toolStart':
        this.#calls.set(step.block, { id: step.id, name: step.name, progress: new ObjectProgress(), json: '' })
        return []
      case 'toolInput': {
        const call = this.#calls.get(step.block)
        if (call === undefined) return []
        call.json += step.json
        call.progress.add(step.json)
        return call.progress.isComplete ? this.#end(step.block) : []
      }
      case 'blockStop':
        return this.#end(step.block)
      case 'finish':
        this.#stop = step.stop
        return []
      case 'usage':
        this.#usage = mergeUsage(this.#usage, step.usage)
        return []
      case 'done':
        return this.#finish()
      case 'error':
        this.#isOver = true
        return [event(writeGoogleFailure(step.errorType, step.message))]
      case 'hidden':
      case 'unknown':
        return []
    }
  }

  #piece(part: JsonObject): ClientEvent {
    return event(writeChunk({ id: this.#id, model: this.#model, parts: [part] }))
  }

  #end(block: number): ClientEvent[] {
    const call = this.#calls.get(block)
    if (call === undefined) return []
    this.#calls.delete(block)
    return [this.#piece(writeCall(call.id, call.name, parseArguments(call.json)))]
  }

  #finish(): ClientEvent[] {
    const calls = [...this.#calls.keys()].flatMap((block) => this.#end(block))
    this.#isOver = true
    const end = { parts: [{ text: '' }], finishReason: geminiStops[this.#stop ?? 'end'], ...(this.#usage && { usage: this.#usage }) }
    return [...calls, event(writeChunk({ id: this.#id, model: this.#model, ...end }))]
  }
}

const event = (data: JsonObject): ClientEvent => new JsonEvent(undefined, data, findGeminiTexts)

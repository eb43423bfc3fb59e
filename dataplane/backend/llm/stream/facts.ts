import type { RawUsage, Step } from '../common/neutral.ts'
import type { ResponseFacts, StreamFacts, UnknownKind } from '../common/types.ts'
import { UNKNOWN_ERROR } from '../common/failures.ts'
import { mergeUsage, toUsage } from '../usage/raw.ts'

interface Call {
  id: string
  name: string
  arguments: string
}

/** Most text collected from one response, in UTF-16 units; bounds the memory of endless streams. */
const MAX_COLLECTED_LENGTH = 2 * 1024 * 1024

/** Counts something that was not understood. */
export function countUnknown(facts: ResponseFacts, kind: UnknownKind): void {
  facts.unknown = { ...facts.unknown, [kind]: (facts.unknown?.[kind] ?? 0) + 1 }
}

/** Derives the facts of a streamed response from its steps. */
export class FactsRecorder {
  readonly facts: StreamFacts = {
    usage: {},
    responseModel: undefined,
    serviceTier: undefined,
    countTokens: undefined,
    completion: [],
    toolCalls: [],
    hasContent: false,
    deltas: 0,
    textBytes: 0,
    isComplete: false,
    error: undefined,
    stop: undefined,
  }
  /** A finish reason was received, so that the terminator may be missing. */
  isFinished = false
  readonly #collects: boolean
  readonly #texts = new Map<number, number>()
  readonly #calls = new Map<number, Call>()
  #usage: RawUsage | undefined
  #collected = 0

  constructor(collects: boolean) {
    this.#collects = collects
  }

  get usage(): RawUsage | undefined {
    return this.#usage
  }

  record(step: Step): void {
    const { facts } = this
    switch (step.type) {
      case 'start':
        facts.responseModel ??= step.model
        facts.serviceTier = step.tier ?? facts.serviceTier
        break
      case 'text':
        this.countDelta()
        this.addBytes(Buffer.byteLength(step.text))
        if (this.#collects && this.#fits(step.text)) this.#addText(step.block, step.text)
        break
      case 'thinking':
      case 'hidden':
        this.countDelta()
        break
      case 'toolStart':
        this.countDelta()
        if (this.#collects) this.#addCall(step.block, { id: step.id, name: step.name, arguments: '' })
        break
      case 'toolInput': {
        this.countDelta()
        this.addBytes(Buffer.byteLength(step.json))
        const call = this.#calls.get(step.block)
        if (call && this.#fits(step.json)) call.arguments += step.json
        break
      }
      case 'finish':
        this.isFinished = true
        this.facts.stop ??= step.stop
        break
      case 'usage':
        this.#usage = mergeUsage(this.#usage, step.usage)
        facts.usage = toUsage(this.#usage)
        break
      case 'done':
        facts.isComplete = true
        break
      case 'error':
        facts.error ??= { type: step.errorType, message: step.message, received: step.received }
        if (step.message === UNKNOWN_ERROR) countUnknown(facts, 'error')
        break
      case 'unknown':
        countUnknown(facts, step.kind)
        break
      case 'signature':
      case 'blockStop':
    }
  }

  countDelta(): void {
    this.countDeltas(1)
  }

  addBytes(count: number): void {
    this.facts.textBytes += count
  }

  countDeltas(count: number): void {
    this.facts.hasContent = true
    this.facts.deltas += count
  }

  #fits(text: string): boolean {
    this.#collected += text.length
    return this.#collected <= MAX_COLLECTED_LENGTH
  }

  #addText(block: number, text: string): void {
    const { completion } = this.facts
    const at = this.#texts.get(block) ?? completion.length
    this.#texts.set(block, at)
    completion[at] = (completion[at] ?? '') + text
  }

  #addCall(block: number, call: Call): void {
    this.#calls.set(block, call)
    this.facts.toolCalls.push(call)
  }
}

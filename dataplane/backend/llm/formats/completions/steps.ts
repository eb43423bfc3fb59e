import type { SseReader } from '../../stream/steps.ts'
import { readCompletionsUsage } from '../../usage/raw.ts'
import { readFailure, type Failure } from '../../common/failures.ts'
import { isObject } from '../../common/json.ts'
import type { Step } from '../../common/neutral.ts'
import { joinText } from './entry.ts'
import { callsOf, hasUnknownPart, readArguments, readReasoning } from './message.ts'
import { filledText, inside, numberOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import { isUnknownStop, readCompletionsStop, readStopFailure, withTools } from '../../common/stops.ts'
import { joinThought } from '../../common/thoughts.ts'
import { parseArguments } from '../../common/tools.ts'
import type { JsonObject } from '../../common/types.ts'

const fragment: Step = { type: 'unknown', kind: 'fragment' }
/** Longest error text that is no JSON. */
const MAX_MESSAGE_LENGTH = 2000
/** Distance between the block numbers of consecutive choices. */
const CHOICE_BLOCKS = 4096

interface OpenTool {
  readonly block: number
  id: string
  /** Arguments received before the name. */
  early: string
  /** The arguments of the first delta, if they are the only ones. */
  json: string | undefined
  /** `{}` was received, which some servers send before the arguments (unslothai/unsloth#10275, ogx-ai/ogx#5462). */
  isEmpty: boolean
  hasInput: boolean
  isStarted: boolean
}

/** Arguments that are an empty object. */
const EMPTY = /^\s*\{\s*\}\s*$/

/** Reads chat completion chunks (llm.md §8.3). Block 0 is the text of choice 0; its tool calls follow. */
export class CompletionsReader implements SseReader {
  /** Compatible servers often omit `[DONE]`. */
  readonly needsTerminator = false
  readonly #isEveryChoice: boolean
  readonly #tools = new Map<string, OpenTool>()
  #toolCount = 0
  #last: { readonly choice: number; readonly key: string } | undefined
  #isStarted = false

  /** `isEveryChoice`: read all choices, for the facts of a native stream. Translations read only the first. */
  constructor(isEveryChoice: boolean) {
    this.#isEveryChoice = isEveryChoice
  }

  read(name: string | undefined, received: unknown, text: string): Step[] {
    if (text.trim() === '[DONE]') return [{ type: 'done' }]
    // Google's servers put an error into a list.
    const data: unknown = Array.isArray(received) && received.length === 1 ? received[0] : received
    if (!isObject(data)) return name === 'error' ? [{ type: 'error', errorType: 'api_error', message: text.trim().slice(0, MAX_MESSAGE_LENGTH) }] : [fragment]
    const steps: Step[] = []
    const failure = readFailure(data, name)
    if (failure !== undefined) return [{ type: 'error', errorType: failure.type, message: failure.message, received: data }]
    // Azure sends the results of its prompt filter first, in a chunk without choices whose id and model are empty.
    if (!this.#isStarted && (objectsOf(data['choices']).length > 0 || filledText(data['id']) !== undefined)) {
      this.#isStarted = true
      steps.push({
        type: 'start',
        id: textOf(data['id']),
        model: filledText(data['model']),
        tier: textOf(data['service_tier']),
        created: numberOf(data['created']),
      })
    }
    for (const choice of objectsOf(data['choices'])) {
      const index = numberOf(choice['index']) ?? 0
      if (index === 0 || this.#isEveryChoice) this.#readChoice(choice, index, steps)
    }
    // Groq and Moonshot have places of their own.
    const usage = objectOf(data['usage']) ?? objectOf(inside(data['x_groq'])['usage']) ?? objectOf(objectsOf(data['choices'])[0]?.['usage'])
    if (usage) steps.push({ type: 'usage', usage: readCompletionsUsage(usage) })
    return steps
  }

  #readChoice(choice: JsonObject, index: number, steps: Step[]): void {
    const delta = inside(choice['delta'])
    const base = index * CHOICE_BLOCKS
    const thinking = readReasoning(delta)
    if (thinking !== undefined) steps.push(this.#isEveryChoice ? { type: 'hidden' } : { type: 'thinking', block: base, text: thinking })
    if (hasUnknownPart(delta['content'])) steps.push(fragment)
    // Mistral sends content as a list of parts.
    const text = filledText(joinText(delta['content'], '')) ?? filledText(delta['refusal'])
    if (text !== undefined) steps.push({ type: 'text', block: base, text })
    callsOf(delta).forEach((call, at) => this.#readCall(call, this.#keyOf(call, index, at), base, steps))
    const failure = this.#isEveryChoice ? undefined : (readStopFailure(choice['finish_reason']) ?? this.#findNameless(choice['finish_reason']))
    if (failure !== undefined) {
      steps.push({ type: 'error', errorType: failure.type, message: failure.message, received: choice['finish_reason'] })
      return
    }
    const stop = readCompletionsStop(choice['finish_reason'])
    if (stop !== undefined) this.#confirmEmpty(base, steps)
    if (isUnknownStop('completions', choice['finish_reason'])) steps.push({ type: 'unknown', kind: 'finish_reason' })
    if (stop !== undefined) steps.push({ type: 'finish', stop: withTools(stop, this.#toolCount > 0) })
  }

  /** The place of a call. Some servers write its index as text, or leave it out: then a part without id and name continues the last call. */
  #keyOf(call: JsonObject, choice: number, at: number): string {
    const { index } = call
    const isContinued = filledText(call['id']) === undefined && filledText(inside(call['function'] ?? call['custom'])['name']) === undefined
    const place = numberOf(index) ?? (typeof index === 'string' && /^\d{1,4}$/.test(index) ? Number(index) : undefined)
    if (place === undefined && isContinued && this.#last?.choice === choice) return this.#last.key
    const key = `${choice}:${place ?? at}`
    this.#last = { choice, key }
    return key
  }

  /** A call whose name never came: its arguments cannot be passed on. */
  #findNameless(reason: unknown): Failure | undefined {
    if (typeof reason !== 'string') return undefined
    for (const { isStarted, early } of this.#tools.values())
      if (!isStarted && early !== '') return { type: 'api_error', message: 'the provider sent arguments of a tool call without its name' }
    return undefined
  }

  #readCall(call: JsonObject, key: string, base: number, steps: Step[]): void {
    const called = inside(call['function'] ?? call['custom'])
    const id = filledText(call['id'])
    const name = filledText(called['name'])
    let tool = this.#tools.get(key)
    const json = readArguments(called)
    if (tool === undefined || (name !== undefined && isNextCall(tool, id, json))) {
      tool = {
        block: base + ++this.#toolCount,
        id: id ?? `tool_call_${this.#toolCount - 1}`,
        early: '',
        json,
        isEmpty: false,
        hasInput: false,
        isStarted: false,
      }
      this.#tools.set(key, tool)
    } else if (json !== '') tool.json = undefined
    if (!tool.isStarted) {
      tool.id = id ?? tool.id
      tool.early += json
      if (name === undefined) return
      tool.isStarted = true
      const thought = filledText(inside(inside(call['extra_content'])['google'])['thought_signature'])
      steps.push({ type: 'toolStart', block: tool.block, id: this.#isEveryChoice ? tool.id : joinThought(tool.id, thought), name })
      writeInput(tool, tool.early, steps)
    } else writeInput(tool, json, steps)
  }

  /** The empty objects that no arguments followed are the arguments. */
  #confirmEmpty(base: number, steps: Step[]): void {
    for (const tool of this.#tools.values()) {
      if (!tool.isEmpty || tool.hasInput || tool.block < base || tool.block >= base + CHOICE_BLOCKS) continue
      tool.hasInput = true
      steps.push({ type: 'toolInput', block: tool.block, json: '{}' })
    }
  }
}

/** Passes arguments on, but an empty object only when no more can follow. */
function writeInput(tool: OpenTool, json: string, steps: Step[]): void {
  if (json === '') return
  if (!tool.hasInput && EMPTY.test(json)) {
    tool.isEmpty = true
    return
  }
  tool.hasInput = true
  steps.push({ type: 'toolInput', block: tool.block, json })
}

/**
 * Whether a delta with a name starts another call at the place of `tool`. Gemini sends parallel calls each complete, all at the first place, and some
 * models without ids; other servers repeat the name with each part of the arguments.
 */
function isNextCall(tool: OpenTool, id: string | undefined, json: string): boolean {
  if (!tool.isStarted) return false
  if (id !== undefined) return id !== tool.id
  return json !== '' && tool.json !== undefined && tool.json !== '' && isObject(parseArguments(tool.json))
}

import { defaultJsonLimits, JsonLimitError, parseJsonInSteps, type JsonLimits } from '#api/json/index.ts'
import { runSync, type Cooperative } from '../../../runtime/cooperative.ts'
import { isObject, printBytesInSteps, printJson } from '../common/json.ts'
import { FormatError, type ChatFormat, type JsonObject, type ResponseContext, type ResponseStream } from '../common/types.ts'
import { renderEvents } from '../stream/event.ts'
import { parseFields, printEvent, SseScanner } from '../stream/sse.ts'
import { completionsForms } from './completions.ts'
import { geminiForms } from './gemini.ts'
import { UnconvertibleError, type Forms } from './form.ts'
import { messagesForms } from './messages.ts'
import { translateReply } from './neutral.ts'
import { responsesForms } from './responses.ts'

/** The form of a response: the format of the client, buffered or as a stream. */
export interface ReplyForm {
  readonly format: ChatFormat
  readonly isStreaming: boolean
}

/** Pieces of a body that is collected or printed between two pauses. */
const STEP_BYTES = 32 * 1024

const formsOf: Readonly<Record<ChatFormat, Forms>> = { completions: completionsForms, messages: messagesForms, responses: responsesForms, gemini: geminiForms }

/**
 * Writes a stored response in another form (llm.md §18.1). Between a stream and a buffered response of one format nothing is lost. undefined if the
 * response has a part that the other form cannot have, or is not valid.
 */
export function* convertReply(stored: Buffer, from: ReplyForm, to: ReplyForm, context: ResponseContext, limits: JsonLimits): Cooperative<Buffer | undefined> {
  try {
    const body = from.isStreaming ? yield* collect(stored, formsOf[from.format], limits) : yield* parse(stored, limits)
    const translated = from.format === to.format ? body : translateReply(body, from.format, to.format, context)
    if (!to.isStreaming) return Buffer.concat(yield* printBytesInSteps(translated))
    return yield* expand(translated, formsOf[to.format])
  } catch (error) {
    if (isExpected(error)) return undefined
    throw error
  }
}

/** Bytes of a stream that are read for each byte of the text that may result: events repeat much. */
const STREAM_FACTOR = 16

/** Reads a stream of a client while it is sent, into a buffered response of the same format. Never throws. */
export interface StreamCollector {
  push(chunk: Buffer): void
  /** The response in JSON, of what was received so far, cut at the limit; undefined if there is nothing to tell. */
  text(): string | undefined
}

/** A collector of texts of at most `limitBytes`. */
export function createCollector(format: ChatFormat, limitBytes: number): StreamCollector {
  const collector = formsOf[format].collector()
  const scanner = new SseScanner()
  let left = limitBytes * STREAM_FACTOR
  return {
    push(chunk) {
      if (left <= 0) return
      left -= chunk.length
      for (const { raw } of scanner.push(chunk)) {
        const { data } = parseFields(raw)
        if (data === undefined || data.trim() === '[DONE]') continue
        try {
          collector.add(runSync(parse(data, defaultJsonLimits)))
        } catch (error) {
          if (!isExpected(error)) throw error
          left = 0
          return
        }
      }
    },
    text() {
      try {
        return Buffer.from(printJson(collector.body())).subarray(0, limitBytes).toString().toWellFormed()
      } catch (error) {
        if (!isExpected(error)) throw error
        return undefined
      }
    },
  }
}

/** Errors of what was received. Deeply nested JSON exhausts the stack. */
const isExpected = (error: unknown): boolean => [UnconvertibleError, FormatError, JsonLimitError, SyntaxError, RangeError].some((type) => error instanceof type)

function* parse(text: Buffer | string, limits: JsonLimits): Cooperative<JsonObject> {
  const body = yield* parseJsonInSteps(text.toString(), { limits })
  if (!isObject(body)) throw new UnconvertibleError('the response is no object')
  return body
}

function* collect(stream: Buffer, forms: Forms, limits: JsonLimits): Cooperative<JsonObject> {
  const collector = forms.collector()
  const scanner = new SseScanner()
  for (let at = 0; at < stream.length; at += STEP_BYTES) {
    for (const { raw } of scanner.push(stream.subarray(at, at + STEP_BYTES))) {
      const { data } = parseFields(raw)
      if (data === undefined || data.trim() === '[DONE]') continue
      collector.add(yield* parse(data, limits))
    }
    yield
  }
  return collector.body()
}

/** Writes a buffered response as an event stream of the same format (llm.md §8.1). Throws a FormatError if it has no such form. */
export function* streamOf(body: JsonObject, format: ChatFormat): Cooperative<Buffer> {
  try {
    return yield* expand(body, formsOf[format])
  } catch (error) {
    throw error instanceof UnconvertibleError ? new FormatError('response', `failed to write the response as a stream: ${error.message}`) : error
  }
}

/** Reads a complete event stream of an upstream into a buffered response of the client's format (llm.md §8.1). Throws a FormatError. */
export function* replyOf(bytes: Buffer, stream: ResponseStream, format: ChatFormat, limits: JsonLimits): Cooperative<JsonObject> {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    pieces.push(renderEvents(stream.push(bytes.subarray(at, at + STEP_BYTES))))
    yield
  }
  pieces.push(renderEvents(stream.end()))
  const { error } = stream.facts
  if (error !== undefined) throw new FormatError('response', `the upstream sent an error with status 200: ${error.message}`)
  try {
    return yield* collect(Buffer.concat(pieces), formsOf[format], limits)
  } catch (problem) {
    throw problem instanceof UnconvertibleError ? new FormatError('response', `failed to read the response from a stream: ${problem.message}`) : problem
  }
}

function* expand(body: JsonObject, { expand: eventsOf, terminator }: Forms): Cooperative<Buffer> {
  const pieces: Buffer[] = []
  for (const { name, data } of eventsOf(body)) {
    pieces.push(Buffer.from(printEvent(name, printJson(data))))
    yield
  }
  return Buffer.concat([...pieces, Buffer.from(terminator)])
}

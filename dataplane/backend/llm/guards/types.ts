import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import type { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import type { ClientEvent, ClientFormatEntry, FlatMessage, JsonObject } from '../common/types.ts'
import type { Patterns } from './patterns.ts'

/** The exchange and format that guards run in. */
export interface GuardContext {
  readonly exchange: Exchange
  readonly entry: ClientFormatEntry
  readonly isStreaming: boolean
}

/** The body to continue with, or the response for the client. */
export type GuardVerdict = { readonly body: JsonObject } | { readonly rejection: ResponseHead }

/** Ends a stream with `message` as an error in the client's format. Held back events are dropped. */
export class StreamRejection extends Error {
  readonly code: string
  constructor(message: string, code = 'content_filter') {
    super(message)
    this.name = 'StreamRejection'
    this.code = code
  }
}

type Events = readonly ClientEvent[]

/** The guards of one streamed response. Methods throw or reject with a StreamRejection to end the stream. */
export interface StreamGuard {
  /** Accepts the next events; returns the events to send now, changed or not. */
  push(events: Events): Events | Promise<Events>
  /** The upstream is done; returns the remaining events. */
  end(): Events | Promise<Events>
}

/** The prompt guards of one provider (llm.md §13). Methods reject with a ProxyError if a guard cannot be evaluated. */
export interface PromptGuards {
  /** Runs the request guards in order, after enrichment. */
  request(body: JsonObject, context: GuardContext): Promise<GuardVerdict>
  /** Runs the response guards on a buffered response in the client's format. `headers` are the upstream's. */
  response(body: JsonObject, context: GuardContext, headers: HeaderList): Promise<GuardVerdict>
  /** Starts the response guards for a stream; undefined if there are none. */
  stream(context: GuardContext, headers: HeaderList): StreamGuard | undefined
}

/** Whether guards check a request or a response. */
export type GuardPhase = 'Request' | 'Response'

/** A request, a response or a held back stream, as guards read and change it. */
export interface Subject {
  readonly phase: GuardPhase
  readonly exchange: Exchange
  /** Headers of the client's request, or of the upstream's response. */
  readonly headers: HeaderList
  /** The texts to check, in order. */
  texts(): Cooperative<readonly string[]>
  /** Replaces the texts, one per entry of `texts()`. */
  replaceTexts(texts: readonly string[]): void
  /** The texts as messages with roles: those of the conversation first, then all others. */
  messages(): Cooperative<readonly FlatMessage[]>
  /** Replaces the messages. Throws if the number of messages does not fit. */
  replaceMessages(messages: readonly FlatMessage[]): void
  /** Masks all matches; returns whether there were any. */
  mask(patterns: Patterns): Cooperative<boolean>
  hasHit(patterns: Patterns): Cooperative<boolean>
}

/** The outcome of one guard. `response` replaces the guard's configured one. */
export type Outcome =
  | { readonly action: 'Allow' }
  | { readonly action: 'Mask' }
  | { readonly action: 'Reject'; readonly response?: { readonly status: number; readonly body: string } }

/** One entry of `promptGuard.request` or `.response`. Throws a ProxyError if it cannot be evaluated, so that nothing passes unchecked. */
export type Guard = (subject: Subject) => Promise<Outcome> | Outcome

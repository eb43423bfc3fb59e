import type { Exchange } from '../../exchange/exchange.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { ClientEvent, ClientFormatEntry, FlatMessage, JsonObject } from '../common/types.ts'
import type { Patterns } from './patterns.ts'

/** What a guard looks at. */
export interface GuardContext {
  readonly exchange: Exchange
  readonly entry: ClientFormatEntry
  readonly isStreaming: boolean
}

/** The body as it may go on, or what the client gets instead. */
export type GuardVerdict = { readonly body: JsonObject } | { readonly rejection: ResponseHead }

/** Ends a stream: the client is told `message` in its format, and nothing that was held back. */
export class StreamRejection extends Error {
  readonly code: string
  constructor(message: string, code = 'content_filter') {
    super(message)
    this.name = 'StreamRejection'
    this.code = code
  }
}

type Events = readonly ClientEvent[]

/** The guards of one streamed answer. Methods may throw, or reject with, a StreamRejection. */
export interface StreamGuard {
  /** Events as they come; gives those that may go out now, changed or not. */
  push(events: Events): Events | Promise<Events>
  /** The upstream is done: what was held back, judged. */
  end(): Events | Promise<Events>
}

/** The prompt guards that one provider is under (llm.md §13). All of them reject with a ProxyError when they cannot be asked. */
export interface PromptGuards {
  /** Request guards in order, after enrichment. */
  request(body: JsonObject, context: GuardContext): Promise<GuardVerdict>
  /** Response guards on a buffered answer in the client's format. `headers` are the upstream's. */
  response(body: JsonObject, context: GuardContext, headers: HeaderList): Promise<GuardVerdict>
  /** Response guards on a stream; undefined: there are none. */
  stream(context: GuardContext, headers: HeaderList): StreamGuard | undefined
}

export type GuardPhase = 'Request' | 'Response'

/** A request, an answer, or a stream that was held back: what guards may see and change of it. */
export interface Subject {
  readonly phase: GuardPhase
  readonly exchange: Exchange
  /** Of the client's request, or of the upstream's answer. */
  readonly headers: HeaderList
  /** Texts that are inspected, in order. */
  texts(): readonly string[]
  /** As many as `texts` gave. */
  replaceTexts(texts: readonly string[]): void
  /** The same as messages, for services that want roles. */
  messages(): readonly FlatMessage[]
  /** Throws when it cannot be done. */
  replaceMessages(messages: readonly FlatMessage[]): void
  /** Whether there was something to mask. */
  mask(patterns: Patterns): boolean
  hasHit(patterns: Patterns): boolean
}

/** What a guard said. `response`: instead of the guard's configured one. */
export type Outcome =
  | { readonly action: 'Allow' }
  | { readonly action: 'Mask' }
  | { readonly action: 'Reject'; readonly response?: { readonly status: number; readonly body: string } }

/** One entry of `promptGuard.request` or `.response`. Rejects with a ProxyError when it cannot tell: nothing passes unchecked. */
export type Guard = (subject: Subject) => Promise<Outcome> | Outcome

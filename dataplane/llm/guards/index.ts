import type { BackendAI } from '#gen/config/types.ts'
import { ProxyError } from '../../error.ts'
import type { Exchange } from '../../exchange.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { ServiceConfig } from '../../service.ts'
import type { ClientEvent, ClientFormatEntry, JsonObject } from '../formats/types.ts'

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

export function compileGuards(section: BackendAI['promptGuard'], _config: ServiceConfig): PromptGuards | undefined {
  return section && failClosed
}

const refuse = (): never => {
  throw new ProxyError('GUARD_FAILED')
}
/** Until there are guards: what somebody wanted checked does not pass unchecked. */
const failClosed: PromptGuards = { request: async () => refuse(), response: async () => refuse(), stream: refuse }

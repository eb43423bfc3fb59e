import type { Exchange } from '../../../request/exchange/exchange.ts'
import { hooksFor, type EventInput, type EventOutput, type RequestHooks } from '../../../request/exchange/plugin-hooks.ts'
import type { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import type { ClientEvent, ClientFormat, ClientFormatEntry, JsonObject } from '../common/types.ts'
import { StreamRejection, type PromptGuards, type StreamGuard } from '../guards/index.ts'
import { StreamSubject } from '../guards/subject.ts'
import type { GuardContext, GuardVerdict } from '../guards/types.ts'
import { viewAnswer, viewHeld, type AnswerView } from './answer.ts'
import { viewChat } from './chat.ts'
import { listIn, objectIn } from './parts.ts'
import { endOnFailure, EventHooks } from './stream.ts'

/** Limit of a stream that is held back until `llm.response` has seen it. */
const MAX_HELD_BYTES = 2 * 1024 * 1024

/** The hooks of plugins for one request to an LLM backend. */
export class LlmHooks {
  readonly #exchange: Exchange
  readonly #requests: readonly RequestHooks[]
  readonly #responses: readonly RequestHooks[]
  /** Changed requests: one for each format, because providers of a backend may differ in their routes. */
  readonly #changed = new Map<ClientFormat, Promise<GuardVerdict>>()

  private constructor(exchange: Exchange) {
    this.#exchange = exchange
    this.#requests = hooksFor(exchange, 'llm.request')
    // The response passes the last plugin first, as with middleware.
    this.#responses = hooksFor(exchange, 'llm.event', 'llm.response').toReversed()
  }

  /** Undefined if no plugin has hooks for LLM backends. */
  static of(exchange: Exchange): LlmHooks | undefined {
    return hooksFor(exchange, 'llm.request', 'llm.event', 'llm.response').length === 0 ? undefined : new LlmHooks(exchange)
  }

  get changesResponses(): boolean {
    return this.#responses.length > 0
  }

  /** Runs `llm.request` of all plugins, once for all attempts. Returns the changed body, or the response of a plugin. Rejects with a ProxyError if one fails. */
  request(body: JsonObject, { format }: ClientFormatEntry): Promise<GuardVerdict> {
    const known = this.#changed.get(format) ?? this.#changeRequest(body, format)
    this.#changed.set(format, known)
    return known
  }

  async #changeRequest(body: JsonObject, format: ClientFormat): Promise<GuardVerdict> {
    let current = body
    for (const plugin of this.#requests) {
      const { chat, apply } = await runWhileConnected(viewChat(current, format), this.#exchange)
      const outcome = await plugin.run('llm.request', chat, apply)
      if (outcome === undefined) continue
      if ('response' in outcome) return { rejection: outcome.response }
      current = outcome.value
    }
    return { body: current }
  }

  /** The guards of a provider with the hooks for responses after them. */
  around(guards: PromptGuards | undefined): PromptGuards | undefined {
    if (!this.changesResponses) return guards
    return {
      request: (body, context) => (guards === undefined ? Promise.resolve({ body }) : guards.request(body, context)),
      response: (body, context, headers) => this.#response(guards, body, context, headers),
      stream: (context, headers) =>
        this.#responses.reduce((inner, plugin) => chain(inner, streamOf(plugin, context, headers)), guards?.stream(context, headers)),
    }
  }

  async #response(guards: PromptGuards | undefined, body: JsonObject, context: GuardContext, headers: HeaderList): Promise<GuardVerdict> {
    let verdict: GuardVerdict = guards === undefined ? { body } : await guards.response(body, context, headers)
    for (const plugin of this.#responses) {
      if ('rejection' in verdict) return verdict
      const view = await runWhileConnected(viewAnswer(verdict.body, context.entry.format), context.exchange)
      const outcome = await runOnAnswer(plugin, view)
      if (outcome !== undefined) verdict = 'response' in outcome ? { rejection: outcome.response } : { body: outcome.value }
    }
    return verdict
  }
}

/** Runs `llm.response`, or `llm.event` for each text. */
function runOnAnswer<Result>(plugin: RequestHooks, view: AnswerView<Result>): Promise<{ value: Result } | { response: ResponseHead } | undefined> {
  const { answer, apply, replace } = view
  if (plugin.has('llm.response')) return plugin.run('llm.response', answer, apply)
  const deltas = answer.parts.map(({ type, text }, nth) => {
    return { type: type === 'reasoning' || type === 'json' ? type : ('text' as const), segment: String(nth), isLast: true, text }
  })
  return plugin.run('llm.event', { deltas, rests: {} } satisfies EventInput, (output) => replace(textsIn(output, deltas.length)))
}

function textsIn(output: unknown, count: number): readonly string[] {
  const texts = listIn(objectIn(output, 'the result')['texts'], 'texts') as EventOutput['texts']
  if (texts.length !== count || !texts.every((text) => typeof text === 'string')) throw new TypeError('a text is no string')
  return texts
}

function streamOf(plugin: RequestHooks, context: GuardContext, headers: HeaderList): StreamGuard {
  return plugin.has('llm.event') ? new EventHooks(plugin, context.exchange) : holdForHook(plugin, context, headers)
}

/** Holds a stream back until its end, and runs `llm.response` on it. */
function holdForHook(plugin: RequestHooks, { exchange }: GuardContext, headers: HeaderList): StreamGuard {
  const held: ClientEvent[] = []
  let size = 0
  return {
    push(events) {
      for (const event of events) {
        held.push(event)
        size += event.toBytes().length
      }
      if (size > MAX_HELD_BYTES) throw new StreamRejection('the response is too large for a plugin', 'plugin_failed')
      return []
    },
    async end() {
      const view = viewHeld(new StreamSubject(held, exchange, headers))
      const outcome = await endOnFailure(plugin.run('llm.response', view.answer, view.apply), exchange)
      if (outcome !== undefined && 'response' in outcome) throw new StreamRejection('a plugin rejected the response')
      return held
    },
  }
}

/** Passes the events of a stream through two guards. */
function chain(inner: StreamGuard | undefined, outer: StreamGuard): StreamGuard {
  if (inner === undefined) return outer
  return {
    push: (events) => after(inner.push(events), (passed) => outer.push(passed)),
    end: () => after(inner.end(), (last) => after(outer.push(last), (passed) => after(outer.end(), (rest) => [...passed, ...rest]))),
  }
}

type Events = readonly ClientEvent[]

function after(events: Events | Promise<Events>, next: (events: Events) => Events | Promise<Events>): Events | Promise<Events> {
  return events instanceof Promise ? events.then(next) : next(events)
}

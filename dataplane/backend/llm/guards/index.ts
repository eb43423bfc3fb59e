import type { AIPromptGuard } from '#gen/config/types.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { BufferBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import type { ClientEvent } from '../common/types.ts'
import { MaskingStream } from './masking.ts'
import { compileEntry, countCheck, runEntries, type Entry, type Rejection } from './entries.ts'
import type { Patterns } from './patterns.ts'
import type { GuardConfig } from './service.ts'
import { BodySubject, StreamSubject } from './subject.ts'
import { StreamRejection, type GuardContext, type GuardVerdict, type Outcome, type PromptGuards, type StreamGuard, type Subject } from './types.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'

export { StreamRejection, type PromptGuards, type StreamGuard } from './types.ts'

/** Limit of a stream that is held back for a guard service. */
const MAX_HELD_BYTES = 2 * 1024 * 1024

/** Text of a stream that is checked at once, without other events in between. */
const MAX_SYNC_LENGTH = 16 * 1024

/** Compiles `ai.promptGuard`; undefined if it is not configured. */
export function compileGuards(section: AIPromptGuard | undefined, config: GuardConfig): PromptGuards | undefined {
  if (section === undefined) return undefined
  const request = (section.request ?? []).map((entry) => compileEntry(entry, 'Request', config))
  const response = (section.response ?? []).map((entry) => compileEntry(entry, 'Response', config))
  const { registry } = config.state
  const run = (entries: readonly Entry[], subject: Subject): Promise<Rejection | undefined> => runEntries(entries, subject, registry)
  const check = async (entries: readonly Entry[], subject: BodySubject): Promise<GuardVerdict> => {
    const rejected = await run(entries, subject)
    if (rejected === undefined) return { body: subject.body }
    // Only for logs: the guard provides the response.
    subject.exchange.error = new ProxyError('GUARD_REJECTED')
    return { rejection: respond(rejected.status, rejected.body) }
  }

  return {
    request: (body, { entry, exchange }) => check(request, new BodySubject('Request', body, entry, exchange, exchange.request.headers)),
    response: (body, { entry, exchange }, headers) => check(response, new BodySubject('Response', body, entry, exchange, headers)),
    stream(context, headers) {
      if (response.length === 0) return undefined
      const patterns = joinPatterns(response)
      if (patterns !== undefined) return maskStream(patterns, context.exchange, (action) => countCheck(registry, context.exchange, 'Response', action))
      return holdStream(context, headers, (subject) => run(response, subject))
    },
  }
}

/** The patterns of all guards; undefined if one is not a regex guard, or does not compile. */
function joinPatterns(entries: readonly Entry[]): Patterns | undefined {
  let joined: Patterns | undefined
  for (const { patterns } of entries) {
    if (patterns === undefined) return undefined
    joined = joined?.join(patterns) ?? patterns
  }
  return joined
}

function maskStream(patterns: Patterns, exchange: Exchange, count: (action: Outcome['action']) => void): StreamGuard {
  let isMasked = false
  const stream = new MaskingStream(patterns, () => (isMasked = true))
  return {
    push(events) {
      // A promise costs more than the check of a short text.
      const length = events.reduce((sum, { deltas }) => deltas.reduce((total, { text }) => total + text.length, sum), stream.heldLength)
      return length > MAX_SYNC_LENGTH ? runWhileConnected(stream.push(events), exchange) : runSync(stream.push(events))
    },
    async end() {
      const events = await runWhileConnected(stream.end(), exchange)
      count(isMasked ? 'Mask' : 'Allow')
      return events
    },
  }
}

/** Holds a stream back until its end, because guard services check complete responses. */
function holdStream({ exchange }: GuardContext, headers: HeaderList, run: (subject: Subject) => Promise<{ body: string } | undefined>): StreamGuard {
  const held: ClientEvent[] = []
  let size = 0
  return {
    push(events) {
      for (const event of events) {
        held.push(event)
        size += event.toBytes().length
      }
      if (size > MAX_HELD_BYTES) throw new StreamRejection('the response is too large to be checked', 'guard_failed')
      return []
    },
    async end() {
      const rejected = await run(new StreamSubject(held, exchange, headers))
      if (rejected !== undefined) throw new StreamRejection(rejected.body)
      return held
    },
  }
}

function respond(status: number, text: string): ResponseHead {
  const body = new BufferBody(text)
  return { status, headers: new HeaderList(['content-type', 'text/plain', 'content-length', String(body.length)]), body, upgraded: undefined }
}

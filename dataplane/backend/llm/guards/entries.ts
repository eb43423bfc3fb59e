import type { CustomResponse, PromptguardRequest, PromptguardResponse, Regex } from '#gen/config/types.ts'
import { METRIC_PREFIX } from '#api/names.ts'
import { realNameOf } from '#api/v1alpha1/real-names.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { TraceStep } from '../../../request/exchange/trace.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { defineMetrics } from '../../../observe/telemetry/metrics/area.ts'
import { recordGuard } from '../../../observe/telemetry/outcome.ts'
import { compilePatterns, type Patterns } from './patterns.ts'
import type { GuardConfig } from './service.ts'
import type { Guard, GuardPhase, Outcome, Subject } from './types.ts'
import { compileCloudGuardrails, compileModelArmor, compileModeration } from './vendors.ts'
import { compileWebhook } from './webhook.ts'

/** One compiled guard, with its configured rejection. */
export interface Entry {
  readonly guard: Guard
  readonly response: CustomResponse
  /** The patterns of a regex guard, which can check a stream as it passes. */
  readonly patterns: Patterns | undefined
  /** Kind of guard, for traces; a regex guard with what it looks for. */
  readonly name: string
}

/** The response of a guard that rejected. */
export interface Rejection {
  readonly status: number
  readonly body: string
}

/** Phases in the metric: the calls of MCP tools have their own. */
export type CountedPhase = GuardPhase | 'ToolInput' | 'ToolOutput'

const DEFAULT_STATUS = 403
/** Hits in a step of a trace. */
const MAX_LISTED_HITS = 20
const defaultMessages: Readonly<Record<CountedPhase, string>> = {
  Request: 'The request was rejected due to inappropriate content',
  Response: 'The response was rejected due to inappropriate content',
  ToolInput: 'The arguments of the tool were rejected due to inappropriate content',
  ToolOutput: 'The result of the tool was rejected due to inappropriate content',
}

const guardMetrics = defineMetrics((registry) => {
  const checks = registry.counter(`${METRIC_PREFIX}guardrail_checks_total`, 'Evaluations of guards.', ['phase', 'action'])
  return (phase: CountedPhase, action: Outcome['action']): void => void checks.series(phase, action).value++
})

type Registry = GuardConfig['state']['registry']

/** Counts one evaluation of a guard, and records its result for the request. */
export function countCheck(registry: Registry, exchange: Exchange, phase: CountedPhase, action: Outcome['action']): void {
  guardMetrics(registry)(phase, action)
  recordGuard(exchange, action)
}

/** Runs guards in order, each on the result of the previous one. Returns the rejection, if there is one. */
export async function runEntries(
  entries: readonly Entry[],
  subject: Subject,
  registry: Registry,
  phase: CountedPhase = subject.phase,
): Promise<Rejection | undefined> {
  const { trace } = subject.exchange
  for (const { guard, response: custom, name, patterns } of entries) {
    const step = trace?.add('policy', `prompt guard, ${phase}: ${name}`)
    const found = step && patterns && (await runWhileConnected(listHits(subject, patterns), subject.exchange))
    const outcome = await guard(subject)
    countCheck(registry, subject.exchange, phase, outcome.action)
    if (step !== undefined) step.detail = describe(outcome, found)
    if (outcome.action === 'Reject') return outcome.response ?? { status: custom.statusCode ?? DEFAULT_STATUS, body: custom.message ?? defaultMessages[phase] }
  }
  return undefined
}

function describe({ action }: Outcome, found = ''): NonNullable<TraceStep['detail']> {
  const decision = action === 'Reject' ? { refused: 'by the guard' } : action === 'Mask' ? { masked: true } : {}
  return { ...decision, ...(found !== '' && { found }) }
}

/** Where patterns match, without what matches: `EMAIL at 5-18 of text 2`. Positions are those after the masks of the guards before. Texts are counted from 1. For traces only, so that its time does not matter. */
function* listHits(subject: Subject, patterns: Patterns): Cooperative<string> {
  const found: string[] = []
  for (const [index, text] of (yield* subject.texts()).entries()) {
    const hits = yield* patterns.find(text)
    for (let nth = 0; nth < hits.length && found.length < MAX_LISTED_HITS; nth++)
      found.push(`${hits.label(nth).replace(/[<>]/g, '')} at ${hits.start(nth)}-${hits.end(nth)} of text ${index + 1}`)
  }
  return found.join(', ')
}

/** Compiles one entry of a list of guards. With `Request`, regex guards may reject; with `Response`, they mask. */
export function compileEntry(entry: PromptguardRequest & PromptguardResponse, phase: GuardPhase, config: GuardConfig): Entry {
  const { response = {}, regex, webhook, moderationApi, cloudGuardrails, modelArmor } = entry
  const patterns = regex && compilePatterns(regex)
  const guard =
    regex !== undefined && patterns !== undefined
      ? compileRegexGuard(regex, patterns, phase)
      : webhook !== undefined
        ? compileWebhook(webhook, config)
        : moderationApi !== undefined
          ? compileModeration(moderationApi, config)
          : cloudGuardrails !== undefined
            ? compileCloudGuardrails(cloudGuardrails, config)
            : modelArmor !== undefined
              ? compileModelArmor(modelArmor, config)
              : failClosed('the prompt guard is of a kind that this version does not support')
  return { guard, response, patterns: typeof patterns === 'string' ? undefined : patterns, name: nameOf(entry) }
}

function nameOf({ regex, response: _response, ...services }: PromptguardRequest & PromptguardResponse): string {
  if (regex !== undefined) return `regex ${[...(regex.builtins ?? []), ...(regex.matches ?? [])].join(', ')}`
  return realNameOf('PromptguardRequest', Object.keys(services)[0] ?? 'unknown')
}

/** Requests are rejected or masked by `action`; responses are always masked (llm.md D6, part 2). */
function compileRegexGuard({ action }: Regex, patterns: Patterns | string, phase: GuardPhase): Guard {
  if (typeof patterns === 'string') return failClosed(patterns)
  if (phase === 'Request' && action === 'Reject')
    return async (subject) => ((await runWhileConnected(subject.hasHit(patterns), subject.exchange)) ? { action: 'Reject' } : { action: 'Allow' })
  return async (subject) => ((await runWhileConnected(subject.mask(patterns), subject.exchange)) ? { action: 'Mask' } : { action: 'Allow' })
}

/** A guard that cannot be compiled fails every request, so that nothing passes unchecked. */
function failClosed(reason: string): Guard {
  return () => {
    throw new ProxyError('GUARD_FAILED', { cause: new Error(reason) })
  }
}

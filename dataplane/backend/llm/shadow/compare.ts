import type { Comparison, ComparisonSide } from '#api/management/comparison.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import type { JsonObject } from '../common/types.ts'
import { wantsJson } from './copy.ts'
import { compareTools, hasSameMembers, parsed, similarityOf } from './similarity.ts'
import type { ComparedReply } from './types.ts'

/** How two responses differ. */
interface Differences extends Pick<Comparison, 'similarity' | 'tools' | 'sameMembers'> {
  /** Whether the texts are JSON; null: that was not asked for. */
  readonly json: { readonly original: boolean | null; readonly copy: boolean | null }
  /** Kinds, for metrics. */
  readonly differences: readonly string[]
  /** Text and calls are equal. */
  readonly isEqual: boolean
}

/** Compares the response of a client with that of a copy; undefined: the copy failed. */
export function* compare(body: JsonObject, original: ComparedReply, copy: ComparedReply | undefined): Cooperative<Differences> {
  if (copy === undefined)
    return { similarity: null, tools: null, sameMembers: null, json: { original: null, copy: null }, differences: ['error'], isEqual: false }
  const [a, b] = [proseOf(original), proseOf(copy)]
  const calls = [original.texts.toolCalls, copy.texts.toolCalls] as const
  const hasCalls = calls.some((list) => list.length > 0)
  const tools = hasCalls ? yield* compareTools(...calls) : null
  const similarity = a === '' && b === '' ? null : yield* similarityOf(a, b)
  const isJson = wantsJson(body) && !hasCalls
  const left = isJson ? yield* parsed(a) : undefined
  const right = isJson ? yield* parsed(b) : undefined
  const sameMembers = left !== undefined && right !== undefined ? hasSameMembers(left.value, right.value) : null
  const kinds = {
    tools: tools !== null && tools !== 'none',
    json: isJson && left !== undefined && right === undefined,
    members: sameMembers === false,
    finishReason: original.stop !== copy.stop,
  }
  return {
    similarity: similarity === null ? null : Math.round(similarity * 1e4) / 1e4,
    tools,
    sameMembers,
    json: isJson ? { original: left !== undefined, copy: right !== undefined } : { original: null, copy: null },
    differences: Object.entries(kinds).flatMap(([kind, differs]) => (differs ? [kind] : [])),
    isEqual: a === b && (tools === null || tools === 'none'),
  }
}

/** The numbers of a response. `target`: of a copy without a response. */
export function sideOf(reply: ComparedReply | undefined, target = ''): Omit<ComparisonSide, 'json'> {
  const { inputTokens = null, outputTokens = null } = reply?.facts?.usage ?? {}
  return {
    target: reply?.target || target,
    model: reply?.model ?? '',
    durationMs: round(reply?.durationMs ?? 0),
    firstTokenMs: reply?.firstTokenMs === undefined ? null : round(reply.firstTokenMs),
    inputTokens,
    outputTokens,
    cost: reply?.cost ?? null,
    stop: reply?.stop ?? null,
  }
}

const round = (ms: number): number => Math.round(ms * 10) / 10
const proseOf = ({ texts }: ComparedReply): string => texts.completion.join('\n')

/** Text and calls of a response, for the judge and for people. */
export function textOf(reply: ComparedReply): string {
  const calls = reply.texts.toolCalls.map(({ name, arguments: input }) => `${name}(${input})`)
  return [...(proseOf(reply) === '' ? [] : [proseOf(reply)]), ...calls].join('\n')
}

import { isObject } from '../common/json.ts'
import type { UpstreamFormat } from '../common/types.ts'

/** For each format the field that every successful response has, and whether it is a list. Converters check the other formats. */
const required: Partial<Readonly<Record<UpstreamFormat, { readonly field: string; readonly isList: boolean }>>> = {
  completions: { field: 'choices', isList: true },
  messages: { field: 'content', isList: true },
  responses: { field: 'output', isList: true },
  converse: { field: 'output', isList: false },
  embeddings: { field: 'data', isList: true },
  gemini: { field: 'candidates', isList: true },
  geminiEmbeddings: { field: 'embeddings', isList: true },
  rerank: { field: 'results', isList: true },
  moderations: { field: 'results', isList: true },
}

/** Why a 2xx body is no response of its format, such as an error that was sent with status 200; undefined if it is one. */
export function findReplyProblem(format: UpstreamFormat, body: unknown): string | undefined {
  if (!isObject(body)) return 'failed to parse response: it must be a JSON object'
  const rule = required[format]
  if (rule === undefined) return undefined
  const value = body[rule.field]
  // A prompt that Gemini blocked has no candidates.
  if (format === 'gemini' && isObject(body['promptFeedback'])) return undefined
  // Voyage has the results of a ranking in the member of lists.
  if (format === 'rerank' && Array.isArray(body['data'])) return undefined
  if (rule.isList ? Array.isArray(value) : isObject(value)) return undefined
  return `failed to parse response: ${rule.field} must be ${rule.isList ? 'a list' : 'an object'}`
}
